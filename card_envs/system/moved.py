"""Public modules under their names of before: they are imported from where they are now, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "card_envs.episode": "card_envs.play.episode",
    "card_envs.sitting": "card_envs.play.sitting",
    "card_envs.text": "card_envs.frontends.text",
    "card_envs.serve": "card_envs.frontends.serve",
    "card_envs.serve.app": "card_envs.frontends.serve.app",
}


class MovedModules(MetaPathFinder, Loader):
    """Finds modules by their names of before."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec whose module is the one under the new name; None for other names."""
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module under its new name in the place of this one."""
        new_name = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is {new_name} now", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(new_name)
