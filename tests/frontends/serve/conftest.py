"""Tests of the server that are coroutines run in a loop of asyncio: mark `anyio`."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
