"""Advantages over the baseline action: labels against tables that are played on step by step, and learning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from card_envs import load_opponent
from card_envs.engine.batch import BatchEnv
from card_envs.game import Game, Int64s
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import positions, some
from tests.engine.test_gpu import simulated
from training.algorithms import Diverged
from training.algorithms.advantages import SHARPNESS, Advantages
from training.algorithms.labels import Finisher, MoveLabels, finish_by_greedy, phase_deviations
from training.algorithms.playouts import LearnerPlayouts
from training.config import Config
from training.moves import HostMoves
from training.networks import ActorNetwork, Network
from training.ranks import Ranks
from training.rollout import HOST, Rollout
from training.run import Run
from training.tables import HostTables, TensorTables

TABLES = 200


def dealt() -> tuple[BatchEnv, Int64s]:
    env = BatchEnv(HIGH_CARD, TABLES, 3)
    return env, scripted(env)


def scripted(env: BatchEnv) -> Int64s:
    moves = np.zeros(TABLES, np.int64)
    env.bot_actions("greedy", moves)
    return moves


def highest(env: BatchEnv) -> Int64s:
    return env.mask.shape[1] - 1 - env.mask[:, ::-1].argmax(axis=1)


def gained(action: int, player: Callable[[BatchEnv], Int64s] = scripted) -> NDArray[np.floating]:
    """[B] points of the first seat to move after `action`, where that is legal, a player playing on."""
    env, baseline = dealt()
    seat, tables = env.seat.copy(), np.arange(TABLES)
    moves = np.where(env.mask[:, action] != 0, action, baseline)
    sums, running = np.zeros(TABLES), np.ones(TABLES, np.bool_)
    while running.any():
        env.step(moves)
        sums += np.where(running, env.rewards[tables, seat], 0)
        running &= ~env.done
        moves = player(env)
    return sums


def labels_at(
    tables: TensorTables, worlds: int = 1, finish: Finisher = finish_by_greedy, seed: int = 0, most: int = 1000
) -> NDArray[np.float32]:
    """Labels of the first legal moves at tables, at most that many at each."""
    mask = tables.mask.contiguous()
    baseline = torch.zeros(len(mask), dtype=torch.int64, device=mask.device)
    tables.bot_actions("greedy", baseline)
    moves = mask * (mask.cumsum(dim=1) <= most)
    return MoveLabels(tables.game, worlds, finish)(tables, baseline, moves, np.random.default_rng(seed)).cpu().numpy()


def at_states(kind: type[Any], game: Game, states: NDArray[Any]) -> Any:
    tables = kind(game, len(states), 0)
    tables.write_states(states)
    return tables


def test_advantages_are_what_playing_on_brings() -> None:
    env, baseline = dealt()
    tables = HostTables(HIGH_CARD, TABLES, 3)
    found = labels_at(tables)
    assert (tables.env.states == env.states).all()
    results = np.stack([gained(action) for action in range(HIGH_CARD.rules.NUM_ACTIONS)], axis=1)
    # Points are zero-sum: a margin counts each of them twice.
    expected = np.where(env.mask != 0, results - results[np.arange(TABLES), baseline][:, None], 0)
    scale = found[expected != 0] / expected[expected != 0]
    assert len(scale) > 50 and (scale == scale[0]).all() and scale[0] > 0
    assert (found[expected == 0] == 0).all()


def test_drawn_worlds_take_chance_out_of_advantages() -> None:
    env, baseline = dealt()
    tables = HostTables(HIGH_CARD, TABLES, 3)
    one, many = labels_at(tables), labels_at(tables, worlds=256, seed=1)
    np.testing.assert_array_equal(many, labels_at(tables, worlds=256, seed=1))
    others = env.mask != 0
    others[np.arange(TABLES), baseline] = False
    assert (many[~others] == 0).all()
    chance = (one - many)[others]
    assert abs(chance.mean()) < 4 * chance.std() / np.sqrt(len(chance))
    assert many[others].std() < one[others].std()


def test_the_learner_plays_tried_moves_to_the_end() -> None:
    """A network that always plays the legal action of the highest number, beside tables at which that is played."""
    actor = Network(HIGH_CARD.input_fields, [4], HIGH_CARD.rules.NUM_ACTIONS, 0.0)
    with torch.no_grad():
        list(actor.parameters())[-1].copy_(1e3 * torch.arange(HIGH_CARD.rules.NUM_ACTIONS))
    tables = HostTables(HIGH_CARD, TABLES, 3)
    before = tables.env.states.copy()
    playouts = LearnerPlayouts(HIGH_CARD, HOST, actor)
    playouts.at_once = 77  # so that there are several portions
    found = labels_at(tables, finish=playouts)
    assert (tables.env.states == before).all()
    _, baseline = dealt()
    results = np.stack([gained(action, highest) for action in range(HIGH_CARD.rules.NUM_ACTIONS)], axis=1)
    expected = results - results[np.arange(TABLES), baseline][:, None]
    expected[tables.env.mask == 0] = 0
    assert (expected != 0).sum() > 50
    np.testing.assert_array_equal(found, expected)
    assert (found != labels_at(tables)).any()


IN_THE_SIMULATOR = """
import importlib, sys
import numpy as np
from card_envs.engine import gpu
from tests.training.test_advantages import at_states, labels_at

