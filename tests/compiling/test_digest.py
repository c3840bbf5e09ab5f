"""Compiled code is named after what a process imported: an edit is noticed in the next one, and misleads none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import ROOT, run_python

# How a loop reaches the function `worth` of another file: its import, and its use.
LOOPS = {
    "helper": ("from {part} import worth", "worth(x)"),
    "rule": ("from {part} import worth", "worth(x)"),
    "njit": ("from {part} import worth", "worth(x)"),
    "module": ("import {part}", "{part}.worth(x)"),
    "constant": ("from {part} import STEP", "x + STEP"),
    "module_constant": ("import {part}", "x + {part}.STEP"),
    "record": ("from {part} import STEPS", "x + STEPS.first"),
    "array": ("from {part} import ARRAY", "x + ARRAY[0]"),
    "literal_set": ("from {part} import is_low, STEP", "x + STEP if is_low(x) else -1"),
    "default": ("from {part} import worth", "worth(x)"),
    "closure": ("from {part} import worth", "worth(x)"),
    "tuple": ("from {part} import WORTHS", "WORTHS[0](x)"),
    "vectorize": ("from {part} import worth", "worth(x)"),
    "overload": ("import {part}", "{part}.worth(x)"),
    "rule_with_overload": ("from {part} import worth", "worth(x)"),
    "intrinsic": ("from {part} import worth", "worth(x)"),
    "swapped": ("from {part} import worth\nfrom {part}_too import worth as other", "worth(x) + 0 * other(x)"),
}
WORTH = "def worth(x):\n    return x + {step}\n"
RULE = f"from card_envs.compiling import rule\n\n@rule\n{WORTH}"
OVERLOAD = (
    "def worth(x):\n    raise NotImplementedError\n\n@overload({of})\ndef of(x):\n    return lambda x: x + {step}\n"
)
PARTS = {
    "helper": WORTH,
    "rule": RULE,
    "njit": f"from numba import njit\n\n@njit\n{WORTH}",
    "module": RULE,
    "constant": "STEP = {step}\n",
    "module_constant": "STEP = {step}\n",
    "record": "from typing import NamedTuple\n\nclass Steps(NamedTuple):\n    first: int\n\nSTEPS = Steps({step})\n",
    "array": "import numpy as np\n\nARRAY = np.array([{step}])\n",
    "literal_set": "STEP = {step}\n\ndef is_low(x):\n    return x in (1, 5, {step})\n",
    "default": "def worth(x, step={step}):\n    return x + step\n",
    "closure": "def worth_of(step):\n    return lambda x: x + step\n\nworth = worth_of({step})\n",
    "tuple": RULE + "\n@rule\ndef nothing(x):\n    return x\n\nWORTHS = (worth, nothing)\n",
    "vectorize": f"from numba import vectorize\n\n@vectorize\n{WORTH}",
    "overload": "from numba.extending import overload\n\n" + OVERLOAD.replace("{of}", "worth"),
    "rule_with_overload": (
        "from numba.extending import overload\nfrom card_envs.compiling import rule\n\n"
        + OVERLOAD.replace("def worth", "def inner", 1).replace("{of}", "inner")
        + "\n@rule\ndef worth(x):\n    return inner(x)\n"
    ),
    "intrinsic": (
        "from numba.extending import intrinsic\n\n@intrinsic\ndef worth(context, x):\n"
        "    def build(context, builder, signature, arguments):\n"
        "        return builder.add(arguments[0], arguments[0].type({step}))\n    return x(x), build\n"
    ),
    "swapped": RULE,
}
PROGRAM = """
import importlib, json, os, sys
from pathlib import Path

folder, how, names, parts = json.load(sys.stdin)
sys.path.insert(0, folder)

def results():
    from card_envs.compiling import specialize

    return {name: int(specialize(sys.modules[f"{name}_loop"].loop)(5)) for name in names}

def write():
    for name, text in parts.items():
        file = Path(folder, name + ".py")
        before = file.stat().st_mtime_ns
        file.write_text(text)
        os.utime(file, ns=(before, before))  # as archives and copies leave it

for name in names:
    importlib.import_module(f"{name}_loop")
if how == "reload":
    results()
