"""Rollouts: legal and exactly recorded decisions, and the opponent pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from card_envs import BatchEnv, get_game
from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.policies import AfterstatePolicy, LookaheadPolicy
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.opponents.networks.test_folder import saved
from tests.training.conftest import TENSORS
from training.algorithms.self_play import AskedPlayer, PolicyPool, pool_opponents
from training.config import Config
from training.moves import HostMoves
from training.networks import ActorNetwork, AfterstateActor, Inputs, Network, Observations
from training.rollout import (
    GREEDY,
    HOST,
    LEARNER,
    POOL,
    Backend,
    Rollout,
    _draw_actions,
    backend_of,
    draw_by_noise,
)
from training.tables import HostTables

GAME = get_game("back_alley")
OPTIONS = {"deals": "single"}


def actor(seed: int, sees_moves: bool = False, lookahead: bool = False) -> ActorNetwork:
    torch.manual_seed(seed)
    if sees_moves:
        return AfterstateActor(GAME, [16], 2.0, 3.0, lookahead)
    return Network(GAME.input_fields, [16], GAME.rules.NUM_ACTIONS, 3.0)


def dealt(seed: int = 0, num_envs: int = 40, backend: Backend = HOST, **settings: Any) -> Rollout:
    config = Config(
        **{"game": GAME.name, "minutes": 1, "pool_share": 0, "greedy_share": 0, **settings},
        num_envs=num_envs,
        num_steps=60,
    )
    return Rollout(GAME, config, OPTIONS, [seed], backend)


def host(rollout: Rollout) -> BatchEnv:
    assert isinstance(rollout.tables, HostTables)
    return rollout.tables.env


def played(opponent: ActorNetwork | None = None, seed: int = 0, sees_moves: bool = False, **settings: Any) -> Rollout:
    rollout = dealt(seed, **settings)
    rollout.collect(actor(1, sees_moves), opponent)
    return rollout


@pytest.mark.parametrize("sees_moves", [False, True])
def test_decisions_are_legal_and_their_probabilities_those_of_the_network(sees_moves: bool) -> None:
    settings: dict[str, Any] = {"network": "afterstates", "baseline_bonus": 2.0} if sees_moves else {}
    rollout = played(sees_moves=sees_moves, **settings)
    mask = rollout.mask.numpy().reshape(-1, GAME.rules.NUM_ACTIONS)
    actions = rollout.actions.numpy().reshape(-1, 1)
    assert np.take_along_axis(mask, actions, axis=1).all()
    with torch.no_grad():
        logits = actor(1, sees_moves).logits(rollout.inputs(), torch.arange(len(mask)))
        log_all = logits.masked_fill(torch.from_numpy(mask == 0), -1e9).log_softmax(dim=1)
    expected = log_all.gather(1, torch.from_numpy(actions))[:, 0]
    np.testing.assert_allclose(rollout.log_probs.numpy().reshape(-1), expected, atol=1e-5)
    np.testing.assert_array_equal(rollout.learned.numpy(), rollout.mask.numpy().sum(axis=2, dtype=int) > 1)


def test_scripted_players_moves_are_not_looked_at() -> None:
    rollout = played(sees_moves=True, network="afterstates", greedy_share=0.5)
    assert isinstance(rollout.after, HostMoves)
    scripted = rollout.players.numpy()[np.arange(40), rollout.seat.numpy()] == GREEDY
    counts = np.diff(rollout.after.after.first).reshape(scripted.shape)
    assert scripted.any() and not counts[scripted].any()
    np.testing.assert_array_equal(counts[~scripted], rollout.mask.numpy().sum(axis=2, dtype=np.int64)[~scripted])
    actions = np.nonzero(rollout.mask.numpy()[~scripted])[1]
    np.testing.assert_array_equal(rollout.after.after.action, actions)


@pytest.mark.slow
def test_moves_that_lead_where_greedys_leads_are_never_played() -> None:
    game = get_game("big_ben")
    config = Config(game=game.name, minutes=1, network="lookahead", baseline_bonus=2.0, num_envs=40, num_steps=60)
    torch.manual_seed(1)
    rollout = Rollout(game, config, {}, [0])
    rollout.collect(AfterstateActor(game, [16], 2.0, 3.0, lookahead=True), None)
    assert isinstance(rollout.after, HostMoves)
    shown = np.zeros((rollout.actions.numpy().size, game.rules.NUM_ACTIONS), np.bool_)
    shown[rollout.after.after.decision(), rollout.after.after.action] = True
    assert shown[np.arange(len(shown)), rollout.actions.numpy().ravel()].all()
    assert shown.sum() < 0.9 * rollout.mask.numpy().sum()


def test_networks_at_a_table_are_of_one_kind() -> None:
    rollout = dealt(network="afterstates", pool_share=0.5)
    with pytest.raises(ValueError, match="can't play at the same tables"):
        rollout.collect(actor(1, sees_moves=True), actor(2, sees_moves=True, lookahead=True))


def test_buffers_belong_together() -> None:
    """A decision's observation, full state, seat and reward come from the same moment."""
    rollout = played()
    size = GAME.rules.OBS_SIZE
    np.testing.assert_array_equal(rollout.full.numpy()[..., :size], rollout.obs.numpy())
    for rows, entries in ((rollout.seen, size + GAME.rules.NUM_ACTIONS), (rollout.full, GAME.rules.FULL_SIZE)):
        assert rows.stride(1) % 16 == rows.data_ptr() % 64 == 0 and rows.shape[2] - entries < 16
        assert not rows[..., entries:].any()
    assert rollout.done.numpy().any()
    assert (rollout.rewards.numpy()[~rollout.done.numpy()] == 0).all()  # a single deal pays at its end
    scores = rollout.rewards.numpy()[rollout.done.numpy()]
    np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])


