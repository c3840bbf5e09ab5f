"""The networks: sparse first layer, and the same answers as the NumPy player that is shipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from card_envs import BatchEnv, get_game
from card_envs.game import Game, Int8s
from card_envs.opponents.networks._sparse import compress
from card_envs.opponents.networks.afterstates import afterstates
from card_envs.opponents.networks.policies import ILLEGAL, NetworkPolicy
from card_envs.opponents.policy import decisions_at
from tests.conftest import positions, some
from training.moves import HostMoves
from training.networks import (
    ROWS_PER_EVALUATION,
    AfterstateActor,
    Inputs,
    Network,
    Observations,
    SparseLinear,
    evaluate_in_parts,
)

GAME = get_game("back_alley")


def sparse_rows(size: int, seed: int = 0) -> Int8s:
    rng = np.random.default_rng(seed)
    obs = rng.integers(-128, 128, (40, size)).astype(np.int8)
    obs[rng.random(obs.shape) < 0.9] = 0
    obs[7] = 0
    obs[8] = -128
    return obs


def seen(obs: Int8s, mask: Int8s, dense: bool = False) -> Observations:
    return Observations(torch.from_numpy(np.hstack([obs, mask])), dense)


@pytest.mark.parametrize(
    ("size", "number", "width"), [(1, 60, 12), (7, 60, 12), (8, 1, 64), (64, 1024, 16), (67, 1100, 84)]
)
def test_sparse_layer_equals_the_dense_one(size: int, number: int, width: int) -> None:
    """Also where there are more rows than are summed up at once."""
    obs = sparse_rows(size)
    rows = torch.from_numpy(np.random.default_rng(1).integers(0, len(obs), number))
    scale = np.linspace(0.01, 1, size, dtype=np.float32)
    torch.manual_seed(0)
    weight, bias = torch.randn(size, width, requires_grad=True), torch.randn(width, requires_grad=True)
    dense = torch.from_numpy(obs[rows.numpy()].astype(np.float32) * scale) @ weight + bias
    sparse = SparseLinear.apply(weight, bias, Observations(torch.from_numpy(obs)).sparse(scale), rows)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(sparse, dense, rtol=1e-4, atol=1e-3)
    towards = torch.randn(number, width)
    expected = torch.autograd.grad(dense, (weight, bias), towards)
    found = torch.autograd.grad(sparse, (weight, bias), towards)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


def test_compress_keeps_every_entry_in_order() -> None:
    obs = sparse_rows(67)
    rows = np.array([8, 7, 3, 3])
    starts, entry, value = compress(obs, rows, np.full(67, 0.5, np.float32))
    for i, row in enumerate(rows):
        found = slice(starts[i], starts[i + 1])
        np.testing.assert_array_equal(entry[found], np.flatnonzero(obs[row]))
        np.testing.assert_array_equal(value[found], obs[row][obs[row] != 0] * 0.5)


@pytest.mark.parametrize("row", [-1, 40])
def test_rows_that_are_not_there_are_refused(row: int) -> None:
    with pytest.raises(IndexError, match="of 40"):
        compress(sparse_rows(8), np.array([0, row]), np.ones(8, np.float32))


@pytest.mark.parametrize("hidden", [[16], [8, 8, 8]])
def test_network_plays_as_the_shipped_player_does(hidden: list[int]) -> None:
    """Also where there are more rows than are valued at once."""
    rules = GAME.rules
    network = Network(GAME.input_fields, hidden, rules.NUM_ACTIONS, 1.0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    env = BatchEnv(GAME, ROWS_PER_EVALUATION["cpu"] + 64, 3)
    for _ in range(30):
        env.step(env.mask.argmax(axis=1))
    found = np.where(
        env.mask != 0,
        evaluate_in_parts(network, seen(env.obs, env.mask), torch.arange(env.num_tables)),
        ILLEGAL,
    )
    expected = NetworkPolicy(GAME, network.weights()).logits({"obs": env.obs, "mask": env.mask})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_dense_first_layers_agree_with_sparse_ones() -> None:
    """In value and gradient, to rounding in 32 bits and within 16-bit error in 16."""
    env = BatchEnv(GAME, 512, 3)
    outputs: dict[str, torch.Tensor] = {}
    gradients: dict[str, Any] = {}
    for name, bf16, observed in (
        ("sparse", False, seen(env.obs, env.mask)),
        ("dense", False, seen(env.obs, env.mask, dense=True)),
        ("bf16", True, seen(env.obs, env.mask, dense=True)),
    ):
        torch.manual_seed(1)
        network = Network(GAME.input_fields, [64], GAME.rules.NUM_ACTIONS, 3.0)
        network.bf16 = bf16
        output = network(observed, slice(None) if observed.dense else torch.arange(512))
        output.square().mean().backward()
        outputs[name], gradients[name] = output.detach(), network.first_weight.grad
    scale, largest = outputs["sparse"].abs().max(), gradients["sparse"].abs().max()
    assert (outputs["dense"] - outputs["sparse"]).abs().max() < 1e-5 * scale
    assert (outputs["bf16"] - outputs["sparse"]).abs().max() < 2e-2 * scale
    assert (gradients["dense"] - gradients["sparse"]).abs().max() < 1e-5 * largest
    assert (gradients["bf16"] - gradients["sparse"]).abs().max() < 5e-2 * largest


def test_networks_begin_orthogonal_and_near_uniform() -> None:
    torch.manual_seed(0)
    network = Network(GAME.rules.OBS_FIELDS, [32], GAME.rules.NUM_ACTIONS, 0.01)
    gram = network.first_weight.detach().t() @ network.first_weight.detach()
    torch.testing.assert_close(gram, 2 * torch.eye(32), atol=1e-4, rtol=0)
    env = BatchEnv(GAME, 16)
    assert evaluate_in_parts(network, Observations(torch.from_numpy(env.obs)), torch.arange(16)).abs().max() < 0.1


def test_no_rows_give_no_answers() -> None:
    network = Network(GAME.rules.OBS_FIELDS, [4], 3, 1.0)
    obs = torch.zeros((2, GAME.rules.OBS_SIZE), dtype=torch.int8)
    assert evaluate_in_parts(network, Observations(obs), torch.arange(0)).shape == (0, 3)


@pytest.mark.mechanics
@pytest.mark.parametrize(("baseline_bonus", "lookahead"), [(0.0, False), (3.0, False), (3.0, True)])
def test_networks_that_see_moves_play_as_their_players_do(game: Game, baseline_bonus: float, lookahead: bool) -> None:
    network = AfterstateActor(game, [16, 8], baseline_bonus, 1.0, lookahead)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        if not baseline_bonus:
            network.move_weight[-1] = 0  # as it stays: nothing shows the network that move
    decisions = decisions_at(game, some(positions(game), 60))
    own = None if baseline_bonus else np.full(60, -1)
    states = some(positions(game), 60)
    after = afterstates(game, states, np.arange(60), own, lookahead)
    inputs = Inputs(seen(decisions.obs, decisions.mask), HostMoves(after, game.rules))
    rows = torch.tensor([3, 59, 3, 0])
    with torch.no_grad():
        everything, some_of_it = (network.logits(inputs, chosen).numpy() for chosen in (torch.arange(60), rows))
    np.testing.assert_allclose(some_of_it, everything[rows], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(network.policy(game).logits_at(decisions), everything, rtol=1e-4, atol=1e-4)


def test_a_move_begins_as_what_it_leads_to() -> None:
    """What a move changes has the weights of the observation's entries, so that the sum is the observation after it."""
    network = AfterstateActor(GAME, [16], 2.0, 0.01)
    size = GAME.rules.OBS_SIZE
    assert torch.equal(network.move_weight[:size], network.first_weight[:size])
    decisions = decisions_at(GAME, some(positions(GAME), 60))
    probabilities = network.policy(GAME).probabilities(decisions)
    assert (probabilities.argmax(axis=1) == decisions.bot_moves("greedy")).mean() > 0.99


class Shapes(TorchDispatchMode):
    """Notes the shapes of what is multiplied with weights."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.overloadpacket.__name__ in ("addmm", "mm", "linear"):
            matrix = args[1] if function.overloadpacket.__name__ == "addmm" else args[0]
            self.seen.add(len(matrix))
        return function(*args, **(kwargs or {}))


def test_products_in_16_bits_are_of_few_shapes() -> None:
    """The library compiles for each shape and keeps what it compiled: memory must not grow with their number."""
    network = Network(GAME.input_fields, [8, 8], 4, 1.0)
    network.bf16 = True
    observed = Observations(torch.from_numpy((sparse_rows(len(network.scale)) != 0).astype(np.int8)))
    alone = evaluate_in_parts(network, observed, torch.arange(40))
    with Shapes() as shapes:
        for size in range(1, 1500, 3):
            rows = torch.randint(0, 40, (size,))
            out = network(observed, rows)
            assert out.shape == (size, 4)
            torch.testing.assert_close(out.detach(), alone[rows], rtol=0.05, atol=0.05)
    assert 0 < len(shapes.seen) <= 100
    out.sum().backward()
    assert network.first_bias.grad is not None and torch.isfinite(network.first_bias.grad).all()
