"""Every game as a Gymnasium environment: one seat to learn, opponents in the others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from card_envs.engine.buffers import check_int
from card_envs.envs._observations import OBS_KEY, ObsDtype, Observation, Observe
from card_envs.envs._others import Others, PoolSeat
from card_envs.envs._rendering import RENDER_MODES, RenderMode, check_render_mode, drawn, rendered
from card_envs.envs.aec import env_with
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents.names import load_opponent, load_policy
from card_envs.opponents.policy import Policy, PolicyLike
from card_envs.opponents.pool import OpponentPool

Info = dict[str, Any]
ILLEGAL = "illegal"  # reason of an episode that an illegal action ended, and the key of `info` that says so
Opponents = str | PolicyLike | OpponentPool | Sequence[str | PolicyLike | OpponentPool]
LearnersSeat = int | Literal["random"]


def other_players(game: Game, opponents: Opponents, seat: LearnersSeat) -> list[Policy]:
    """Return the policies of the other seats, clockwise from the learner's left; equal names share one policy.

    In place of a pool stands a policy that plays by a member of it, drawn by each `reset`.

    Raises:
        ValueError: an unknown seat or opponent, or a wrong number of opponents.
    """
    others = game.rules.NUM_SEATS - 1
    if not isinstance(seat, str) or seat != "random":
        try:
            check_int(seat, 0, others, "seat")
        except ValueError as error:
            raise ValueError(f'{error}; or "random"') from None
    alike = isinstance(opponents, str) or not isinstance(opponents, Sequence)
    passed: Sequence[Any] = [opponents] if alike else opponents  # type: ignore[assignment]
    policies: dict[Any, Policy] = {}
    players: list[Policy] = []
    for player in passed:
        key = player if isinstance(player, str) else id(player)
        if key not in policies:
            policies[key] = _policy_of(player, game)
        players.append(policies[key])
    players *= others if alike else 1
    if len(players) != others:
        raise ValueError(f"opponents: expected one, or {others}, got {len(players)}")
    return players


def _policy_of(player: Any, game: Game) -> Policy:
    """Return the policy that plays for a name, a policy or a pool. Raises ValueError."""
    if not isinstance(player, OpponentPool):
        # A name is loaded for this environment alone: what its searches remember is not shared.
        return load_policy(load_opponent(player, game) if isinstance(player, str) else player, "opponents", game)
    if player.game != game:
        raise ValueError(f"opponents: the pool plays {player.game.name}, not {game.name}")
    return PoolSeat(player)


class SingleSeatEnv(gymnasium.Env[Observation, np.int64]):
    """One seat of a game; opponents play the others.

    Observations are [D] int8; with `observe="dict"`, dicts of `observation` and `action_mask`. The legal actions are in
    `info["action_mask"]` ([A] int8) and returned by `action_masks()`, which sb3-contrib calls. `info["illegal"]` (int8)
    is 1 where an illegal action ended the episode, else 0. Rewards are summed up to the seat's next decision. Episodes
    in which the seat has no decision are skipped, except on a deal that was given.
    """

    metadata = {"render_modes": [*RENDER_MODES], "render_fps": 1}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        game: str,
        opponents: Opponents = "greedy",
        seat: LearnersSeat = 0,
        render_mode: RenderMode | None = None,
        illegal_move: Literal["terminate", "raise"] = "terminate",
        observe: Observe = "flat",
        obs_key: str = OBS_KEY,
        obs_dtype: ObsDtype = "int8",
        **options: Any,
    ) -> None:
        """Make an environment.

        Args:
            game: its name.
            opponents: of the other seats: a name for `load_opponent`, a `Policy` or an `OpponentPool`, shared by all,
                or a list with one for each other seat, clockwise from the left.
            seat: the learner's seat; "random": drawn at each reset.
            render_mode, illegal_move, obs_key, obs_dtype: as for `CardEnv`.
            observe: "flat": the observation alone, a Box. "dict": a dict of observation and mask, for trainers that
                read the mask there, such as RLlib.
            options: of the game, see its `options.py`.
        """
        self.game = get_game(game)
        rules = self.game.rules
        self._others = Others(other_players(self.game, opponents, seat), seat)
        check_render_mode(render_mode)
        self.render_mode: RenderMode | None = render_mode
        self.action_space = spaces.Discrete(rules.NUM_ACTIONS)
        self._env = env_with(
            self.game, options, illegal_move=illegal_move, observe=observe, obs_key=obs_key, obs_dtype=obs_dtype
        )
        self.observation_space = self._env.observation_spaces[self._env.possible_agents[0]]
        self._unseeded = False
        self._begun = False

    @property
    def seat(self) -> int:
        return self._others.seat

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Deal; options as for the PettingZoo environment, such as `{"deal": …}`."""
        if seed is not None:
            seed = check_int(seed, 0, None, "seed")
        self._unseeded = seed is None and (self._unseeded or self._np_random is None)
        super().reset(seed=seed)
        random = self.np_random
        while True:
            # All 64 bits if the deals must be unpredictable; 63 with a seed, so that it keeps giving the same deals.
            self._env.reset(int(random.integers(1 << 64 if self._unseeded else 1 << 63, dtype=np.uint64)), options)
            self._others.begin(random)
            self._begun = True
            self._play()
            if not self._over or (options and "deal" in options):
                break
        if self.render_mode == "human":
            self.render()
        return self._look()

    def step(self, action: int | np.integer[Any]) -> tuple[Observation, float, bool, bool, Info]:
        """Play an action, then the other seats until it is this seat's turn or the episode is over.

        Raises:
            gymnasium.error.ResetNeeded: before `reset`, or after the end of the episode.
            IllegalMove: with `illegal_move="raise"`. Also if an opponent plays an illegal action, which is a bug of the
                opponent.
        """
        self._check_reset()
        if self._over:
            raise gymnasium.error.ResetNeeded(f"{self.game.name}: the episode is over: call reset()")
        reward = self._play(action)
        if self.render_mode == "human":
            self.render()
        (obs, info), over = self._look(), self._over
        if over:
            self._others.report(None if info[ILLEGAL] else self._env.outcome()["scores"])
        return obs, reward, over, False, info

    def _play(self, *actions: int | np.integer[Any]) -> float:
        """Play this seat's actions, then the others' up to its turn; return what it was paid."""
        agent, paid = self._agent, 0.0
        for action in chain(actions, self._others.moves(self._env.episode)):
            self._env.step(action)
            paid += self._env.rewards[agent]
        return paid

    def _check_reset(self) -> None:
        if not self._begun:
            raise gymnasium.error.ResetNeeded(f"{self.game.name}: call reset() first")

    @property
    def _over(self) -> bool:
        return self._env.terminations[self._agent]

    @property
    def _agent(self) -> str:
        return self._env.possible_agents[self.seat]

    def _look(self) -> tuple[Observation, Info]:
        illegal = self._over and self._env.outcome()["reason"] == ILLEGAL
        info: Info = {
            "action_mask": self._env.infos[self._agent]["action_mask"].copy(),
            ILLEGAL: np.int8(illegal),  # a bool would be an object in Gymnasium's vector environments
        }
        return self._env.observe(self._agent), info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return [A] bool, the legal actions."""
        self._check_reset()
        return self._env.infos[self._agent]["action_mask"].astype(np.bool_)

    def render(self) -> Any:
        """Return this seat's view: text for "ansi", [H, W, 3] uint8 for "rgb_array"; print it for "human"."""
        if self.render_mode is None:
            return None
        self._check_reset()
        return rendered(self.game, self._env.view(self._agent), self.render_mode)

    def _repr_svg_(self) -> str | None:
        """Return this seat's view as SVG, for notebooks."""
        return drawn(self.game, self._env.view(self._agent)) if self._begun else None
