"""Reviews: what moves cost, from what their seat could know."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import card_envs
from card_envs.__main__ import app
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.opponents.scripted import RandomPolicy
from card_envs.record import GameRecord
from card_envs.reviews import MoveJudge, review, review_policy
from card_envs.reviews._review import Reviewing, positions_of
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import play_randomly, positions, redealt, short_options, some

BY = "search:16"


def played(game: Game, moves: int = 30) -> GameRecord:
    env = CardEnv(game, **short_options(game))
    env.reset(seed=3)
    return play_randomly(env, 3, moves=moves).record()


def test_what_a_seat_cannot_know_changes_nothing(game: Game) -> None:
    """The same costs when everything hidden is drawn again."""
    states = some(positions(game), 20)
    worlds = redealt(game, states, states["seat"], 3)
    judge = MoveJudge(load_opponent(BY, game))
    decisions = decisions_at(game, states)
    actions = np.array([np.flatnonzero(mask)[-1] for mask in decisions.mask])
    ones, others = (
        judge.costs(decisions_at(game, those), actions, np.random.default_rng(1)) for those in (states, worlds)
    )
    for one, other in zip(ones, others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_judges_own_moves_cost_nothing(game: Game) -> None:
    states = some(positions(game), 20)
    judge, decisions = MoveJudge(load_opponent(BY, game)), decisions_at(game, states)
    best, costs, errors = judge.costs(decisions, decisions.bot_moves("greedy"), np.random.default_rng(1))
    assert np.isfinite(costs).all() and np.isfinite(errors).all() and (errors >= 0).all()
    again, none, sure = judge.costs(decisions, best, np.random.default_rng(1))
    np.testing.assert_array_equal(again, best)
    assert not none.any() and not sure.any()


def test_moves_that_a_prior_leaves_out_are_tried(game: Game) -> None:
    """A judge whose prior is sure of its move has tried no other."""
    states = some(positions(game), 20)
    decisions = decisions_at(game, states)
    judge = MoveJudge(load_opponent("search:16,prior=greedy", game))
    actions = np.array([np.flatnonzero(mask)[-1] for mask in decisions.mask])
    _, costs, _ = judge.costs(decisions, actions, np.random.default_rng(1))
    assert np.isfinite(costs).all()


def test_a_lost_trick_is_found() -> None:
    """In the smallest game, the cost of the worst card is what it loses, and the sum over phases is the sum of all."""
    found = review(played(TINY), BY)
    assert found.moves and all(0 <= move.number < 30 for move in found.moves)
    whole = found.phases()["all"]
    assert whole.decisions == len(found.moves) == found.total
    assert whole.total == pytest.approx(sum(move.cost for move in found.moves))
    assert all(move.cost > 2 * move.error for move in found.costliest())
    assert json.loads(json.dumps(found.as_dict()))["decisions"] == found.total
    assert found.as_dict() == review(played(TINY), BY).as_dict()


def test_a_better_policy_loses_less() -> None:
    one, other = (review_policy(load_opponent(name, TINY), 600, BY).phases()["all"] for name in ("random", "greedy"))
    assert one.cost - other.cost > 2 * np.hypot(one.error, other.error)


@pytest.mark.parametrize(
    ("by", "seat", "said"),
    [("greedy", None, "does not search"), ("nobody", None, "unknown opponent"), (BY, 9, "seat"), (BY, -1, "seat")],
)
def test_wrong_arguments(by: str, seat: int | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        card_envs.review(played(TINY), by, seat)


def test_the_command(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    played(TINY).save(tmp_path / "game.json")
    words = ["review", str(tmp_path / "game.json"), "--by", BY, "--seat", "0"]
    files = ["--json", str(tmp_path / "review.json"), "--picture", str(tmp_path / "review.png")]
    done = CliRunner().invoke(app, [*words, *files])
    assert done.exit_code == 0, done.output
    assert "judged by search:16" in done.output and "within" in done.output
    assert json.loads((tmp_path / "review.json").read_text())["judge"] == BY
    assert (tmp_path / "review.png").stat().st_size > 1000


def test_policies_are_judged_beside_their_scores(tmp_path: Path) -> None:
    words = ["compare", TINY.name, "greedy", "random", "--pairs", "4", "--review", "20", "--by", BY]
    done = CliRunner().invoke(app, [*words, "--json", str(tmp_path / "found.json")])
    assert done.exit_code == 0, done.output
    reviews = json.loads((tmp_path / "found.json").read_text())["reviews"]
    assert reviews.keys() == {"greedy", "random"} and all(one["decisions"] == 20 for one in reviews.values())


class Mortal(RandomPolicy):
    """Takes its process with it when it is first asked, once."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        grave = Path(os.environ["TEST_REVIEWS_GRAVE"])
        if not grave.exists():
            grave.touch()
            os._exit(1)
        return super().probabilities(decisions)


def test_a_cluster_judges_as_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a worker is lost."""
    pytest.importorskip("ray")
    monkeypatch.setenv("TEST_REVIEWS_GRAVE", str(tmp_path / "grave"))
    monkeypatch.setattr("card_envs.reviews._review.AT_ONCE", 1)
    by = f"{BY},prior={__name__}:Mortal"
    played(TINY).save(tmp_path / "game.json")
    for number, words in enumerate((["--ray", "local"], [])):
        files = ["--json", str(tmp_path / f"{number}.json")]
        done = CliRunner().invoke(app, ["review", str(tmp_path / "game.json"), "--by", by, *words, *files])
        assert done.exit_code == 0, done.output
        assert (tmp_path / "grave").exists()
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


def test_groups_are_judged_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A review that is stopped has the moves in the order of play."""
    monkeypatch.setattr("card_envs.reviews._review.AT_ONCE", 1)
    game, positions = positions_of(played(TINY))
    forwards, backwards = Reviewing(game, BY, positions), Reviewing(game, BY, positions)
    backwards._groups.reverse()
    for work in (forwards, backwards):
        judged = work.judge()
        assert [next(judged) for _ in range(3)] == [1, 1, 1] and len(work.review.moves) == 3 < work.total
        numbers = [move.number for move in work.review.moves]
        assert numbers == sorted(numbers)
        list(judged)
    assert forwards.review.as_dict() == backwards.review.as_dict()
