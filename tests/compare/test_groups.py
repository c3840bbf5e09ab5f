"""Several trainings as one method: intervals hold over trainings and deals, and groups are compared."""

from __future__ import annotations

import json
from itertools import product
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare._groups import improvement, over_trainings, parse_groups
from card_envs.compare.pairs import play_pairs
from card_envs.scaffold.high_card import GAME
from tests.conftest import run

TIMES, DEALS = 2000, 100
ERROR = 3 * sqrt(0.05 * 0.95 / TIMES)
# Standard deviations between trainings, between deals, and of a training on a deal.
SPREADS = {"trainings": (1, 1, 3), "deals": (0.02, 4, 4), "both": (0.5, 3, 6), "games alone": (0, 0, 5)}


def results(rng: np.random.Generator, trainings: int, spread: tuple[float, float, float]) -> NDArray[np.float64]:
    """[R, N] margins whose true mean is 0; deals are skewed, as margins are."""
    between, deals, alone = spread
    of_deals = rng.exponential(size=DEALS) - 1
    noise = rng.normal(size=(trainings, DEALS))
    return between * rng.normal(size=(trainings, 1)) + deals * of_deals + alone * noise


@pytest.mark.parametrize(("trainings", "kind"), [*product((3, 10), SPREADS)])
def test_means_over_trainings_are_held(trainings: int, kind: str) -> None:
    """95 of 100 intervals hold the mean that more trainings and deals would have; also of two methods, of which each
    has as many trainings."""
    rng, held, held_of_two, width = np.random.default_rng(0), 0, 0, 0.0
    for _ in range(TIMES):
        values = results(rng, trainings, SPREADS[kind])
        figure = over_trainings(values)
        held += figure.low <= 0 <= figure.high
        width += (figure.high - figure.low) / TIMES
        other = SPREADS[kind][0] * rng.normal(size=(trainings, 1))
        both = over_trainings(values[:, None] - other[None] + rng.normal(size=(trainings, trainings, DEALS)))
        held_of_two += both.low <= 0 <= both.high
    print(f"{trainings} trainings, {kind}: {held / TIMES:.1%} ({width:.2f}); of two {held_of_two / TIMES:.1%}")
    assert held / TIMES > 0.95 - ERROR and held_of_two / TIMES > 0.95 - ERROR
    assert held / TIMES < 0.99 or kind == "games alone"


@pytest.mark.parametrize(("first", "second"), [(3, 1), (3, 3), (5, 10), (10, 10)])
def test_probabilities_of_improvement_are_held(first: int, second: int) -> None:
    """Wherever two methods stand to each other; against a single player they are shares of the trainings."""
    rng = np.random.default_rng(1)
    for truth, shift in ((0.5, 0.0), (0.76, 1.0), (0.92, 2.0)):
        held = 0
        for _ in range(TIMES):
            other = rng.normal(size=second) if second > 1 else np.zeros(1)  # a player that is always the same
            spread = 1.0 if second > 1 else sqrt(2)
            figure = improvement(np.subtract.outer(rng.normal(shift, spread, first), other))
            held += figure.low <= truth <= figure.high
        assert held / TIMES > 0.935 - ERROR, (truth, held)


def test_the_probability_of_improvement_is_that_of_the_field() -> None:
    """As `rliable.metrics.probability_of_improvement` computes it for one task: a tie is one half."""
    figure = improvement(np.subtract.outer([1.0, 2.0, 3.0], [2.0, 0.0]))
    assert (
        figure.mean == pytest.approx((0 + 1 + 0.5 + 1 + 1 + 1) / 6) and 0 < figure.low < figure.mean < figure.high < 1
    )


def test_one_training_is_an_agent() -> None:
    values = np.random.default_rng(0).exponential(size=(1, 50))
    figure, same = over_trainings(values), over_trainings(np.repeat(values, 1, axis=0)[:, None])
    assert figure == same and 0 < figure.low < values.mean() < figure.high


def test_groups_are_compared(tmp_path: Path) -> None:
    """With each other, and with players of no group; the table says so, also where folders are trainings."""
    words = ("compare", "high_card", "trivial", "--group", "a=greedy,random", "--group", "b=random,trivial,greedy")
    code, output = run(*words, "--pairs", 40, "--json", tmp_path / "g.json")
    assert code == 0 and "several trainings, one method" in output and "2 and 3 trainings" in " ".join(output.split())
    figures = json.loads((tmp_path / "g.json").read_text())
    assert [(group["first"], group["second"]) for group in figures["groups"]] == [
        ("a", "b"), ("a", "trivial"), ("b", "trivial")
    ]  # fmt: skip
    over = [float(play_pairs(GAME, name, "trivial", 40).margins.mean()) for name in ("greedy", "random")]
    of_a = figures["groups"][1]
    assert of_a["margin"]["mean"] == pytest.approx(np.mean(over), abs=0.2)
    assert of_a["trainings"] == [2, 1] and of_a["lowest"] <= of_a["margin"]["mean"] <= of_a["highest"]
    twelfths = 12 * figures["groups"][0]["improvement"]["mean"]
    assert twelfths == pytest.approx(round(twelfths))


def test_the_trainings_of_a_group_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine_1/opponent", "mine_2/opponent", "mine_10", "other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert parse_groups(["mine=runs/mine_*", "a=greedy,search:8,moves=turn"]) == (
        ("mine", ("runs/mine_1/opponent", "runs/mine_10", "runs/mine_2/opponent")),
        ("a", ("greedy", "search:8,moves=turn")),
    )  # fmt: skip
    for wrong in ("mine", "mine=runs/o*", "=greedy,random", "mine="):
        with pytest.raises(ValueError, match="group: expected NAME=FOLDER"):
            parse_groups([wrong])
