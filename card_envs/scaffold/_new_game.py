"""`python -m card_envs new-game`: a copy of the template with names replaced, in all places that a game has.

In a checkout of this repository, the game becomes a part of this package; elsewhere it becomes an installable package
of its own, which `card_envs` finds by its entry point.
"""

from __future__ import annotations

import keyword
import re
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from card_envs.games import GAMES
from card_envs.scaffold import high_card
from card_envs.scaffold._checks.findings import checkout
from card_envs.scaffold._checks.tested import SHARED
from card_envs.system.files import replace_file

TEMPLATE = high_card.GAME
LEFT_OUT = {"mutants.py"}  # edits of the template's rules
GOLDEN = re.compile(r"^GOLDEN = .*$", re.MULTILINE)  # a hash of the template's rules
NO_GOLDEN = "GOLDEN: dict[int, str] = {}  # once the rules are settled, tests/engine/test_batch.py says what to write"
REGISTRY = Path("card_envs", "games", "__init__.py")
IMPORTED = r"from card_envs\.games import ([\w, ]+|\([^)]*\))\n"

V0 = '''"""{title} for PettingZoo: `{name}_v0.env()`."""

from functools import partial

from card_envs.envs.aec import CardEnv
from card_envs.games.{name} import GAME

env = raw_env = partial(CardEnv, GAME)
'''

CONFIG = """# {title}: about two minutes on two cores: python -m {train}
game = "{name}"
minutes = 2
# It scores moves by what `greedy` makes of them in drawn worlds, and learns from games against itself and `greedy` what
# every legal move would have gained. The better `greedy` is, the better this goes.
algorithm = "advantages"
advantage_worlds = 4
network = "lookahead"
# To try as well: network = "afterstates" reads what a move changes by itself, so its moves take a third of the time.
# With advantage_worlds = 1 moves are tried in the deal as it was: better where play tells much of hidden cards.
baseline_bonus = 1
hidden = [128, 64]
num_envs = 512
minibatch_size = 512
learning_rate = 2e-3
sampled = false
"""

PYPROJECT = """[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
description = "{title}, a game for card_envs"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["card_envs"]

[project.entry-points."card_envs.games"]
{name} = "{name}:GAME"

[tool.hatch.build.targets.wheel]
packages = ["{name}"]
"""

README = """# {title}
A game for card_envs: the rules are in `{name}/RULES.md`, and each has a test in `{name}/tests`.
After `pip install --editable .`, `python -m card_envs` (`games`, `play`, `compare`, …) and training know it.
`python -m card_envs check {name}` lists what is missing or wrong; `pytest --pyargs {name}` runs its own tests.
`python -m {train}` trains an opponent.
The tests of every game, in a checkout of card_envs: `pytest {shared} --game {name}`.
"""

SHARED_TESTS = " ".join(SHARED)


class NewGame(NamedTuple):
    """The names and paths of a new game."""

    name: str
    title: str
    root: Path  # the other paths are relative to it
    package: str
    tests: str  # package of its tests
    in_checkout: bool

    def files(self) -> dict[Path, str]:
        """Return the texts of all new files."""
        files = {}
        folder = Path(__file__).parent / TEMPLATE.name
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.md")]):
            part = path.relative_to(folder)
            if part.name in LEFT_OUT:
                continue
            inside = part.parts[0] == "tests"
            package, rest = (self.tests, part.relative_to("tests")) if inside else (self.package, part)
            files[self.folder_of(package) / rest] = self.rename(path.read_text(encoding="utf-8"))
        for place, text in self.places().items():
            files[place] = text.format(name=self.name, title=self.title, shared=SHARED_TESTS, train=self.train)
        return files

    def folder_of(self, package: str) -> Path:
        """Return the path of a package."""
        return Path(*([] if self.in_checkout else [self.name]), *package.split("."))

    def places(self) -> dict[Path, str]:
        """Return the texts of files that are not in the template, with placeholders."""
        if self.in_checkout:
            return {Path("card_envs", f"{self.name}_v0.py"): V0, Path("configs", f"{self.name}.toml"): CONFIG}
        texts = {"pyproject.toml": PYPROJECT, "README.md": README, f"{self.name}.toml": CONFIG}
        return {Path(self.name, file): text for file, text in texts.items()}

    @property
    def train(self) -> str:
        """The module and arguments that train an opponent."""
        if self.in_checkout:
            return f"training.train --config configs/{self.name}.toml --processes 0"
        return f"card_envs train --config {self.name}.toml --processes 0"

    def rename(self, text: str) -> str:
        """Replace the names of the template in a text by those of this game."""
        text = GOLDEN.sub(NO_GOLDEN, text)
        old, new = rule_prefix(TEMPLATE.title), rule_prefix(self.title)
        names = {
            f"{TEMPLATE.package}.tests": self.tests,
            TEMPLATE.package: self.package,
            TEMPLATE.name: self.name,
            TEMPLATE.title: self.title,
            f"{old}-": f"{new}-",
            f"test_{old.lower()}_": f"test_{new.lower()}_",
        }
        return re.sub("|".join(map(re.escape, names)), lambda match: names[match[0]], text)


