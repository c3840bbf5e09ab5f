"""Every game as a Gymnasium vector environment: one seat to learn at thousands of tables, opponents in the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.buffers import check_choice, check_int, known_keys, new_seed, seed_number
from card_envs.engine.dealing import deal_next
from card_envs.engine.legality import check_ints, illegal_move
from card_envs.engine.rng import hash_each, table_keys
from card_envs.envs._observations import OBS_KEY, ObsDtype, Observation, ObservationFormat, Observe
from card_envs.envs._others import PoolSeat
from card_envs.envs._rendering import check_render_mode, rendered
from card_envs.envs.aec import worst_reward
from card_envs.envs.single_agent import ILLEGAL, Info, LearnersSeat, Opponents, other_players
from card_envs.game import Int8s, Int64s, play
from card_envs.games import get_game
from card_envs.opponents.policy import Policy, decisions_at, hide_seed

Indices = Int64s
VectorRenderMode = Literal["ansi", "rgb_array"]
VECTOR_RENDER_MODES: tuple[VectorRenderMode, ...] = ("ansi", "rgb_array")


def _play_at(
    first: int, last: int, states: NDArray[Any], tables: Indices, actions: Indices, payees: Int8s, paid: Any, packs: Any
) -> None:
    """Play `actions` [n] at the tables numbered `tables` [n] and deal if needed; ended episodes stay ended.

    Adds the reward of each table's seat `payees` [B] to `paid` [B]. At tables with custom packs left, `packs` [B],
    nothing is dealt.
    """
    for k in range(first, last):
        i = tables[k]
        state = states[i]
        play(state, actions[k])
        paid[i] += state.rewards[payees[i]]
        while state.needs_deal and not state.over and packs[i] == 0:
            deal_next(state)


def _info(mask: Int8s, illegal: NDArray[np.bool_], where: NDArray[np.bool_]) -> Info:
    """Return an info in Gymnasium's layout: each key with the tables [n] that have it."""
    return {"action_mask": mask, "_action_mask": where, ILLEGAL: illegal.astype(np.int8), f"_{ILLEGAL}": where}


