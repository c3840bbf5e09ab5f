"""Hatchling's hooks.

`LibraryHook`: a wheel with libraries, where CARD_ENVS_WHEEL names its tag and targets; else a pure one:
`CARD_ENVS_WHEEL=manylinux_2_17_x86_64:x86-64-v2,x86-64-v3 python -m hatchling build -t wheel`.
`AddressHook`: all links of the package index, from the one address in pyproject.toml.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NATIVE = "card_envs/native"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]*)\)")  # to a file of the repository


class LibraryHook(BuildHookInterface[Any]):
    """Adds the libraries of a kind of machine to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the libraries to the wheel. Raises FileNotFoundError where a target was not built."""
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


class AddressHook(MetadataHookInterface):
    """Completes addresses, also those of the readme's links and pictures, which lead to files of the repository."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the addresses and the description of the package."""
        urls = metadata["urls"]
        files = f"{urls['Source']}/{{kind}}/main/{{path}}"
        urls["Homepage"] = urls["Source"]
        urls["Changelog"] = files.format(kind="blob", path="CHANGELOG.md")

        def address(link: re.Match[str]) -> str:
            target = files.format(kind="raw" if link[1] else "blob", path=link[3])
            return f"{link[1]}[{link[2]}]({target})"

        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": LINK.sub(address, text)}
