"""Every file of figures has its provenance."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

from card_envs.compare._provenance import digest_of, provenance
from card_envs.compare.contests import Contest
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from tests.compare.test_compare import short_words
from tests.conftest import run, run_python

TEAMS = next(game for game in GAMES.values() if 1 < game.num_sides < game.rules.NUM_SEATS)


def test_every_file_of_figures_has_its_provenance(tmp_path: Path) -> None:
    """The games' settings, a digest of each player, the command, the date and the machine."""
    words = (TEAMS.name, "greedy", "trivial", *short_words(TEAMS))
    for command, arguments in (
        ("compare", (*words, "--pairs", 8, "--records", tmp_path, "--best")),
        ("survey", (*words, "--episodes", 8)),
        ("review", (tmp_path / "0000-1_greedy-2_trivial.json", "--by", "search:8", "--seed", 5, "--seat", 0)),
    ):
        run_python("-m", "card_envs", command, *arguments, "--json", tmp_path / f"{command}.json")
        about = json.loads((tmp_path / f"{command}.json").read_text())["provenance"]
        assert about["command"].startswith(f"python -m card_envs {command} {arguments[0]}")
        assert about["card_envs"] == version("card_envs") and about["python"] == platform.python_version()
        assert (about["game"], about["version"]) == (TEAMS.name, TEAMS.version) and about["processor"]
        assert about["seed"] == (5 if command == "review" else 0) and about["sampled"] == (command == "survey")
        names = ["search:8"] if command == "review" else ["greedy", "trivial"]
        assert about["digests"] == {name: digest_of(load_opponent(name, TEAMS), TEAMS) for name in names}
        assert about["date"].endswith("+00:00") and "commit" in about


def test_a_partner_is_a_player_whose_digest_counts() -> None:
    digests = provenance(Contest(TEAMS, ("greedy", "random"), partner="trivial"))["digests"]
    assert list(digests) == ["greedy", "random", "partner"] and digests["partner"] != digests["greedy"]


def test_tables_say_who_has_the_seats_of_a_side(game: Game) -> None:
    """And what the intervals of a table hold together."""
    words = ("compare", game.name, "greedy", "trivial", "--pairs", 8, "--brief")
    text = " ".join(run(*words)[1].split())
    assert ("A player has all seats of its side; with --partner NAME" in text) == (
        game.num_sides < game.rules.NUM_SEATS
    )
    assert "Each interval holds in 95 % of such comparisons, all " in text
    if game is TEAMS:
        assert "random plays beside each player" in " ".join(run(*words, "--partner", "random")[1].split())


def test_many_intervals_promise_nothing_together(tmp_path: Path) -> None:
    names = ["greedy", "trivial", "random"] * 2
    output = run("compare", "high_card", *names, "--pairs", 8, "--json", tmp_path / "c.json")[1]
    intervals = json.loads((tmp_path / "c.json").read_text())["intervals"]
    assert intervals == {"each": 0.95, "number": 47, "all_at_least": 0.0}
    assert "about 2 of 47 miss." in " ".join(output.split())
