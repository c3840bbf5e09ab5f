"""Every game as a Gymnasium environment: one seat, with given opponents in the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from card_envs.envs.aec import CardEnv
from card_envs.game import Game, Int8s, bounds
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Policy, moves_of, turn_of_states

Info = dict[str, Any]
Opponents = str | Policy | Sequence[str | Policy]
LearnersSeat = int | Literal["random"]


def other_players(game: Game, opponents: Opponents, seat: LearnersSeat) -> list[Policy]:
    """Who plays the other seats, clockwise from the learner's left; equal names are one policy.

    Raises:
        ValueError: there is no such seat or opponent, or they are too few or too many.
    """
    others = game.rules.NUM_SEATS - 1
    if seat != "random" and seat not in range(others + 1):
        raise ValueError(f'seat: expected 0 to {others} or "random", got {seat!r}')
    if isinstance(opponents, str) or not isinstance(opponents, Sequence):
        opponents = [opponents] * others
    if len(opponents) != others:
        raise ValueError(f"opponents: expected one, or {others}, got {len(opponents)}")
    loaded: dict[str, Policy] = {name: load_opponent(name, game) for name in opponents if isinstance(name, str)}
    return [loaded[opponent] if isinstance(opponent, str) else opponent for opponent in opponents]


class SingleSeatEnv(gymnasium.Env[Int8s, np.int64]):
    """One seat of a game; the others play by themselves.

    Observations are flat [D] int8. The legal actions are in `info["action_mask"]` ([A] int8) and come from
    `action_masks()`, where sb3-contrib looks for them. Rewards are summed up to the seat's next decision. An illegal
    action ends the episode with the worst score that one deal can bring (-1 with `reward="win"`).
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        game: str,
        opponents: Opponents = "greedy",
        seat: LearnersSeat = 0,
        render_mode: Literal["ansi", "human"] | None = None,
        **options: Any,
    ) -> None:
        """Make an environment.

        Args:
            game: its name.
            opponents: who plays the other seats: a name for `load_opponent` or a `Policy`, the same for all, or one
                for each other seat, clockwise from the left.
            seat: the learner's seat; "random": drawn anew at each reset.
            render_mode: "ansi": `render` returns text; "human": every position is printed.
            options: of the game, see its `options.py`.
        """
        self.game = get_game(game)
        rules = self.game.rules
        self._opponents = other_players(self.game, opponents, seat)
        self.render_mode = render_mode
        self.observation_space = spaces.Box(*bounds(rules.OBS_FIELDS), dtype=np.int8)
        self.action_space = spaces.Discrete(rules.NUM_ACTIONS)
        self._seat_option = seat
        self.seat = 0 if seat == "random" else seat
        self._env = CardEnv(self.game, **options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Int8s, Info]:
        """Deal; options as for the PettingZoo environment, such as `{"deal": …}`."""
        super().reset(seed=seed)
        self._env.reset(int(self.np_random.integers(1 << 63)), options)
        if self._seat_option == "random":
            self.seat = int(self.np_random.integers(self.game.rules.NUM_SEATS))
        self._play_others()
        if self.render_mode == "human":
            self.render()
        return self._look()

    def step(self, action: int | np.integer[Any]) -> tuple[Int8s, float, bool, bool, Info]:
        """Play, then let the others play until it is this seat's turn again or the episode is over."""
        self._env.step(action)
        reward = self._env.rewards[self._agent] + self._play_others()
        if self.render_mode == "human":
            self.render()
        obs, info = self._look()
        return obs, reward, self._env.outcome()["over"], False, info

    @property
    def _agent(self) -> str:
        return self._env.possible_agents[self.seat]

    def _play_others(self) -> float:
        """Play the other seats' moves; returns what this seat was paid meanwhile."""
        env = self._env
        paid = 0.0
        while env.agent_selection != self._agent and not env.terminations[env.agent_selection]:
            turn = turn_of_states(self.game, env.states)
            other = (int(turn.seat[0]) - self.seat) % self.game.rules.NUM_SEATS - 1
            env.step(moves_of(self._opponents[other], turn, self.np_random)[0])
            paid += env.rewards[self._agent]
        return paid

    def _look(self) -> tuple[Int8s, Info]:
        observation = self._env.observe(self._agent)
        return observation["observation"], {"action_mask": observation["action_mask"]}

    def action_masks(self) -> NDArray[np.bool_]:
        """[A] bool, the legal actions."""
        return self._env.observe(self._agent)["action_mask"].astype(np.bool_)

    def render(self) -> str | None:  # type: ignore[override]
        """The position as this seat sees it: text for "ansi", printed for "human"."""
        if self.render_mode is None:
            return None
        text: str = self.game.view.picture(self._env.view(self._agent))
        if self.render_mode == "ansi":
            return text
        print(text, end="\n\n")
        return None