def rule_prefix(title: str) -> str:
    """Return the two letters of a game's rule numbers: the initials of its title, or its first two letters."""
    words = [word for word in re.split(r"[ -]", title) if word[:1].isalpha()]
    letters = words[0][0] + words[1][0] if len(words) > 1 else re.sub(r"[^A-Za-z]", "", title)[:2]
    return letters.upper()


def plan(name: str, title: str = "", folder: Path | None = None) -> NewGame:
    """Return the names and paths of a new game. Raises ValueError for an unsuitable name."""
    title = title or name.replace("_", " ").title()
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ValueError(f"name {name!r}: expected a Python name in lower case, words joined by _")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9 -]*", title) or len(re.sub(r"[^A-Za-z]", "", title)) < 2:
        raise ValueError(f"title {title!r}: expected two or more letters; digits, spaces and - may follow")
    for known in (*GAMES.values(), TEMPLATE):
        if name == known.name or title.replace(" ", "") == known.title.replace(" ", ""):
            raise ValueError(f"there is a game {known.name} ({known.title}) already, in {known.package}")
    root = checkout() if folder is None else None
    if root is not None:
        game = NewGame(name, title, root, f"card_envs.games.{name}", f"tests.games.{name}", True)
    else:
        game = NewGame(name, title, folder or Path(), name, f"{name}.tests", False)
    if (root is not None or not (game.root / name).exists()) and find_spec(game.package):
        raise ValueError(f"name {name!r}: there is a module {game.package} already")
    return game


def new_game(game: NewGame) -> list[Path]:
    """Write a game's files and return them.

    Raises:
        FileExistsError: one of the paths exists; nothing is written.
        OSError: something can't be written.
    """
    files, registry, places = game.files(), "", [Path(game.name)]
    if game.in_checkout:
        registry = register_game((game.root / REGISTRY).read_text(encoding="utf-8"), game.name)
        places = [game.folder_of(game.package), game.folder_of(game.tests), *game.places()]
    for place in places:
        if (game.root / place).exists():
            raise FileExistsError(f"{game.root / place} exists already")
    game.root.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".new-game-", dir=game.root))
    try:
        for path, text in files.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_bytes(text.encode())
        for place in places:
            (draft / place).rename(game.root / place)
    finally:
        shutil.rmtree(draft)
    if registry:
        replace_file(game.root / REGISTRY, registry)
    return [game.root / path for path in (*files, *([REGISTRY] if registry else []))]


# The registry


def register_game(text: str, name: str) -> str:
    """Return the registry's text with one more game: its import and its entry, in order.

    Raises:
        ValueError: the text does not have the expected form.
    """
    imported, entries = re.search(IMPORTED, text), re.findall(r"^    (\w+)\.GAME,$", text, re.MULTILINE)
    if not imported or not entries:
        raise ValueError(f"{REGISTRY}: expected an import of games and their list; add {name} there yourself")
    names = sorted([*entries, name])
    imports, listed = ("".join(f"    {name}{end},\n" for name in names) for end in ("", ".GAME"))
    text = text.replace(imported[0], f"from card_envs.games import (\n{imports})\n")
    return re.sub(r"(    \w+\.GAME,\n)+", listed, text)


def next_steps(game: NewGame) -> list[str]:
    """Return the next steps for the game's author."""
    folder = game.folder_of(game.package)
    if game.in_checkout:
        tests, guide = f"pytest tests -k {game.name}", "see CONTRIBUTING.md"
        start = f"python -m card_envs check {game.name}"
    else:
        tests, guide = f"pytest --pyargs {game.tests}", "see README.md there"
        start = f"pip install --editable {game.root / game.name} && python -m card_envs check {game.name}"
    return [
        start,
        f"write the rules down in {folder / 'RULES.md'}, then change options.py, rules.py, bot.py, view.py ({guide})",
        f"keep the tests green: {tests}",
        f"train an opponent: python -m {game.train}",
    ]