def test_the_pool_and_greedy_play_one_side_and_are_not_learned_from() -> None:
    rollout = played(actor(2), pool_share=0.25, greedy_share=0.1)
    assert rollout.players.numpy()[:10:2].tolist() == [[POOL, LEARNER, POOL, LEARNER]] * 5
    assert rollout.players.numpy()[1:10:2].tolist() == [[LEARNER, POOL, LEARNER, POOL]] * 5
    assert rollout.players.numpy()[10:14:2].tolist() == [[GREEDY, LEARNER, GREEDY, LEARNER]] * 2
    assert (rollout.players.numpy()[14:] == LEARNER).all()
    mover = rollout.players.numpy()[np.arange(40), rollout.seat.numpy()]
    assert not rollout.learned.numpy()[mover != LEARNER].any()
    assert rollout.learned.numpy()[mover == LEARNER].mean() > 0.9
    np.testing.assert_array_equal(rollout.actions.numpy()[mover == GREEDY], rollout.baseline.numpy()[mover == GREEDY])
    rows = np.flatnonzero((mover == POOL).reshape(-1))
    with torch.no_grad():
        logits = actor(2).logits(rollout.inputs(), torch.from_numpy(rows))
    mask = torch.from_numpy(rollout.mask.numpy().reshape(mover.size, -1)[rows] == 0)
    taken = torch.from_numpy(rollout.actions.numpy().reshape(-1, 1)[rows])
    expected = logits.masked_fill(mask, -1e9).log_softmax(dim=1).gather(1, taken)[:, 0]
    np.testing.assert_allclose(rollout.log_probs.numpy().reshape(-1)[rows], expected, atol=1e-5)


def test_the_baseline_action_is_greedys() -> None:
    rollout = played(greedy_share=1.0)
    env = host(dealt(greedy_share=1.0))
    moves = np.zeros(40, np.int64)
    for t in range(60):
        env.bot_actions("greedy", moves)
        np.testing.assert_array_equal(rollout.baseline.numpy()[t], moves)
        env.step(rollout.actions.numpy()[t], t + 1)


@pytest.mark.parametrize(("player", "share"), [(POOL, "pool_share"), (GREEDY, "greedy_share")])
def test_margins(player: int, share: str) -> None:
    settings: dict[str, Any] = {share: 0.5}
    rollout = dealt(num_envs=4, **settings)
    assert np.isnan(rollout.margin_over(player))
    rollout.done.numpy()[1, :] = True
    rollout.rewards.numpy()[1] = [[-7, 7, -7, 7], [5, -5, 5, -5], [90, -90, 90, -90], [90, -90, 90, -90]]
    assert rollout.margin_over(player) == (7 + 5) / 2


