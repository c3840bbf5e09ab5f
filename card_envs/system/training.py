"""Import training, from this package where it is installed and from beside it in a checkout."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType


def training_module(name: str) -> ModuleType:
    """Import a module of training: within this package where it is installed, beside it in a checkout."""
    installed = find_spec("card_envs.training") is not None
    module = import_module(f"card_envs.training.{name}" if installed else f"training.{name}")
    root = Path(__file__).parents[1 if installed else 2]
    if module.__file__ is None or root / "training" not in Path(module.__file__).parents:
        raise ValueError(f"{module.__file__}: another package is called training, too; expected {root / 'training'}")
    return module
