"""Hatchling's hook: a wheel with libraries, where CARD_ENVS_WHEEL names its tag and targets; else a pure one.

CARD_ENVS_WHEEL=manylinux_2_17_x86_64:x86-64-v2,x86-64-v3 python -m hatchling build -t wheel
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = "card_envs/native"


class LibraryHook(BuildHookInterface[Any]):
    """Adds the libraries of a kind of machine to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling. Raises FileNotFoundError where a target was not built."""
        platform, _, targets = os.environ.get("CARD_ENVS_WHEEL", "").partition(":")
        if not platform:
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"  # the caller uses the stable ABI
        for target in targets.split(","):
            folder = Path(self.root) / NATIVE / target
            if not (folder / "target.json").exists():
                raise FileNotFoundError(f"{folder}: python -m card_envs build --target {target}")
            build_data["force_include"][str(folder)] = f"{NATIVE}/{target}"
