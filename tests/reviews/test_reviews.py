"""Reviews: what moves cost, from what their seat could know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import card_envs
from card_envs.__main__ import STOPPED, app
from card_envs.compare.contests import Contest
from card_envs.compare.games import GamePlan, Plan
from card_envs.engine.table import Table
from card_envs.envs.aec import env_with
from card_envs.game import Game, State
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.folder import golden_decisions, save_network
from card_envs.opponents.networks.policies import NetworkPolicy
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.opponents.scripted import RandomPolicy
from card_envs.opponents.search._budget import new_stats
from card_envs.opponents.search._lines import write_cost
from card_envs.play.episode import Episode
from card_envs.record import GameRecord
from card_envs.reviews import MoveJudge, review, review_policy
from card_envs.reviews._review import CostSummary, ReviewedMove, ReviewTask, record_decisions, sample_decisions
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import play_randomly, positions, redealt, run, short_options, some, untrained

BY = "search:16"
TRIES = 400


def played(game: Game, moves: int = 30) -> GameRecord:
    env = env_with(game, short_options(game))
    env.reset(seed=3)
    return play_randomly(env, 3, moves=moves).record()


@pytest.mark.mechanics
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


@pytest.mark.mechanics
def test_the_judges_own_moves_cost_nothing(game: Game) -> None:
    states = some(positions(game), 20)
    judge, decisions = MoveJudge(load_opponent(BY, game)), decisions_at(game, states)
    best, costs, errors = judge.costs(decisions, decisions.bot_moves("greedy"), np.random.default_rng(1))
    assert np.isfinite(costs).all() and np.isfinite(errors).all() and (errors >= 0).all()
    again, none, sure = judge.costs(decisions, best, np.random.default_rng(2))  # the choice has no seed
    np.testing.assert_array_equal(again, best)
    assert not none.any() and not sure.any()


@pytest.mark.few_games
def test_a_move_that_can_still_be_made_costs_nothing(game: Game) -> None:
    """The judge's line with its first two moves swapped, where that leads to what the seat would see anyway."""
    judge, delayed = MoveJudge(load_opponent(f"{BY},moves=turn", game)), 0
    for state in some(positions(game), 400):
        decisions = decisions_at(game, np.array([state], game.rules.STATE))
        line = judge._own_line(decisions, decisions._trusted_states())
        first, second = (int(action) for action in line[:2])
        ends = [swapped(game, state, pair) for pair in ((first, second), (second, first))]
        if ends[0] is None or ends[0] != ends[1]:
            continue
        best, costs, errors = judge.costs(decisions, np.array([second]), np.random.default_rng(1))
        assert (best[0], costs[0], errors[0]) == (first, 0, 0)
        delayed += 1
    if not delayed:
        pytest.skip("no two moves of a turn can change places here")


def swapped(game: Game, state: State, actions: tuple[int, int]) -> bytes | None:
    """What the seat sees after two moves of one turn that reveal nothing; None if they are something else."""
    table, seat = Table(game, state), state.seat
    reveals = game.rules.reveals
    for action in actions:
        if action < 0 or table.needs_deal or table.seat != seat or not table.legal()[action]:
            return None
        if getattr(reveals, "py_func", reveals)(table.state, action):
            return None
        table.play(action)
    return None if table.needs_deal or table.seat != seat else bytes(table.observe(seat))


def test_errors_know_what_was_not_drawn() -> None:
    """Two moves that did the same in all worlds may differ in one that was not drawn, by what the deal still brings."""
    state, decisions = priced(TINY)
    judge = MoveJudge(load_opponent(BY, TINY))
    stats = new_stats(1, TINY.rules.NUM_ACTIONS)
    stats.worlds[:], stats.sums[:], stats.squares[:] = 100, 300.0, 1000.0  # mean 3, mean square 10
    found = np.zeros(2)
    judge._loop(write_cost)(decisions._trusted_states(), stats, 0, 1, found)
    now = float(getattr(TINY.rules.score_margin, "py_func", TINY.rules.score_margin)(state, state.seat))
    assert found.tolist() == [0, pytest.approx(np.sqrt(max(1, 10 - 6 * now + now**2)) / 100)]


def priced(game: Game) -> tuple[State, Decisions]:
    state = some(positions(game), 1)[0]
    return state, decisions_at(game, np.array([state], game.rules.STATE))


