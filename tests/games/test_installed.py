"""Games of other packages, found by their entry points: a copy of the smallest game, and packages that are broken."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from card_envs.games import GAMES
from tests.conftest import run_python

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "card_envs" / "scaffold" / "high_card"
OWN = [game for game in GAMES.values() if game.package.startswith("card_envs.games.")]

USE_IT = """
import warnings
warnings.simplefilter("error")
import gymnasium, pettingzoo
import card_envs
from training.config import Config

game = card_envs.get_game("high_stakes")
assert card_envs.GAMES["high_stakes"] is game and "high_stakes" in card_envs.GAMES
env = gymnasium.make("card_envs/HighStakes-v0", opponents="trivial")
env.reset(seed=0)
assert env.unwrapped.action_masks().sum() == 3
if hasattr(pettingzoo, "make"):
    assert pettingzoo.make("aec", game.id).unwrapped.game == game
assert card_envs.load_opponent("high_stakes/greedy").game == game
assert Config(game="high_stakes", decisions=100).game == game.name
"""

IMPORTED_FIRST = """
import warnings
warnings.simplefilter("error")
import high_stakes
import card_envs
assert card_envs.get_game("high_stakes") is high_stakes.GAME
"""


def install(folder: Path, package: str, entry_points: dict[str, str]) -> None:
    """What an installer leaves of a package besides its code."""
    info = folder / f"{package}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1\n")
    lines = [f"{name} = {value}\n" for name, value in entry_points.items()]
    (info / "entry_points.txt").write_text("[card_envs.games]\n" + "".join(lines))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in a process that sees the packages in the folder."""
    return run_python(*arguments, folder=folder, paths=(folder,), NUMBA_CACHE_DIR=str(folder / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an installed game, `high_stakes`."""
    package = tmp_path / "high_stakes"
    shutil.copytree(TEMPLATE, package, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    for file in package.glob("*.py"):
        text = file.read_text().replace("card_envs.scaffold.high_card", "high_stakes")
        file.write_text(text.replace("high_card", "high_stakes").replace("High Card", "High Stakes"))
    install(tmp_path, "high_stakes", {"high_stakes": "high_stakes:GAME"})
    return tmp_path


@pytest.mark.processes
def test_an_installed_game_is_like_the_others(folder: Path) -> None:
    run(folder, "-c", USE_IT)
    listed = run(folder, "-m", "card_envs", "games")
    assert "high_stakes (High Stakes): 2 seats" in listed.stdout, listed.stderr
    assert all(f"{game.name} ({game.title})" in listed.stdout for game in OWN)
    compared = run(folder, "-m", "card_envs", "compare", "high_stakes", "greedy", "random", "--pairs", "20")
    assert "High Stakes: 20 mirrored pairs" in compared.stdout, compared.stderr


def test_an_installed_game_may_be_imported_first(folder: Path) -> None:
    """It imports this package, which looks for games, before it has its own."""
    run(folder, "-c", IMPORTED_FIRST)


def test_broken_packages_are_named_and_left_out(folder: Path) -> None:
    taken = OWN[0]
    (folder / "raising.py").write_text("raise OSError('no cards')\n")
    (folder / "other.py").write_text(
        f"from card_envs.game import Game\nGAME = Game({taken.name!r}, 'Another', 'other')\nNOTHING = 7\n"
    )
    install(folder, "raising", {"boom": "raising:GAME"})
    install(folder, "other", {taken.name: "other:GAME", "nothing": "other:NOTHING", "missing": "other:MISSING"})
    done = run(folder, "-c", f"import card_envs; print(*card_envs.GAMES, card_envs.get_game({taken.name!r}).package)")
    assert done.stdout.split() == [*(game.name for game in OWN), "high_stakes", taken.package]
    for warning in (
        "package raising: the game boom (raising:GAME) can't be loaded: OSError: no cards",
        f"package other: the game {taken.name} (Another) is left out: {taken.package} has a game {taken.name}",
        "package other: the game nothing (other:NOTHING) can't be loaded: TypeError: expected a card_envs.game.Game",
        "package other: the game missing (other:MISSING) can't be loaded: AttributeError",
    ):
        assert warning in done.stderr, done.stderr


def entry_points(content: bytes) -> Callable[[Path], object]:
    return lambda info: (info / "entry_points.txt").write_bytes(content)


BROKEN: dict[str, Callable[[Path], object]] = {
    "not UTF-8": entry_points(b"[card_envs.games]\nx\xe9 = y\xe9:z\n"),
    "malformed": entry_points(b"[card_envs.games]\nnonsense\n = bar\nfoo =\n[[[\n"),
    "malformed value": entry_points(b"[card_envs.games]\nfoo = a b c : d\nbar = :\n"),
    "no section": entry_points(b"card_envs.games = 3\n"),
    "twice": entry_points(b"[card_envs.games]\na = no:A\na = no:B\n[card_envs.games]\na = no:C\n"),
    "no metadata": lambda info: (info / "METADATA").unlink(),
    "ends the program": entry_points(b"[card_envs.games]\nx = leaves:GAME\n"),
    "a name of another kind": entry_points(b"[card_envs.games]\nx = named:GAME\n"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_no_other_package_stops_ours(kind: str, folder: Path) -> None:
    """Even where warnings are errors; what is wrong is said to who asks for the game."""
    (folder / "leaves.py").write_text("raise SystemExit(3)\n")
    (folder / "named.py").write_text("from card_envs.game import Game\nGAME = Game('../x y', 'X', 'named')\n")
    install(folder, "aa_broken", {"x": "nowhere:GAME"})  # is found before the others
    BROKEN[kind](folder / "aa_broken-0.1.dist-info")
    code = "import card_envs; print(*card_envs.GAMES)\ntry: card_envs.get_game('x')\nexcept ValueError as e: print(e)"
    games, said = run(folder, "-W", "error::UserWarning", "-c", code).stdout.split("\n", 1)
    assert games.split() == [*(game.name for game in OWN), "high_stakes"]
    assert kind in ("not UTF-8", "no section") or "aa_broken" in said
