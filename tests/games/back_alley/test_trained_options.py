"""Policies that play under other options than those of their training: a warning, once, where these are known."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from card_envs.compare.contests import Contest
from card_envs.compare.pairs import play_pairs
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.about import unlike_training
from card_envs.opponents.names import MODELS
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.reviews import review_policy
from tests.conftest import run

GAME = get_game("back_alley")
SAID = r"mine was trained with deals='single', and plays here with deals=\(1,\); as trained: -o deals=single"
ONE_CARD = {"deals": [1]}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The shipped network as a folder of one's own."""
    shutil.copytree(MODELS / GAME.name / "small", tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    return "./mine"


def test_other_options_are_named(mine: str) -> None:
    own, greedy = (load_opponent(name, GAME) for name in (mine, "greedy"))
    with pytest.warns(UserWarning, match=SAID) as found:
        play_pairs(GAME, greedy, own, 1, options=ONE_CARD)
    assert len(found) == 1 and found[0].filename == __file__
    with pytest.warns(UserWarning, match=SAID) as found:
        review_policy(own, 2, "search:2", ONE_CARD)
    assert len(found) == 1 and found[0].filename == __file__
    code, output = run("compare", GAME.name, "greedy", mine, "--pairs", 1, "-o", "deals=[1]", "--apart", "bidding")
    assert code == 0 and output.count("was trained with") == 1


def test_a_folders_name_does_not_speak_to_the_terminal(mine: str) -> None:
    """Its control characters are spelled out in warnings of Python, and in those of the command."""
    name = "./x\x1b]0;pwned\x07\x1b[2J\x9b2J"
    Path(mine).rename(name)
    with pytest.warns(UserWarning, match="was trained with") as found:
        play_pairs(GAME, name, "greedy", 1, options=ONE_CARD)
    assert r"x\x1b]0;pwned\x07\x1b[2J\x9b2J was" in str(found[0].message)
    _, output = run("compare", GAME.name, "greedy", name, "--pairs", 1, "-o", "deals=[1]")
    assert "was trained with" in output and not {"\x1b", "\x07", "\x9b"} & set(output)


def test_the_same_options_and_unknown_ones_pass(mine: str) -> None:
    """Shipped networks never warn: their strength is measured."""
    with warnings.catch_warnings(action="error"):
        play_pairs(GAME, load_opponent(mine, GAME), load_opponent("random", GAME), 1, options={"deals": "single"})
        play_pairs(GAME, load_opponent("small", GAME), load_opponent("random", GAME), 1, options=ONE_CARD)
    for options in ({"deals": "single"}, {"deals": "single", "reward": "win"}):
        assert not Contest(GAME, (mine, "strong"), options=tuple(options.items())).warnings()


@pytest.mark.parametrize(
    ("trained", "warned"),
    [(None, False), ({}, True), ({"deals": [1]}, False), ({"no_such": 1}, False), ({"blooper_turned": "redraw"}, True)],
)
def test_options_are_compared_with_their_defaults(trained: dict[str, Any] | None, warned: bool) -> None:
    """Also of a network in a search, and in a part of the game."""
    for name in ("small", "search:2,prior=small", "bidding=small+greedy"):
        opponent = load_opponent(name, GAME)
        for part in opponent.policy.parts():
            if isinstance(part, TrainedPolicy):
                part.trained_options = trained
        assert bool(unlike_training(name, opponent.policy, GAME, ONE_CARD)) == warned