@pytest.mark.mechanics
def test_a_policy_is_judged_by_whole_games(game: Game) -> None:
    """All games to their ends, on the same deals for all; each decision stands for its share of its own game."""
    options, games = short_options(game), 3
    for name in ("random", "greedy"):
        sample = sample_decisions(GamePlan(game, [name], 5, tuple(options.items()), keep_moves=True), 10, games)
        assert set(sample.game) == set(range(games)) and (sample.number < sample.length).all()
        for number in range(games):
            own = sample.at(np.flatnonzero(sample.game == number))
            assert len(own.action) == (4 if number == 0 else 3) or own.weight[0] == 1  # or all that there are
            assert len(set(own.length)) == 1 and own.weight.sum() <= own.length[0]
            dealt = Episode(game, game.validated(options), seed=5, number=number).table.states[0]
            first = int(own.number.argmin())
            assert own.number[first] > 0 or clean(own.states[first]) == clean(dealt)


def clean(state: State) -> list[list[object]]:
    return [np.asarray(state[name]).tolist() for name in state.dtype.names]


def test_sums_of_a_sample_by_hand() -> None:
    """Two games of 6 and 3 decisions, of which 2 and 1 were judged."""
    moves = [costing(game, cost, weight) for game, cost, weight in ((0, 1.0, 3.0), (0, 3.0, 3.0), (1, 5.0, 3.0))]
    found = CostSummary.of(moves, games=2, sides=2)
    assert found.decisions == 3
    assert found.cost == pytest.approx((12 + 15) / 9)
    assert found.total == pytest.approx((12 + 15) / 2 / 2)
    assert np.isnan(found.error) and np.isnan(found.total_error)  # of two games
    assert CostSummary.of([], games=2).decisions == 0


def costing(game: int, cost: float, weight: float = 1.0, error: float = 0.1) -> ReviewedMove:
    return ReviewedMove(game, 0, 0, "all", "a", "b", cost, error, weight, {})


@pytest.mark.parametrize("games", [50, 200])
def test_errors_over_games_hold(games: int) -> None:
    """Of skewed costs, in games of different lengths, of which as many are judged as in a review."""
    rng = np.random.default_rng(games)
    lengths = rng.integers(20, 200, 2000)
    costs = [rng.gamma(0.3, 3.0, n) * rng.gamma(1.0, 1.0) for n in lengths]
    truth = np.array([sum(map(np.sum, costs)) / lengths.sum(), np.mean([each.sum() for each in costs])])
    held = np.zeros(2)
    for _ in range(TRIES):
        chosen = rng.integers(0, len(costs), games)
        moves = [
            costing(k, cost, lengths[i] / 6) for k, i in enumerate(chosen) for cost in rng.choice(costs[i], 6, False)
        ]
        found = CostSummary.of(moves, games)
        off = np.abs(np.array([found.cost, found.total]) - truth)
        held += off <= 2 * np.array([found.error, found.total_error])
    assert (held >= 0.93 * TRIES).all() and (held <= 0.995 * TRIES).all(), held / TRIES


def test_a_retrained_folder_plays_with_its_new_weights(tmp_path: Path) -> None:
    """In comparisons and reviews of the same process."""
    folder, found, asked = tmp_path / "mine", [], decisions_at(TINY, some(positions(TINY), 20))
    network = untrained(TINY, NetworkPolicy, [8])
    for sign in (1, -1):
        trained = NetworkPolicy(TINY, {name: sign * weights for name, weights in network.weights.items()})
        save_network(folder, trained, golden_decisions(TINY), training={}, strength=[])
        contest = Contest(TINY, (str(folder), f"search:8,prior={folder}"))
        plain, searching = contest.load()
        found.append((plain.probabilities(asked), searching.prior.probabilities(asked)))  # type: ignore[attr-defined]
        assert contest.load() == [plain, searching]  # loaded once
    for before, after in zip(*found, strict=True):
        assert not np.array_equal(before, after)


def test_a_lost_trick_is_found() -> None:
    """In the smallest game, the cost of the worst card is what it loses, and the sum over phases is the sum of all."""
    found = review(played(TINY), BY)
    assert found.moves and all(0 <= move.number < 30 for move in found.moves)
    whole = found.phases()["all"]
    assert whole.decisions == len(found.moves) == found.total
    assert whole.total == pytest.approx(sum(move.cost for move in found.moves))
    assert whole.total_error == pytest.approx(np.sqrt(sum(move.error**2 for move in found.moves)))
    assert whole.error == pytest.approx(whole.total_error / found.total)
    assert all(move.cost > 2 * move.error for move in found.costliest())
    assert json.loads(json.dumps(found.as_dict()))["decisions"] == found.total
    assert found.as_dict() == review(played(TINY), BY).as_dict()


