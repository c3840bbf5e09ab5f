"""The server as others meet it: the sample clients, its own OpenAPI against it, and its end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.serving import ROOT, ServerProcess
from card_envs.games import GAMES
from tests.conftest import program, run_python, short_options

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

pytestmark = pytest.mark.processes

NAMES = list(GAMES)[:3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("served") / "tables")
    yield server
    server.stop()


@pytest.mark.parametrize("name", NAMES)
def test_the_javascript_client_plays_a_whole_game(name: str, server: ServerProcess) -> None:
    node = program("node")
    options = json.dumps(short_options(GAMES[name]))
    command = [node, "examples/client.mjs", name, "trivial", server.address, options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert re.search(r"^over after \d+ moves: \w+, scores [-\d ]+\nrecord: \d+ moves", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_python_client_plays_a_whole_game_over_stdio(name: str) -> None:
    done = run_python("examples/client_stdio.py", name, "trivial")
    assert re.search(r"^over after \d+ moves: .*'over': True", done.stdout, re.M), done.stdout


def test_the_clients_are_short() -> None:
    for name, most in (("client.mjs", 60), ("client_stdio.py", 40)):
        assert len((ROOT / "examples" / name).read_text().splitlines()) < most


def test_the_server_ends_while_somebody_watches(tmp_path: Path) -> None:
    """Open streams and waiting requests end; the table is there again afterwards."""
    game = NAMES[0]
    server = ServerProcess(tmp_path / "tables", "--game", game)
    seats = server.ask("/v1/games")["games"][0]["seats"]
    link = server.ask("/v1/tables", {"game": game, "players": [None] * seats})["seats"][0]["link"]
    before = server.ask(link)
    with urllib.request.urlopen(f"{server.address}{link}/events", timeout=30) as stream:
        assert stream.readline() == b"event: position\n"
        server.stop()
        assert stream.read().count(b"event: ") == 0
    again = ServerProcess(tmp_path / "tables", "--game", game)
    assert again.ask(link) == before
    again.stop()


def test_the_server_does_what_its_openapi_says(server: ServerProcess, tmp_path: Path) -> None:
    """Fuzzed by schemathesis at a table where nobody can end the game; more with CARD_ENVS_FUZZ=1000.

    What is left out: that every body which fits the schema is accepted. Whether a view or a move makes sense is the
    game's to say.
    """
    pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    game = next(one for one in server.ask("/v1/games")["games"] if one["seats"] > 1)
    players = [None] * game["seats"]
    chairs = server.ask("/v1/tables", {"game": game["name"], "players": players})["seats"]
    # The seat to move has nothing to wait for.
    token = next(chair["token"] for chair in chairs if server.ask(chair["link"])["your_turn"])
    (tmp_path / "schemathesis.toml").write_text(f'[parameters]\n"path.token" = "{token}"\n')
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json", "--checks", "all"]
    command += ["--exclude-checks", "positive_data_acceptance", "--seed", "1", "--request-timeout", "60"]
    command += ["--max-response-time", "60"]  # requests may wait for half a minute
    command += ["--max-examples", os.environ.get("CARD_ENVS_FUZZ", "15"), "--exclude-path-regex", "/events$"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0 and re.search(r"(\d\d+) generated, \1 passed", done.stdout), done.stdout[-6000:]