def test_a_rollout_in_tensors_is_what_the_rules_make_of_its_actions() -> None:
    """Every buffer beside tables at which the same actions are played, and what the CPU makes of the same figures."""
    rollout = played(actor(2), backend=TENSORS, pool_share=0.25, greedy_share=0.1)
    plain = dealt(pool_share=0.25, greedy_share=0.1)
    env, full, greedy = host(plain), np.zeros((40, GAME.rules.FULL_SIZE), np.int8), np.zeros(40, np.int64)
    plain.episodes.make_room(60)
    assert torch.equal(rollout.players, plain.players)
    for t in range(60):
        env.observe_all(full)
        env.bot_actions("greedy", greedy)
        mask, seat = env.mask[t], env.seat[t]
        mover = plain.players.numpy()[np.arange(40), seat]
        for found, expected in (
            (rollout.obs[t], env.obs[t]), (rollout.mask[t], mask), (rollout.full[t, :, : full.shape[1]], full),
            (rollout.seat[t], seat), (rollout.baseline[t], greedy),
            (rollout.learned[t], (mover == LEARNER) & (mask.sum(1, dtype=int) > 1)),
            (rollout.actions[t][mover == GREEDY], greedy[mover == GREEDY]),
        ):  # fmt: skip
            np.testing.assert_array_equal(found, expected)
        for network, player in ((actor(1), LEARNER), (actor(2), POOL)):
            tables = torch.from_numpy(np.flatnonzero(mover == player))
            with torch.no_grad():
                logits = network.logits(Inputs(Observations(rollout.seen[t], dense=True), None), tables)
            log_all = logits.masked_fill(rollout.mask[t][tables] == 0, -torch.inf).log_softmax(1)
            taken = rollout.actions[t][tables, None]
            torch.testing.assert_close(rollout.log_probs[t][tables], log_all.gather(1, taken)[:, 0])
        plain.tables.step(rollout.actions[t], t + 1)
        plain.episodes.record(rollout.actions[t], plain.done[t])
    assert torch.equal(rollout.rewards, plain.rewards) and torch.equal(rollout.done, plain.done)
    assert rollout.done.any() and (mover == POOL).any()
    for name, array in plain.episodes.memory().items():
        np.testing.assert_array_equal(rollout.episodes.memory()[name], array)


@pytest.mark.parametrize("backend", [HOST, TENSORS])
def test_a_rollout_goes_on_from_a_memory_of_the_other_backend(backend: Backend) -> None:
    """At the same tables; with the same backend, with the same bytes."""
    one = played(backend=TENSORS)
    memory = one.memory()
    one.collect(actor(1), None)
    other = dealt(seed=99, backend=backend)
    other.restore(memory)
    other.collect(actor(1), None)
    assert torch.equal(one.seen[0], other.seen[0])
    if backend is TENSORS:
        for name in ("seen", "full", "actions", "log_probs", "rewards", "done"):
            assert torch.equal(getattr(one, name), getattr(other, name))


def test_without_a_gpu_training_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert backend_of("cpu") is HOST
    with pytest.raises(ValueError, match=r"device = 'cuda': torch .* finds no GPU here"):
        backend_of("cuda")


def test_draws_by_noise_are_legal_and_have_their_probabilities() -> None:
    logits = torch.tensor([1.0, 50.0, -1.0, 0.0, 2.0]).repeat(200_000, 1)
    mask = torch.tensor([1, 0, 1, 0, 1], dtype=torch.int8).repeat(200_000, 1)
    actions, log_probs = draw_by_noise(logits, mask, torch.Generator().manual_seed(0))
    expected = logits[0].masked_fill(mask[0] == 0, -torch.inf).softmax(0)
    shares = torch.bincount(actions, minlength=5) / len(actions)
    assert (shares - expected).abs().max() < 0.005 and (shares[mask[0] == 0] == 0).all()
    torch.testing.assert_close(log_probs, expected.log()[actions])


def test_draws_have_their_probabilities() -> None:
    logits = np.array([1.0, 50.0, -1.0, 0.0, 2.0], np.float32)
    mask = np.array([[1, 0, 1, 0, 1]], np.int8)
    num = 10_000
    draws = ((np.arange(num) + 0.5) / num).astype(np.float32)
    counts = np.zeros(5)
    log_probs = np.zeros(1, np.float32)
    for draw in draws:
        action = np.zeros(1, np.int64)
        _draw_actions(logits[None], mask, 0, np.zeros(1, np.int64), np.array([draw]), action, log_probs)
        counts[action[0]] += 1
        weights = np.exp(logits - 2) * mask[0]
        assert log_probs[0] == pytest.approx(np.log(weights[action[0]] / weights.sum()), abs=1e-5)
    np.testing.assert_allclose(counts / num, weights / weights.sum(), atol=2 / num)