class VectorSeatEnv(VectorEnv[Observation, Indices, NDArray[Any]]):
    """One seat of a game at n tables; opponents play the others, each policy at all tables that wait for it.

    Every table behaves like `SingleSeatEnv`. Observations are [n, D] int8, or with `observe="dict"` dicts of them and
    of the masks; rewards are [n] float64. The legal actions are in `info["action_mask"]` ([n, A] int8) and returned by
    `action_masks()`. `info["illegal"]` ([n] int8) is 1 where an illegal action ended the episode; with "SameStep",
    that is in `infos["final_info"]`. Episodes in which the seat has no decision are skipped. With deterministic
    opponents, table i depends only on the seed and i.

    Args:
        game: its name.
        num_envs: n, the number of tables.
        opponents: as for `SingleSeatEnv`; a pool draws for each table.
        seat: the learner's seat; "random": drawn for each episode.
        autoreset_mode: "SameStep": the next episode begins in the step that ends one; the last observation and info
            are in `infos["final_obs"]` and `infos["final_info"]`. "NextStep": the step returns the last
            observation; the next step at that table ignores the action and begins the next episode, as Gymnasium's
            vector wrappers expect. "Disabled": the step returns the last observation; reset the table before the
            next step: `reset(options={"reset_mask": terminated})`.
        illegal_move, obs_key, obs_dtype: as for `CardEnv`.
        render_mode: "ansi": `render` returns a text for each table. "rgb_array": a picture [H, W, 3] uint8 for
            each (needs the extra `draw`).
        observe: "flat": the observations alone. "dict": a dict of observations and masks, for trainers that read
            the masks there, such as TorchRL.
        options: of the game, see its `options.py`.

    Attributes:
        autoreset_mode: when the next episode begins.
        seat: [n] int8, the learner's seat at each table; a copy.
        states: [n] records of the game's State, hidden cards included; a view, not a copy. Values written into it are
            not checked, and count from the next call on.
    """

    def __init__(
        self,
        game: str,
        num_envs: int = 1,
        opponents: Opponents = "greedy",
        seat: LearnersSeat = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        illegal_move: Literal["terminate", "raise"] = "terminate",
        render_mode: VectorRenderMode | None = None,
        observe: Observe = "flat",
        obs_key: str = OBS_KEY,
        obs_dtype: ObsDtype = "int8",
        **options: Any,
    ) -> None:
        modes = tuple(mode.value for mode in AutoresetMode)
        check_choice(getattr(autoreset_mode, "value", autoreset_mode), modes, "autoreset_mode")
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        check_choice(illegal_move, ("terminate", "raise"), "illegal_move")
        check_choice(render_mode, (None, *VECTOR_RENDER_MODES), "render_mode")
        check_render_mode(render_mode)
        num_envs = check_int(num_envs, 1, None, "num_envs")
        self.game = get_game(game)
        rules = self.game.rules
        self._set_players(other_players(self.game, opponents, seat), num_envs)
        self._tables = BatchEnv(self.game, num_envs, options=options)
        self._lent = False  # the caller has `states`, and may write into them at any time
        self.num_envs = num_envs
        self.illegal_move = illegal_move
        self.render_mode: VectorRenderMode | None = render_mode
        self.metadata = {
            "render_modes": [*VECTOR_RENDER_MODES],
            "render_fps": 1,
            "autoreset_mode": self.autoreset_mode,
        }
        self._format = ObservationFormat(self.game, observe, obs_key, obs_dtype)
        self.single_observation_space = self._format.space()
        self.single_action_space = spaces.Discrete(rules.NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seat_option = seat
        self._seat = np.full(num_envs, 0 if seat == "random" else seat, np.int8)
        validated = self.game.validated(options)
        self._worst = worst_reward(self.game, validated)
        self._blank = np.zeros(1, rules.STATE)
        self._blank[0] = rules.new_state(validated)
        self._resting = np.zeros(num_envs, np.bool_)  # episode is over and the next one has not begun
        self._packs: dict[int, list[Int8s]] = {}  # custom packs still to be dealt, by table
        self._num_packs = np.zeros(num_envs, np.int64)  # their number, for `_play_at`
        self._rng: np.random.Generator | None = None  # of the opponents

    def _set_players(self, policies: list[Policy], num_envs: int) -> None:
        """Set the different policies of the other seats; a pool has a seat for each table."""
        self._players = list({id(policy): policy for policy in policies}.values())
        self._player_of = np.array([self._players.index(policy) for policy in policies], np.int64)
        pools = {i: policy.pool for i, policy in enumerate(self._players) if isinstance(policy, PoolSeat)}
        self._pool_seats = {number: [PoolSeat(pool) for _ in range(num_envs)] for number, pool in pools.items()}

    @property
    def states(self) -> NDArray[Any]:
        self._lent = True
        return self._states

    @property
    def _states(self) -> NDArray[Any]:
        return self._tables.states

    @property
    def seat(self) -> Int8s:
        return self._seat.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Deal at every table, or at some.

        Args:
            seed: of all tables, or a list with one for each: the deals are then those of the PettingZoo environment
                with that seed. None continues the current streams.
            options: `"reset_mask"`: [n] bool, the tables to reset; the other tables and the opponents' random draws
                there are not affected. `"deal"`: as for the PettingZoo environment, one for all tables that are reset,
                or a list of n in which None deals at random.

        Raises:
            ValueError: a malformed seed, mask or deal, or an unknown key; the environment is unchanged.
            gymnasium.error.ResetNeeded: the first reset must include all tables.
        """
        given = known_keys(options, ("reset_mask", "deal"), "reset options")
        chosen = self._mask_of(given.get("reset_mask"))
        if self._rng is None and not chosen.all():
            raise gymnasium.error.ResetNeeded(f"{self.game.name}: the first reset has to be of all tables")
        packs = self._packs_of(given.get("deal"))
        if seed is None and self._rng is None:
            seed = new_seed()
        keys, others = self._keys_of(seed)
        if others is not None and chosen.all():
            self.np_random = np.random.default_rng(others)
            self._rng = hide_seed(self.np_random)
        if chosen.all():
            for number, policy in enumerate(self._players):
                if number not in self._pool_seats:
                    policy.reset()
        self._resting[chosen] = False
        tables = np.flatnonzero(chosen)
        for i in tables.tolist():
            self._set_packs(i, packs[i])
        self._begin(tables, keys[tables])
        return self._look(np.zeros(self.num_envs, np.bool_))

    def _mask_of(self, mask: Any) -> NDArray[np.bool_]:
        """Return [n] bool, the tables to reset. Raises ValueError."""
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        fits = isinstance(mask, np.ndarray) and mask.shape == (self.num_envs,) and mask.dtype == np.bool_
        if not fits or not mask.any():
            raise ValueError(
                f"reset_mask: expected bools [{self.num_envs}], at least one of them True; got {mask!r:.80}"
            )
        return mask.copy()

    def _packs_of(self, deals: Any) -> list[list[Int8s]]:
        """Return the packs to be dealt at each table. Raises ValueError."""
        if isinstance(deals, (list, tuple)):
            if len(deals) != self.num_envs:
                raise ValueError(f"deal: expected one, or {self.num_envs}, got {len(deals)}")
        else:
            deals = [deals] * self.num_envs
        return [[] if deal is None else self.game.view.parse_deal(self._blank[0], deal) for deal in deals]

    def _keys_of(self, seed: Any) -> tuple[NDArray[np.uint64], int | list[int] | None]:
        """Return [n] keys of the tables' streams, and the seed of the opponents' draws. Raises ValueError."""
        keys = self._states["rng"].copy()
        if seed is None:
            return keys, None
        if isinstance(seed, (str, bytes)) or not isinstance(seed, (Sequence, np.ndarray)):
            number = seed_number(seed)
            return table_keys(number, np.arange(self.num_envs)), number
        if len(seed) != self.num_envs:
            raise ValueError(f"seed: expected one, or {self.num_envs}, got {len(seed)}")
        if self._rng is None:  # which deals the tables begin with is no secret
            keys = table_keys(new_seed(), np.arange(self.num_envs))
        numbers = [None if one is None else seed_number(one) for one in seed]
        for i, one in enumerate(numbers):
            if one is not None:
                keys[i] = table_keys(one, np.zeros(1))[0]
        return keys, [int(keys[i]) if one is None else one for i, one in enumerate(numbers)]

    def _set_packs(self, i: int, packs: list[Int8s]) -> None:
        self._num_packs[i] = len(packs)
        self._packs.pop(i, None)
        if packs:
            self._packs[i] = list(packs)

    def _deal_given(self, i: int) -> None:
        """Deal the next custom pack at a table, and on, at last from the table's stream, until a decision is due."""
        state = self._states[i]
        while True:
            if self._num_packs[i]:
                pack, *rest = self._packs[i]
                specialize(kernels.set_deal_table, self.game)(self._states, i, pack)
                self._set_packs(i, rest)
            else:
                specialize(kernels.deal_table, self.game)(self._states, i)
            if state.over or not state.needs_deal:
                return

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Play one action [n] at every table, then the other seats until it is the learner's turn everywhere.

        Raises:
            IllegalMove: with `illegal_move="raise"`; names the first table; nothing was changed. Also if an opponent
                plays an illegal action, which is a bug of the opponent.
            gymnasium.error.ResetNeeded: before `reset`; with `autoreset_mode="Disabled"` also if an episode is over.
        """
        self._check_reset()
        self._read_again()
        actions = check_ints(actions, self.num_envs)
        if self.autoreset_mode == AutoresetMode.DISABLED and self._resting.any():
            over = ", ".join(map(str, np.flatnonzero(self._resting)[:5]))
            raise gymnasium.error.ResetNeeded(
                f"{self.game.name}: the episode at table {over} is over; reset with options={{'reset_mask': ended}}"
            )
        illegal = ~self._tables.are_legal(actions) & ~self._resting
        if self.illegal_move == "raise" and illegal.any():
            i = int(illegal.argmax())
            raise illegal_move(self.game, int(actions[i]), self._tables.mask[i], f"seat {self._seat[i]} at table {i}")
        rewards = np.where(illegal, self._worst, 0.0)
        tables = np.flatnonzero(~illegal & ~self._resting)
        self._play(tables, actions[tables], rewards)
        self._play_others(tables, rewards)
        self._begin_again(self._resting)
        ended = illegal | self._states["over"]
        self._report(ended, illegal)
        last: Info = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            if ended.any():
                last = self._last_look(ended, illegal)
            self._begin_again(ended)
            illegal = np.zeros_like(illegal)  # in the episodes that go on or begin
        else:
            self._resting = ended
        obs, info = self._look(illegal)
        return obs, rewards, ended.copy(), np.zeros_like(ended), last | info

    def _check_reset(self) -> None:
        if self._rng is None:
            raise gymnasium.error.ResetNeeded(f"{self.game.name}: call reset() first")

    def _read_again(self) -> None:
        """Renew observations and masks if the caller may have written into `states`."""
        if self._lent:
            self._observe()

    def _play(self, tables: Indices, actions: Indices, paid: NDArray[np.float64]) -> None:
        specialize(_play_at, self.game)(
            0, len(tables), self._states, tables, actions, self._seat, paid, self._num_packs
        )
        if self._packs:
            for i in tables[self._states["needs_deal"][tables] & ~self._states["over"][tables]].tolist():
                self._deal_given(i)

    def _play_others(self, tables: Indices, paid: NDArray[np.float64]) -> None:
        """Play the other seats at these tables until the learner's turn or the end; add the rewards to `paid`."""
        states, rng = self._states, self._rng
        assert rng is not None
        while True:
            ahead = (states["seat"][tables] - self._seat[tables]) % self.game.rules.NUM_SEATS
            others_turn = (ahead > 0) & ~states["over"][tables]
            tables, ahead = tables[others_turn], ahead[others_turn]
            if not len(tables):
                return
            player_of = self._player_of[ahead - 1]
            for number, policy in enumerate(self._players):
                here = tables if len(self._players) == 1 else tables[player_of == number]
                if not len(here):
                    continue
                for one, those in self._by_member(number, policy, here):
                    decisions = decisions_at(self.game, states.take(those))  # indexing copies field by field
                    self._play(those, one.act(decisions, rng), paid)

    def _by_member(self, number: int, policy: Policy, tables: Indices) -> Iterator[tuple[Policy, Indices]]:
        """Yield a player and these tables; for a pool, each member of it and the tables that it plays at."""
        if number not in self._pool_seats:
            yield policy, tables
            return
        members = [self._pool_seats[number][i].member for i in tables.tolist()]
        keys = np.array([id(member) for member in members])
        for first in np.sort(np.unique(keys, return_index=True)[1]):  # an order that repeats in another process
            yield members[first].policy, tables[keys == keys[first]]

    def _report(self, ended: NDArray[np.bool_], illegal: NDArray[np.bool_]) -> None:
        """Tell the pools among the opponents who won the episodes that ended."""
        for i in np.flatnonzero(ended).tolist() if self._pool_seats else ():
            for seats in self._pool_seats.values():
                scores = None if illegal[i] else self.game.view.outcome(self._states[i])[1]
                seats[i].report(scores, int(self._seat[i]))

    def _begin_again(self, which: NDArray[np.bool_]) -> None:
        tables = np.flatnonzero(which)
        for i in tables.tolist() if self._packs else ():
            self._set_packs(i, [])  # left over from the ended episode
        self._begin(tables, self._states["rng"][tables])

    def _begin(self, tables: Indices, keys: NDArray[np.uint64]) -> None:
        """Begin new episodes at these tables, keyed by `keys`, and play to the learner's first decision."""
        while len(tables):
            dealt = np.repeat(self._blank, len(tables))
            specialize(kernels.reset_tables, self.game)(0, len(tables), dealt, keys)
            self._states.put(tables, dealt)
            for i, key in zip(tables.tolist(), keys) if self._packs else ():
                if self._num_packs[i]:
                    self._states[i] = self._blank[0]
                    self._states[i].rng = key
                    self._deal_given(i)
            if self._seat_option == "random":
                self._seat[tables] = hash_each(dealt["rng"]) % np.uint64(self.game.rules.NUM_SEATS)
            for seats in self._pool_seats.values():
                for i in tables.tolist():
                    seats[i].reset()
            self._play_others(tables, np.zeros(self.num_envs))
            tables = tables[self._states["over"][tables]]
            keys = self._states["rng"][tables]

    def _observe(self) -> None:
        """Write the learner's observations and masks."""
        self._tables.observe()
        for i in np.flatnonzero(self._resting).tolist():
            self._observe_at(i, self._tables.obs[i])
            self._tables.mask[i] = 0

    def _look(self, illegal: NDArray[np.bool_]) -> tuple[Observation, Info]:
        """Return copies of the learner's observations and masks at every table."""
        self._observe()
        mask = self._tables.mask
        info = _info(mask.copy(), illegal, np.ones(self.num_envs, np.bool_))
        return self._format.lay_out(self._tables.obs.copy(), mask), info

    def _last_look(self, ended: NDArray[np.bool_], illegal: NDArray[np.bool_]) -> Info:
        """Return the last observation and info of ended episodes, in Gymnasium's layout."""
        final_obs = np.full(self.num_envs, None, object)
        obs, nothing = np.empty_like(self._tables.obs[0]), np.zeros_like(self._tables.mask[0])
        for i in np.flatnonzero(ended).tolist():
            self._observe_at(i, obs)
            final_obs[i] = self._format.lay_out(obs.copy(), nothing)
        final_info = _info(np.zeros_like(self._tables.mask), illegal, ended)
        return {"final_obs": final_obs, "_final_obs": ended, "final_info": final_info, "_final_info": ended}

    def _observe_at(self, i: int, obs: Int8s) -> None:
        """Write the observation [D] of the learner's seat, whichever seat is to move."""
        specialize(kernels.observe_table, self.game)(self._states, i, int(self._seat[i]), obs)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return [n, A] bool, the legal actions."""
        self._check_reset()
        self._read_again()
        return self._tables.mask != 0

    def render(self) -> tuple[Any, ...] | None:
        """Return the view of the learner's seat at each table, as `render_mode` says."""
        if self.render_mode is None:
            return None
        self._check_reset()
        views = (self.game.view.view(state, int(seat)) for state, seat in zip(self._states, self._seat))
        return tuple(rendered(self.game, view, self.render_mode) for view in views)
