"""Every game as a PettingZoo AEC environment; it checks its arguments itself and needs no wrappers."""

from __future__ import annotations

import copy
import operator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv

from card_envs.engine.buffers import INT8, check_choice, check_game, known_keys, new_seed
from card_envs.engine.kernels import DEAL_DUE, PAID
from card_envs.engine.legality import illegal_move
from card_envs.engine.table import Table
from card_envs.envs._observations import OBS_KEY, ObsDtype, Observation, ObservationFormat, Observe
from card_envs.envs._rendering import RENDER_MODES, RenderMode, check_render_mode, drawn, rendered
from card_envs.game import Game, Int8s, bounds
from card_envs.play.episode import RANDOM, Episode

if TYPE_CHECKING:
    from card_envs.record import GameRecord


def worst_reward(game: Game, options: Any) -> float:
    """Return the penalty for an illegal move under these options: the worst possible score of one deal."""
    return -1.0 if options.reward == "win" else float(game.rules.WORST_SCORE)


class CardEnv(AECEnv):
    """A card game for PettingZoo. Agents are `player_0` … in the order of the seats.

    Observations are dicts: `observation` [D] int8 (fields in the game's RULES.md) and `action_mask` [A] int8, all zero
    for a seat that is not to move. `infos[agent]["action_mask"]` has the same mask; with `observe="flat"`, the
    observation is the array alone. A player who moves several times in a row stays `agent_selection`.

    Args:
        game: from `card_envs.get_game`.
        render_mode: "ansi": `render` returns text. "human": every position is printed. "rgb_array": `render`
            returns a picture, [H, W, 3] uint8 (needs the extra `draw`).
        illegal_move: "terminate": the episode ends, the mover gets the worst possible score of one deal (-1 with
            `reward="win"`), the others 0. "raise": raise `IllegalMove` without side effects.
        observe: "dict": observations are dicts of observation and mask. "flat": the observation alone, a Box, for
            trainers that read the mask in `info`, such as AgileRL's IPPO.
        obs_key: key of the observation in its dict; RLlib wants "observations".
        obs_dtype: "float32" for trainers that pass observations straight to a network, such as RLlib. Only the
            observation is float32 then; the mask and `state()` stay int8.
        options: of the game, see its `options.py`.

    Attributes:
        episode: under way, once `reset` was called; play by `step` alone.
    """

    def __init__(
        self,
        game: Game,
        render_mode: RenderMode | None = None,
        illegal_move: Literal["terminate", "raise"] = "terminate",
        observe: Observe = "dict",
        obs_key: str = OBS_KEY,
        obs_dtype: ObsDtype = "int8",
        **options: Any,
    ) -> None:
        super().__init__()
        check_game(game)
        check_render_mode(render_mode)
        check_choice(illegal_move, ("terminate", "raise"), "illegal_move")
        rules = game.rules
        self.game = game
        self.render_mode = render_mode
        self.illegal_move = illegal_move
        self.obs_key = obs_key
        self.options = game.validated(options)
        self.metadata = {
            "name": f"{game.name}_v{game.version}",
            "render_modes": [*RENDER_MODES],
            "render_fps": 1,
            "is_parallelizable": False,
        }
        self.possible_agents = [f"player_{seat}" for seat in range(rules.NUM_SEATS)]
        self.agents: list[str] = []
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._format, self._obs_size = ObservationFormat(game, observe, obs_key, obs_dtype), rules.OBS_SIZE
        self.observation_spaces = {agent: self._format.space() for agent in self.possible_agents}
        self.action_spaces = {agent: spaces.Discrete(rules.NUM_ACTIONS) for agent in self.possible_agents}
        self.state_space = spaces.Box(*bounds(rules.FULL_FIELDS), dtype=np.int8)
        self._table = Table(game, rules.new_state(self.options))
        self._seeded = False
        self._lent = False  # the caller has `states`, and may write into them at any time
        self._obs: Int8s | None = None  # cached for the seat to move, until handed out
        self._no_actions = np.zeros(rules.NUM_ACTIONS, np.int8)
        self._mask = self._no_actions.copy()  # decides legality; only copies are handed out
        self._mover = 0  # the seat to move
        self._nothing = dict.fromkeys(self.possible_agents, 0.0)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[self._checked_agent(agent)]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[self._checked_agent(agent)]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal a new episode.

        Args:
            seed: of all later deals, from 0 to 2**64 - 1. None continues the current stream, which starts from 64
                unpredictable bits.
            options: `{"deal": …}` sets the deal, in the format of RULES.md; when its packs are used up, later deals are
                random.

        Raises:
            ValueError: a malformed seed or deal, or an unknown key; the environment is unchanged.
        """
        given = known_keys(options, ("deal", "options"), "reset options")  # PettingZoo's api_test passes {"options": 1}
        if seed is None and not self._seeded:
            seed = new_seed()
        self.episode = Episode(self.game, self.options, given.get("deal", RANDOM), seed, key=self._table.state.rng)
        self._seeded = True
        self._table = self.episode.table
        self._lent = False
        self._obs = None
        self._illegal = False
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"action_mask": self._no_actions.copy()} for agent in self.agents}
        self._skip_agent_selection = None
        self._turn()
        if self.render_mode == "human":
            self.render()

    def _turn(self) -> None:
        """Select the seat to move and set its mask."""
        self._mask = self._table.legal()
        self._obs = None
        self._over = self._illegal or self._table.over
        self._mover = self._table.seat
        if not self._over:
            self.agent_selection = self.possible_agents[self._mover]
            self.infos[self.agent_selection] = {"action_mask": self._mask.copy()}

    def _read_again(self) -> None:
        """Renew what is known of the state, into which the caller may have written."""
        if not self.agents:
            return
        agent, over = self.agent_selection, self._over
        self._turn()
        if self._over != over:
            self.terminations = dict.fromkeys(self.agents, self._over)
            self._skip_agent_selection = None
        if self._over or self.agent_selection != agent:
            self.infos[agent] = {"action_mask": self._no_actions.copy()}

    def observe(self, agent: str) -> Observation:
        """Return the observation of a seat, at any time, in new arrays."""
        self._check_reset()
        if self._lent:
            self._read_again()
        return self._look(self._seats[self._checked_agent(agent)])

    def _look(self, seat: int) -> Observation:
        on_turn = seat == self._mover and not self._over
        obs = self._obs if on_turn else None
        if obs is None:
            obs = self._table.observe(seat)
        else:
            self._obs = None  # the caller owns it and may write into it
        return self._format.lay_out(obs, self._mask if on_turn else self._no_actions)

    def last(self, observe: bool = True) -> Any:
        """Return observation, rewards since its last move, termination, truncation and info of `agent_selection`."""
        if not self.agents:
            self._check_running()
        if self._lent:
            self._read_again()
        agent = self.agent_selection
        observation = self._look(self._seats[agent]) if observe else None
        paid = self._cumulative_rewards[agent]
        return observation, paid, self.terminations[agent], self.truncations[agent], self.infos[agent]

    def agent_iter(self, max_iter: int = 1 << 63) -> Any:
        """Yield the agent to move until the episode is over."""
        self._check_reset()
        return super().agent_iter(max_iter)

    @property
    def states(self) -> NDArray[Any]:
        """The game's State, an array of one record, hidden cards included; a view, not a copy.

        Its values are not checked. What is written into it counts from the next call on; attributes such as `infos`
        show it after that call.
        """
        self._lent = True
        self._obs = None
        return self._table.states

    @property
    def deals(self) -> int:
        """Number of packs dealt in this episode so far."""
        return len(self.episode.dealt)

    def state(self) -> Int8s:
        """Return the full state, hidden cards included, relative to seat 0: [FULL_SIZE] int8."""
        self._check_reset()
        return self._table.observe_all(0)

    def step(self, action: int | np.integer[Any] | None) -> None:
        """Play an action for `agent_selection`; None for an agent whose episode is over.

        Raises:
            IllegalMove: with `illegal_move="raise"`; nothing was changed.
            ValueError: `action` is not a whole number, or is not None although the agent's episode is over.
            RuntimeError: `reset` was not called.
        """
        if not self.agents:
            self._check_running()
        if self._lent:
            self._read_again()
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        number = self._action_number(action)
        mask = self._mask
        if not (0 <= number < len(mask) and mask[number]):
            self._play_illegal(agent, number)
        else:
            self._play(agent, number)
        if self._over:
            self.terminations = dict.fromkeys(self.agents, True)
            self._deads_step_first()
        if self.render_mode == "human":
            self.render()

    def _play_illegal(self, agent: str, action: int) -> None:
        """End the episode, or raise IllegalMove."""
        if self.illegal_move == "raise":
            raise illegal_move(self.game, action, self._mask, agent, self.move_text)
        self._illegal = True
        worst = worst_reward(self.game, self.options)
        self._cumulative_rewards[agent] = 0.0
        self._pay([worst if name == agent else 0.0 for name in self.possible_agents])
        self.infos[agent] = {"action_mask": self._no_actions.copy()}
        self._turn()

    def _play(self, agent: str, action: int) -> None:
        """Play a legal action, then select the seat to move and set its mask."""
        table, obs = self._table, np.empty(self._obs_size, INT8)
        self.episode.actions.append(action)
        found = table._turn(table.states, 0, action, self._mask, obs)
        self._cumulative_rewards[agent] = 0.0
        if found & PAID:
            self._pay(table.rewards)
        else:
            self.rewards = self._nothing.copy()
        if found & DEAL_DUE:
            self.infos[agent] = {"action_mask": self._no_actions.copy()}
            if not table.over:
                self.episode.deal()
            self._turn()
            return
        self._obs, self._mover = obs, found & ~PAID
        mover = self.possible_agents[self._mover]
        if mover != agent:
            self.infos[agent] = {"action_mask": self._no_actions.copy()}
            self.agent_selection = mover
        self.infos[mover] = {"action_mask": self._mask.copy()}

    def _pay(self, rewards: list[float]) -> None:
        self.rewards = dict(zip(self.possible_agents, rewards))
        for name, reward in self.rewards.items():
            self._cumulative_rewards[name] += reward

    def _action_number(self, action: Any) -> int:
        try:
            return operator.index(action)
        except TypeError:
            raise ValueError(f"{self.game.name}: action: expected a whole number, got {action!r:.80}") from None

    def _check_reset(self) -> None:
        if not self._seeded:
            raise RuntimeError(f"{self.game.name}: call reset() first")

    def _check_running(self) -> None:
        self._check_reset()
        if not self.agents:
            raise RuntimeError(f"{self.game.name}: the episode is over for all agents: call reset()")

    def _checked_agent(self, agent: object) -> str:
        if not isinstance(agent, str) or agent not in self._seats:
            raise ValueError(f"{self.game.name}: agent: expected one of {', '.join(self._seats)}, got {agent!r:.80}")
        return agent

    # Beyond PettingZoo's protocol

    def legal_moves(self) -> list[str]:
        """Return the legal moves of the seat to move, as text; empty when the episode is over."""
        self._check_reset()
        if self._lent:
            self._read_again()
        return [] if self._over else [self.move_text(action) for action in np.flatnonzero(self._mask)]

    def move_text(self, action: int | np.integer[Any]) -> str:
        """Return an action in the game's notation. Raises ValueError if it is out of range."""
        number = self._action_number(action)
        if not 0 <= number < self.game.rules.NUM_ACTIONS:
            raise ValueError(f"{self.game.name}: action: expected 0 to {self.game.rules.NUM_ACTIONS - 1}, got {number}")
        text: str = self.game.view.move_text(self._table.state, number)
        return text

    def parse_move(self, text: str) -> int:
        """Return the action for a move in the game's notation, in any clear spelling, such as `TD` or `10♦`.

        Raises ValueError if it is not a move.
        """
        if not isinstance(text, str):
            raise ValueError(f"{self.game.name}: move: expected a text, got {text!r:.80}")
        return self.game.parse_move(self._table.state, text)

    def view(self, agent: str) -> dict[str, Any]:
        """Return everything that an agent may know, ready for JSON (`game.view.SCHEMA`)."""
        self._check_reset()
        view: dict[str, Any] = self.game.view.view(self._table.state, self._seats[self._checked_agent(agent)])
        if self._illegal:
            view |= {"to_move": None, "legal": []}
        return view

    def outcome(self) -> dict[str, Any]:
        """Return `{"over", "reason", "scores"}`: whether and why the episode ended, and each seat's score so far."""
        self._check_reset()
        outcome = self.episode.outcome()
        return outcome | {"over": True, "reason": "illegal"} if self._illegal else outcome

    def record(self) -> GameRecord:
        """Return the episode so far as a record that can be replayed: options, packs and moves."""
        self._check_reset()
        return self.episode.record(self.outcome())

    def clone(self) -> CardEnv:
        """Return an independent copy, which will have the same later deals."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> CardEnv:
        twin = type(self).__new__(type(self))
        # Spaces have their own random state; the rest is the table and small containers.
        twin.__dict__ = {
            name: value if name in ("game", "options") else copy.deepcopy(value, memo)
            for name, value in self.__dict__.items()
        }
        return twin

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved)
        self._mask, self._obs, self._mover = self._table.legal(), None, self._table.seat

    def render(self) -> Any:
        """Return the mover's view: text for "ansi", [H, W, 3] uint8 for "rgb_array"; print it for "human"."""
        self._check_reset()
        if self._lent:
            self._read_again()
        over = f"\nover: {self.outcome()['reason']}, scores {self.outcome()['scores']}" if self._over else ""
        return rendered(self.game, self._view_of_mover(), self.render_mode, over)

    def _repr_svg_(self) -> str | None:
        """Return the view of the seat to move as SVG, for notebooks."""
        return drawn(self.game, self._view_of_mover()) if self._seeded else None

    def _view_of_mover(self) -> dict[str, Any]:
        return self.view(self.possible_agents[self._table.seat])

    def close(self) -> None:
        """Do nothing: there are no resources to release."""


def env_with(game: Game, options: dict[str, Any], **arguments: Any) -> CardEnv:
    """Make an environment with options that come from outside: none of them is taken for an argument of `CardEnv`.

    Args:
        game: the game.
        options: of the game.
        arguments: of `CardEnv`; by default it raises `IllegalMove`.

    Raises:
        ValueError: an option that the game does not have, or a wrong value.
    """
    game.validated(options)
    return CardEnv(game, **{"illegal_move": "raise", **arguments}, **options)