def test_a_better_policy_loses_less() -> None:
    one, other = (
        review_policy(load_opponent(name, TINY), 600, BY, games=200).phases()["all"] for name in ("random", "greedy")
    )
    assert one.cost - other.cost > 2 * np.hypot(one.error, other.error)


def test_wrong_arguments() -> None:
    record = played(TINY)
    for by, seat, said in (("greedy", None, "does not search"), ("nobody", None, "unknown opponent"), (BY, 9, "seat")):
        with pytest.raises(ValueError, match=said):
            card_envs.review(record, by, seat)


def test_the_command(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    played(TINY).save(tmp_path / "game.json")
    words = ["review", str(tmp_path / "game.json"), "--by", BY, "--seat", "0"]
    files = ["--json", str(tmp_path / "review.json"), "--picture", str(tmp_path / "review.png")]
    done = CliRunner().invoke(app, [*words, *files])
    assert done.exit_code == 0, done.output
    assert "judged by search:16" in done.output and "not worse" in done.output
    assert json.loads((tmp_path / "review.json").read_text())["judge"] == BY
    assert (tmp_path / "review.png").stat().st_size > 1000


def test_policies_are_judged_beside_their_scores(tmp_path: Path) -> None:
    words = ["compare", TINY.name, "greedy", "random", "--pairs", "4", "--review", "20", "--by", BY]
    done = CliRunner().invoke(app, [*words, "--json", str(tmp_path / "found.json")])
    assert done.exit_code == 0, done.output
    reviews = json.loads((tmp_path / "found.json").read_text())["reviews"]
    assert reviews.keys() == {"greedy", "random"} and all(one["decisions"] == 20 for one in reviews.values())
    assert "costliest moves" in done.output and "1 of 44 equal moves" in " ".join(done.output.split())


class Impatient(RandomPolicy):
    """Ctrl-C is pressed at its n-th question."""

    left: ClassVar[int] = 0

    def __init__(self, game: Game) -> None:
        self.game = game

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        Impatient.left -= 1
        if Impatient.left < 0:
            raise KeyboardInterrupt
        return super().probabilities(decisions)


@pytest.mark.parametrize("who", ["player", "judge", "judge of a record"])
def test_ctrl_c_shows_what_is_known_whenever_it_is_pressed(who: str, tmp_path: Path) -> None:
    """While the pairs are played, the games to review or the first decisions are judged, or later."""
    played(TINY).save(tmp_path / "game.json")
    mine, judge = f"{__name__}:Impatient", f"{BY},prior={__name__}:Impatient"
    words = {
        "player": ("compare", TINY.name, "greedy", mine, "--pairs", 1, "--review", 9, "--by", BY),
        "judge": ("compare", TINY.name, "greedy", "trivial", "--pairs", 1, "--review", 9, "--by", judge),
        "judge of a record": ("review", tmp_path / "game.json", "--by", judge, "--picture", tmp_path / "review.png"),
    }[who]
    outputs, code = [], STOPPED
    for patience in (0, *(1 << 2 * k for k in range(8))):
        Impatient.left = patience
        code, output = run(*words, "--json", tmp_path / "found.json")
        outputs.append(output)
        assert "before the first" not in output or "clearly worse" not in output
        if code == 0:
            break
        assert code == STOPPED and "stopped" in output
    assert code == 0 and "judged by" in outputs[-1] and "stopped" not in outputs[-1]
    assert any("stopped before the first decisions were judged" in output for output in outputs)


def test_portions_are_judged_in_any_order() -> None:
    """A review that is stopped has the moves in the order of play."""
    game, decided = record_decisions(played(TINY))
    task = ReviewTask(Plan(game), BY, decided)
    judged = list(task.judge(size=1))
    assert [len(part.moves) for part in judged] == [1] * len(task) and len(task) > 3
    assert task.review(judged[::-1]).as_dict() == task.review(judged).as_dict()
    stopped = task.review([judged[2], judged[0], judged[1]])
    assert [move.number for move in stopped.moves] == sorted(decided.number[:3]) and stopped.total == len(task)
    assert stopped.as_dict()["stopped"]