if how in ("edit", "reload"):
    write()
if how == "reload":
    for name in [*parts, *(f"{name}_loop" for name in names)]:
        importlib.reload(sys.modules[name])
json.dump(results(), sys.stdout)
"""


def parts_at(step: int, after: int) -> dict[str, str]:
    """All parts with a step; `swapped_part_too` has the one that comes next."""
    parts = {f"{name}_part": text.replace("{step}", str(step)) for name, text in PARTS.items()}
    return parts | {"swapped_part_too": PARTS["swapped"].replace("{step}", str(after))}


def results(folder: Path, how: str, parts: dict[str, str]) -> dict[str, int]:
    """Return what the loops make of 5 in a new process: it imports them, may edit the parts, and then compiles."""
    told = json.dumps([str(folder), how, [*LOOPS], parts])
    done = run_python("-B", "-c", PROGRAM, stdin=told, NUMBA_CACHE_DIR=str(folder / "cache"))
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("how", ["fresh", "edit", "reload"])
def test_an_edit_is_noticed_in_the_next_process(how: str, tmp_path: Path) -> None:
    """Also where a process had imported the files, and compiles or reloads them after the edit.

    All loops have the same name, in files of their own: none takes the place of another in the cache.
    """
    for name, (line, use) in LOOPS.items():
        part = f"{name}_part"
        loop = f"{line}\n\n\ndef loop(x):\n    return {use}\n".replace("{part}", part)
        (tmp_path / f"{name}_loop.py").write_text(loop)
    for name, text in parts_at(1, 7).items():
        (tmp_path / f"{name}.py").write_text(text)
    after = parts_at(7, 1)
    while_it_runs = results(tmp_path, how, after)
    allowed = {"fresh": {6}, "edit": {6}, "reload": {6, 12}}[how]
    assert {name: value for name, value in while_it_runs.items() if value not in allowed} == {}
    kept = {file.name.partition("_loop.")[0] for file in (tmp_path / "cache").rglob("*.nbi")}
    assert how == "reload" or kept == set(LOOPS)
    for name, text in after.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert {name: value for name, value in results(tmp_path, "fresh", {}).items() if value != 12} == {}
    assert how != "fresh" or len([*(tmp_path / "cache").rglob("*.nbi")]) == len(LOOPS)  # what is outdated is gone


DIGEST_OF_SOMEONES_GAME = """
from card_envs.compiling._specialize import Specialization, rebuild
from card_envs.engine import kernels
from card_envs.engine.legality import find_illegal
from someones_game import GAME

loops = Specialization(kernels.step_tables, GAME), Specialization(kernels.bot_actions, GAME, "greedy")
print(*(rebuild(loop).function.__name__ for loop in (*loops, Specialization(find_illegal))))
"""


def test_the_digest_covers_what_a_loop_uses(tmp_path: Path) -> None:
    """An edit makes another name of the loops that use the file, and of no others."""
    shutil.copytree(ROOT / "card_envs", tmp_path / "card_envs", ignore=shutil.ignore_patterns("__pycache__", "models"))
    shutil.copytree(Path(str(TINY.rules.__file__)).parent, tmp_path / "someones_game")
    for file in (tmp_path / "someones_game").glob("*.py"):
        file.write_text(file.read_text().replace("card_envs.scaffold.high_card", "someones_game"))
    expected = {  # step_tables, bot_actions, find_illegal
        "someones_game/rules.py": "True False False",
        "someones_game/bot.py": "False True False",
        "someones_game/view.py": "False False False",
        "card_envs/engine/dealing.py": "True False False",
        "card_envs/engine/kernels.py": "True True False",
        "card_envs/engine/legality.py": "True False True",
        "card_envs/compiling/_rules.py": "True True True",
    }

    def names() -> list[str]:
        return run_python("-c", DIGEST_OF_SOMEONES_GAME, folder=tmp_path, paths=(tmp_path,)).stdout.split()

    before, changes = names(), {}
    for name in expected:
        with (tmp_path / name).open("a") as source:
            source.write("# edited\n")
        after = names()
        changes[name] = " ".join(str(one != other) for one, other in zip(before, after, strict=True))
        before = after
    assert changes == expected
