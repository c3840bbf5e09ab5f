"""The code that trains on a GPU, run on the CPU, beside the code that it stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from card_envs import get_game, load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.opponents.networks.policies import input_fields
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.training.conftest import check_high_card
from training.algorithms.ppo import PPO
from training.config import Config
from training.data import GREEDY, LEARNER, POOL, Rollout
from training.experimental.gpu import GpuPPO, TensorRollout, device_of, draw, gae_advantages
from training.gae import gae_advantages as gae_on_the_cpu
from training.networks import DeviceRows, Network, Rows
from training.ranks import Ranks
from training.run import Run

CPU = torch.device("cpu")
GAME = get_game("back_alley")
OPTIONS = {"deals": "single"}


def config(**settings: Any) -> Config:
    return Config(**{"game": GAME.name, "minutes": 1, "num_envs": 40, "num_steps": 60, "hidden": [64], **settings})


def actor(seed: int, bf16: bool = False) -> Network:
    torch.manual_seed(seed)
    network = Network(input_fields(GAME.rules), [64], GAME.rules.NUM_ACTIONS, 3.0)
    network.bf16 = bf16
    return network


def critic() -> Network:
    torch.manual_seed(9)
    return Network(GAME.rules.FULL_FIELDS, [64], 1, 1.0)


def played(opponent: Network | None = None, **settings: Any) -> TensorRollout:
    rollout = TensorRollout(GAME, config(**settings), OPTIONS, [0], CPU)
    rollout.collect(actor(1), opponent)
    return rollout


@pytest.mark.parametrize("seats", [1, 2, 4])
def test_advantages_are_those_of_the_cpu_bit_by_bit(seats: int) -> None:
    rng = np.random.default_rng(0)
    shape = (64, 300)
    seat = rng.integers(0, seats, shape).astype(np.int8)
    learned, done = rng.random(shape) < 0.8, rng.random(shape) < 0.05
    rewards, last = (rng.standard_normal((*size, seats)).astype(np.float32) for size in (shape, shape[1:]))
    values = rng.standard_normal(shape).astype(np.float32)
    arrays = seat, learned, rewards, done, values, last
    tensors: Any = *map(torch.from_numpy, arrays), 0.95
    found = gae_advantages(*tensors)
    np.testing.assert_array_equal(found.numpy(), gae_on_the_cpu(*arrays, 0.95))


def test_dense_first_layers_agree_with_sparse_ones() -> None:
    """In value and gradient, to rounding in 32 bits and within 16-bit error in 16."""
    rollout = played()
    seen = rollout.seen.flatten(0, 1)[:512]
    sparse = Rows(seen.numpy().copy(), actor(1).scale)
    outputs: dict[str, torch.Tensor] = {}
    gradients: dict[str, Any] = {}
    for name, bf16, rows in (
        ("sparse", False, sparse),
        ("dense", False, DeviceRows(seen)),
        ("bf16", True, DeviceRows(seen)),
    ):
        network = actor(1, bf16)
        output = network(rows, np.arange(512) if isinstance(rows, Rows) else slice(None))
        output.square().mean().backward()
        outputs[name], gradients[name] = output.detach(), network.first_weight.grad
    scale = outputs["sparse"].abs().max()
    assert (outputs["dense"] - outputs["sparse"]).abs().max() < 1e-5 * scale
    assert (outputs["bf16"] - outputs["sparse"]).abs().max() < 2e-2 * scale
    largest = gradients["sparse"].abs().max()
    assert (gradients["dense"] - gradients["sparse"]).abs().max() < 1e-5 * largest
    assert (gradients["bf16"] - gradients["sparse"]).abs().max() < 5e-2 * largest


def test_a_forward_pass_is_one_graph() -> None:
    """Nothing in it needs Python between two kernels, so that it can be compiled or captured as a whole."""
    network, seen = actor(1, bf16=True), played().seen[0]

    def forward(obs: torch.Tensor) -> torch.Tensor:
        return network(DeviceRows(obs), slice(None)).log_softmax(dim=1)

    with torch.no_grad():
        torch.testing.assert_close(torch.compile(forward, backend="eager", fullgraph=True)(seen), forward(seen))


def test_draws_are_legal_and_have_their_probabilities() -> None:
    logits = torch.tensor([1.0, 50.0, -1.0, 0.0, 2.0]).repeat(200_000, 1)
    mask = torch.tensor([1, 0, 1, 0, 1], dtype=torch.int8).repeat(200_000, 1)
    actions, log_probs = draw(logits, mask, torch.Generator().manual_seed(0))
    expected = logits[0].masked_fill(mask[0] == 0, -torch.inf).softmax(0)
    shares = torch.bincount(actions, minlength=5) / len(actions)
    assert (shares - expected).abs().max() < 0.005 and (shares[mask[0] == 0] == 0).all()
    torch.testing.assert_close(log_probs, expected.log()[actions])


def test_a_rollout_is_what_the_rules_make_of_its_actions() -> None:
    """Every buffer beside those of `Rollout`, whose tables the same actions are played at."""
    rollout = played(actor(2), pool_share=0.25, greedy_share=0.1)
    plain = Rollout(GAME, rollout.config, OPTIONS, [0])
    env, size = plain.env, GAME.rules.OBS_SIZE
    full, greedy = np.zeros((40, GAME.rules.FULL_SIZE), np.int8), np.zeros(40, np.int64)
    np.testing.assert_array_equal(rollout.players, plain.players)
    for t in range(60):
        env.observe_all(full)
        env.bot_actions("greedy", greedy)
        for found, expected in (
            (rollout.seen[t, :, :size], env.obs), (rollout.seen[t, :, size:], env.mask), (rollout.full[t], full),
            (rollout.seat[t], env.seat), (rollout.baseline[t], greedy),
        ):  # fmt: skip
            np.testing.assert_array_equal(found, expected)
        mover = plain.players[np.arange(40), env.seat]
        np.testing.assert_array_equal(rollout.learned[t], (mover == LEARNER) & (env.mask.sum(1, dtype=int) > 1))
        np.testing.assert_array_equal(rollout.actions[t].numpy()[mover == GREEDY], greedy[mover == GREEDY])
        for network, player in ((actor(1), LEARNER), (actor(2), POOL)):
            tables = np.flatnonzero(mover == player)
            with torch.no_grad():
                logits = network(DeviceRows(rollout.seen[t]), torch.from_numpy(tables))
            log_all = logits.masked_fill(torch.from_numpy(env.mask[tables] == 0), -torch.inf).log_softmax(1)
            taken = rollout.actions[t][tables, None]
            torch.testing.assert_close(rollout.log_probs[t][tables], log_all.gather(1, taken)[:, 0])
        env.step(rollout.actions[t].numpy())
        plain.episodes.note(rollout.actions[t].numpy())
        np.testing.assert_array_equal(rollout.rewards[t], env.rewards)
        np.testing.assert_array_equal(rollout.done[t], env.done)
        plain.rewards[t], plain.done[t] = env.rewards, env.done
    assert rollout.done.any() and (mover == POOL).any()
    for player in (POOL, GREEDY):
        assert rollout.margin_over(player) == pytest.approx(plain.margin_over(player))
    for name, array in plain.episodes.memory().items():
        own = rollout.episodes.memory()[name]
        np.testing.assert_array_equal(own, array)
        assert own.dtype == array.dtype


def test_a_batch_is_that_of_the_cpu() -> None:
    """Values and advantages of the same rollout, from sparse rows and from tensors."""
    one = GpuPPO(config(pool_share=0.2), Ranks())
    rollout: Any = one.rollout
    assert isinstance(rollout, TensorRollout)
    rollout.collect(one.actor, None)
    found = one.batch()
    plain = PPO(config(pool_share=0.2), Ranks())
    other = plain.rollout
    other.collect(plain.actor, None)  # for what follows from actions alone
    for name in ("seen", "full", "seat", "actions", "learned", "rewards", "done", "baseline", "log_probs"):
        getattr(other, name)[:] = getattr(rollout, name).numpy()
    other.env.states[:] = rollout.env.read_states()
    expected = plain.batch()
    for name in ("mask", "actions", "log_probs", "expert", "rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("advantages", "returns"):
        two, three = (getattr(batch, name)[batch.rows] for batch in (found, expected))
        np.testing.assert_allclose(two, three, atol=1e-5)


def test_a_rollout_goes_on_from_its_memory_here_and_there() -> None:
    """The same bytes in tensors, and the same tables where none are."""
    one = played()
    arrays, facts = one.memory()
    one.collect(actor(1), None)
    for kind in (TensorRollout, Rollout):
        more: Any = [CPU] if kind is TensorRollout else []
        other = kind(GAME, config(), OPTIONS, [99], *more)
        other.restore((arrays, facts))
        other.collect(actor(1), None)
        np.testing.assert_array_equal(one.seen[0], other.seen[0])
        if kind is TensorRollout:
            for name in ("seen", "full", "actions", "log_probs", "rewards", "done"):
                assert torch.equal(getattr(one, name), getattr(other, name))


def test_a_run_resumes_exactly_in_tensors_and_goes_on_without(tmp_path: Path) -> None:
    settings = config(
        num_envs=16, num_steps=8, hidden=[8], minibatch_size=64, pool_size=5, minutes=None, decisions=3000
    )
    path = tmp_path / "checkpoint.safetensors"
    one = Run(settings, create=GpuPPO)
    for _ in range(3):
        one.iterate()
    one.save_checkpoint(path)
    one.iterate()
    for kind in (GpuPPO, PPO):
        other = Run(settings, create=kind)
        other.load_checkpoint(path)
        other.iterate()
        mine, theirs = one.algorithm.memory()[0], other.algorithm.memory()[0]
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine) == (kind is GpuPPO)
        assert other.decisions > 0
    one.save(tmp_path / "opponent")
    assert play_pairs(GAME, load_opponent(tmp_path / "opponent"), load_opponent("greedy", GAME), 2).decisions[0] > 0


def test_high_card_is_learned_in_tensors() -> None:
    """As well as by the code for CPUs: see `test_high_card_is_learned`."""
    settings = config(
        game=HIGH_CARD.name, minutes=None, decisions=150_000, num_envs=256, num_steps=24, hidden=[64],
        minibatch_size=1024, learning_rate=5e-3, reward_scale=1,
    )  # fmt: skip
    run = Run(settings, create=GpuPPO)
    while run.progress < 1:
        entry = run.iterate()
    assert np.isfinite([entry["value_error"], entry["value_slope"], entry["approx_kl"]]).all()
    check_high_card(run)


def test_without_a_gpu_training_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert device_of("cpu") == CPU
    with pytest.raises(ValueError, match=r"device = 'cuda': torch .* finds no GPU here"):
        Run(config(device="cuda"))
    with pytest.raises(ValueError, match="learned on the CPU only"):
        config(device="cuda", network="afterstates")


@pytest.mark.gpu
def test_high_card_is_learned_on_a_gpu(tmp_path: Path) -> None:
    settings = config(
        game=HIGH_CARD.name, minutes=None, decisions=2_000_000, num_envs=4096, num_steps=24, hidden=[64],
        minibatch_size=8192, learning_rate=5e-3, reward_scale=1, device="cuda",
    )  # fmt: skip
    run = Run(settings)
    while run.progress < 1:
        run.iterate()
    check_high_card(run)
    path = tmp_path / "checkpoint.safetensors"
    run.save_checkpoint(path)
    Run(settings.changed(device="cpu")).load_checkpoint(path)