def pool_of(network: ActorNetwork, opponents: list[ActorNetwork], **settings: Any) -> PolicyPool:
    return PolicyPool(network, Config(game=GAME.name, minutes=1, **settings), [0], opponents)


def test_the_pool_spaces_its_snapshots_evenly_and_keeps_them_unchanged() -> None:
    network = actor(1)
    assert isinstance(network, Network)
    pool = pool_of(network, [], pool_size=4)
    assert pool.draw() is None
    kept: list[float] = []
    for progress in np.linspace(0, 1, 101):
        pool.offer(network, float(progress))
        if len(pool.snapshots) > len(kept):
            kept.append(float(progress))
            with torch.no_grad():
                network.first_bias.add_(1)
    np.testing.assert_allclose(kept, [0.2, 0.4, 0.6, 0.8], atol=0.011)
    drawn = {one.first_bias.mean().item() for _ in range(100) if isinstance(one := pool.draw(), Network)}
    assert drawn == {0.0, 1.0, 2.0, 3.0}
    assert network.first_bias.mean().item() == 4.0


def test_the_pool_draws_opponents_alone_at_first_then_half_the_time() -> None:
    network, opponents = actor(1), [actor(2), actor(3)]
    pool = pool_of(network, opponents, pool_size=4)
    first = [pool.draw() for _ in range(100)]
    assert all(any(drawn is opponent for drawn in first) for opponent in opponents)
    assert all(drawn in opponents for drawn in first)
    pool.offer(network, 0.5)
    drawn = [pool.draw() for _ in range(1000)]
    assert 0.45 < sum(one in opponents for one in drawn) / 1000 < 0.55


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ppos", "pool_opponents: 'ppos': unknown opponent"),
        ("./lookahead", "pool_opponents: './lookahead': it and the learner are networks of the kinds"),
    ],
)
def test_opponents_of_the_pool_must_be_able_to_play_at_its_tables(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = HIGH_CARD
    monkeypatch.chdir(tmp_path)
    saved(game, Path("lookahead"), kind=LookaheadPolicy)
    saved(game, Path("mine"), kind=AfterstatePolicy)
    network = AfterstateActor(game, [16], 2.0, 3.0)
    config = Config(game=game.name, minutes=1, pool_opponents=[name])
    with pytest.raises(ValueError, match=said):
        pool_opponents(game, config, network)
    assert len(pool_opponents(game, config.changed(pool_opponents=["./mine", "./mine"]), network)) == 2


class Lowest:
    """Plays the lowest number: a class of the user's."""

    def __init__(self, game: Game) -> None:
        pass

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmax(axis=1)


@pytest.mark.parametrize("name", ["greedy", "random", f"{__name__}:Lowest", "search:2"])
def test_any_player_plays_in_the_pool(name: str) -> None:
    """What it chooses itself, at its seats and nowhere else, and the same again from the same positions."""
    rollouts, expected = [], load_opponent(name, GAME).policy
    for _ in range(2):
        config = Config(game=GAME.name, minutes=1, pool_opponents=[name], pool_share=1, greedy_share=0, num_envs=8)
        rollout = Rollout(GAME, config, {}, [1])
        (opponent,) = pool_opponents(GAME, config, network := actor(1))
        assert isinstance(opponent, AskedPlayer)
        opponent.tables = rollout.tables
        states = rollout.tables.read_states()
        rollout.collect(network, opponent)
        rollouts.append(rollout)
    theirs = rollout.players.gather(1, rollout.seat[0].long()[:, None])[:, 0] == POOL
    assert theirs.any() and not theirs.all() and torch.equal(rollouts[0].actions, rollouts[1].actions)
    if name in ("greedy", f"{__name__}:Lowest"):
        chosen = expected.act(decisions_at(GAME, states), np.random.default_rng(0))
        assert (rollout.actions[0].numpy() == chosen)[theirs.numpy()].all()
