"""The standard measure: its scale, its anchors, and that a score is what the games of its contest say."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from card_envs.compare._score import SCALE, measures
from card_envs.compare.pairs import play_pairs
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents.policy import Policy
from card_envs.opponents.scripted import RandomPolicy
from tests.conftest import run

STRENGTH = Path(__file__).parents[2] / "strength"
TEAMS = next(game for game in GAMES.values() if 1 < game.num_sides < game.rules.NUM_SEATS)
WORDS = ("score", "random", "--game", TEAMS.name, "--quick")


@pytest.mark.parametrize("quick", [False, True])
def test_anchors_define_the_scale(quick: bool) -> None:
    for name, measure in measures(quick).items():
        margins = list(measure.anchors.values())
        assert [measure.on_scale(margin) for margin in margins] == pytest.approx(SCALE)
        low, high = margins[0] - 1, margins[-1] + 1
        assert measure.on_scale(low) < 0 and measure.on_scale(high) > 100  # lines go on
        assert measure.contest.game is GAMES[name] and measure.name == "card_envs-1" + "-quick" * quick


def test_anchors_are_what_the_command_measured() -> None:
    """They and the table of all shipped players are from the same runs."""
    scores = json.loads((STRENGTH / "scores.json").read_text())["scores"]
    for name, measure in measures(quick=False).items():
        mine = {score["name"]: score for score in scores if score["game"] == name}
        for anchor, margin in measure.anchors.items():
            assert mine[anchor]["margin"]["mean"] == pytest.approx(margin, abs=1e-3)
        for score in mine.values():
            assert score["score"]["mean"] == pytest.approx(measure.on_scale(score["margin"]["mean"]), abs=0.05)
            assert score["results"]["pairs"] == measure.pairs and score["provenance"]["digests"]


def test_a_score_is_that_of_its_games(tmp_path: Path) -> None:
    code, output = run(*WORDS, "--json", tmp_path / "s.json")
    text, measure = " ".join(output.split()), measures(quick=True)[TEAMS.name]
    assert code == 0 and "card_envs-1-quick" in text and "random 0, greedy 50, strong 100" in text
    figures = json.loads((tmp_path / "s.json").read_text())
    assert " ".join(figures["how"].split()) in text and figures["provenance"]["command"]
    (score,) = figures["scores"]
    options = dict(measure.contest.options)
    leads = np.array([
        play_pairs(TEAMS, rival, "random", measure.pairs, measure.contest.seed, options=options).margin_per_episode.mean
        for rival in measure.contest.names
    ])  # fmt: skip
    assert [-score[f"over_{rival}"]["mean"] for rival in measure.contest.names] == pytest.approx(leads, abs=5)
    assert score["margin"]["mean"] == pytest.approx(
        np.mean([score[f"over_{r}"]["mean"] for r in measure.contest.names])
    )
    low, mean, high = (measure.on_scale(score["margin"][end]) for end in ("low", "mean", "high"))
    assert score["score"] == pytest.approx({"mean": mean, "low": low, "high": high}, rel=1e-6)
    assert score["provenance"]["digests"].keys() == {"random", *measure.contest.names}


def test_methods_and_formats() -> None:
    """A method has the spread of its trainings, and is compared with others."""
    words = (*WORDS, "--group", "both=greedy,trivial", "--format")
    code, output = run(*words, "markdown")
    assert code == 0 and "2 trainings of both have scores from " in output
    assert f"{TEAMS.title}: a training of random is better than both: 0.00 % (" in output
    records = list(csv.DictReader(io.StringIO(run(*words, "csv")[1])))
    assert [record["name"] for record in records] == ["random", "both"]
    assert float(records[0]["score_low"]) < float(records[0]["score"]) < 10


def for_teams(game: Game) -> Policy:
    """A user's function that makes a policy, but for one game alone."""
    if game is not TEAMS:
        raise ValueError("only with partners")
    return RandomPolicy()


@pytest.mark.mechanics
def test_games_that_a_class_does_not_play_are_named() -> None:
    code, output = run("score", f"{__name__}:for_teams", "--quick", "--format", "csv")
    assert code == 0 and output.count("left out: ") == output.count("only with partners") == len(measures(True)) - 1
    assert output.count(f"card_envs-1-quick,{TEAMS.name},{__name__}:for_teams") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("score",), "expected agents"), (("score", "random", "--game", "high_card"), "one of"),
        (("score", "nobody", "--quick"), "unknown opponent 'nobody'"), ((*WORDS, "--format", "x"), "format"),
    ],
)  # fmt: skip
def test_what_is_no_agent_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run(*words)