package, folder = sys.argv[1:]
gpu.THREADS = 4
game = importlib.import_module(package).GAME
states = np.load(f"{folder}/states.npy").view(game.rules.STATE)
tables = at_states(gpu.GpuBatchEnv, game, states)
np.save(f"{folder}/labels.npy", labels_at(tables, worlds=2, most=MOST))
"""
MOST = 3  # moves to try at a table in the simulator


@pytest.mark.mechanics
def test_the_simulator_labels_as_the_cpu(game: Game, tmp_path: Path) -> None:
    """A thread for each table and move, in the deal itself and in a drawn world: bit by bit."""
    states = some(positions(game), 12, seed=5)
    np.save(tmp_path / "states.npy", states.view(np.uint8))
    simulated(IN_THE_SIMULATOR.replace("MOST", str(MOST)), game.package, str(tmp_path))
    expected = labels_at(at_states(HostTables, game, states), worlds=2, most=MOST)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)
    assert expected.any()


@pytest.mark.gpu
def test_a_gpu_labels_as_the_cpu(game: Game) -> None:
    from card_envs.engine.gpu import GpuBatchEnv

    states = some(positions(game), 2000, seed=6)
    expected = labels_at(at_states(HostTables, game, states))
    np.testing.assert_array_equal(labels_at(at_states(GpuBatchEnv, game, states)), expected)


def test_spreads_are_those_of_the_best_alternative() -> None:
    found = torch.tensor([[0, 2, -9], [0, 4, 1], [5, 0, -9], [0, 0, 0]], dtype=torch.float32)
    baseline, mask = torch.tensor([0, 0, 1, 2]), torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1], [0, 0, 1]])
    # The best alternatives: 2 and 4 where the baseline is of the first phase, 5 of the second; the last has none.
    np.testing.assert_array_equal(phase_deviations(found, baseline, mask, torch.tensor([0, 1, 1])), [1.0, 1.0])
    np.testing.assert_allclose(phase_deviations(found, baseline, mask, torch.tensor([0, 0, 0])), [np.std([2, 4, 5])])


def config(**more: Any) -> Config:
    return Config(
        **{
            "algorithm": "advantages",
            "game": HIGH_CARD.name,
            "decisions": 150_000,
            "num_envs": 256,
            "num_steps": 24,
            "hidden": [32],
            "minibatch_size": 256,
            "learning_rate": 5e-3,
            **more,
        }
    )


def played(**more: Any) -> Rollout:
    """Return the first rollout of such a run."""
    learner = Advantages(config(num_steps=5, **more), Ranks())
    learner.play(0.0)
    return learner.rollout


def test_every_decision_is_labelled() -> None:
    rollout = played(num_envs=8, greedy_share=0.25)
    tables, learned = Rollout(HIGH_CARD, config(num_envs=8), {}, [0, 1, 0, 0]).tables, rollout.learned[0]
    assert 0 < learned.sum() < 8  # not where `greedy` decides
    moves = rollout.mask[0] * learned[:, None]
    expected = MoveLabels(HIGH_CARD)(tables, rollout.baseline[0], moves, np.random.default_rng(0))
    np.testing.assert_array_equal(rollout.labels[0], expected)
    assert (rollout.labels.numpy()[rollout.mask.numpy() == 0] == 0).all() and (rollout.labels.numpy() != 0).any()
    assert (np.take_along_axis(rollout.labels.numpy(), rollout.baseline.numpy()[..., None], axis=2) == 0).all()


def test_merged_moves_are_not_labelled_and_worlds_take_chance_out() -> None:
    found = []
    for worlds in (1, 16, 16):
        rollout = played(num_envs=64, network="lookahead", advantage_worlds=worlds)
        assert isinstance(rollout.after, HostMoves)
        shown = np.zeros((5 * 64, rollout.mask.numpy().shape[-1]), np.bool_)
        shown[rollout.after.after.decision(), rollout.after.after.action] = True
        assert (rollout.labels.numpy().reshape(shown.shape)[~shown] == 0).all() and (rollout.labels.numpy() != 0).any()
        found.append(rollout.labels.numpy()[0])
    assert found[1][found[1] != 0].std() < found[0][found[0] != 0].std()
    np.testing.assert_array_equal(found[1], found[2])


def test_a_stride_labels_a_share_of_the_decisions() -> None:
    every, fourth = (played(num_envs=512, advantage_stride=stride) for stride in (1, 4))
    assert 0.2 < fourth.learned.numpy().sum() / every.learned.numpy().sum() < 0.3
    assert (fourth.labels.numpy()[~fourth.learned.numpy()] == 0).all()


MOVES = [{"network": name, "baseline_bonus": 1.0} for name in ("afterstates", "lookahead")]
LEARNER = {"advantage_player": "learner", "advantage_stride": 3, "decisions": 100_000}


@pytest.mark.parametrize("more", [{}, pytest.param(MOVES[1], marks=pytest.mark.slow), LEARNER])
def test_advantages_are_learned(more: dict[str, Any]) -> None:
    run = Run(config(sampled=False, **more))
    figures = [run.iterate()]
    while run.progress < 1:
        figures.append(run.iterate())
    assert figures[-1]["advantage_loss"] < 0.8 * figures[0]["advantage_loss"]
    found = run.strength(load_opponent("greedy", HIGH_CARD), 2000).margin_per_episode
    assert found.low > 0.05, found


def test_a_margin_is_chosen_at_the_end() -> None:
    margins = [0.0, 0.1, 1000.0]
    learner = Advantages(config(decisions=1, sampled=False, margins=margins, **MOVES[0]), Ranks())
    before = learner.stored_policy().weights["own"]
    facts = learner.finish()
    assert list(facts["margins"]) == margins and facts["margins"][1000.0] == 0  # it is greedy itself
    assert facts["margin"] == learner.margin == max(margins, key=lambda margin: facts["margins"][margin])
    learner.margin = 0.5
    np.testing.assert_allclose(learner.stored_policy().weights["own"], before + SHARPNESS * 0.5)
    assert Advantages(config(**MOVES[0]), Ranks()).finish() == {}


def test_a_loss_that_is_no_number_stops_before_it_does_harm() -> None:
    learner = Advantages(config(num_envs=8), Ranks())
    learner.play(0.0)
    learner.rollout.labels.numpy()[:] = np.nan
    before = learner.actor.weights()
    with pytest.raises(Diverged) as diverged:
        learner.update(0.0)
    assert np.isnan(diverged.value.arrays["advantages"]).any()
    assert all(np.array_equal(weight, before[name]) for name, weight in learner.actor.weights().items())


def test_what_was_learned_warms_up_ppo(tmp_path: Any) -> None:
    one = Run(config(num_envs=8))
    one.iterate()
    (tmp_path / "run").mkdir()
    one.save_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    settings: dict[str, Any] = {"game": HIGH_CARD.name, "decisions": 10, "num_envs": 8, "hidden": [32]}
    other = Run(Config(**settings, warm_start=str(tmp_path / "run")))
    actors: list[ActorNetwork] = [run.algorithm.actor for run in (one, other)]  # type: ignore[attr-defined]
    for name, weight in actors[0].weights().items():
        np.testing.assert_array_equal(actors[1].weights()[name], weight)
