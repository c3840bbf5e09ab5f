"""One seat of a game in words, for language models and programs that play by text.

The loop::

    env = TextEnv("russian_bank", opponents="small")
    text, done = env.reset(seed=1), False
    while not done:
        text, reward, done = env.step(ask_your_model(text))

`docs/guides/words.md` says more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs._answers import UnclearAnswer, move_in
from card_envs.envs._others import Others
from card_envs.envs.aec import env_with
from card_envs.envs.single_agent import LearnersSeat, Opponents, other_players
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Opponent
from card_envs.terminal._narration import Event, hint_text, legend_text, options_text, position_text, seat_names, step


class TextEnv:
    """A seat that is shown its position as text and answers with a move, in any spelling that leaves no doubt.

    An answer may have other words around a move that is marked, as in a line `Move: TD`, or that stands alone on a line
    and is the only one named. Any other answer is explained and counted, and the position stays.

    Attributes:
        seat: whose answers are asked for.
        invalid: answers of this episode that were no legal move.
    """

    def __init__(
        self, game: str | Game, opponents: Opponents = "greedy", seat: LearnersSeat = 0, **options: Any
    ) -> None:
        """Create the environment; `reset` must follow.

        Args:
            game: or its name.
            opponents: the players of the other seats, clockwise: a name or policy for all, or one each.
            seat: whose answers are asked for, or "random": another one each time.
            options: of the game.

        Raises:
            ValueError: an argument that does not fit.
        """
        self.game = get_game(game) if isinstance(game, str) else game
        self._others = Others(other_players(self.game, opponents, seat), seat)
        self._env = env_with(self.game, options)
        self.invalid = 0
        self._events: list[Event] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> str:
        """Begin an episode; return the rules in short, unusual options, what moves mean, and the first position.

        Args:
            seed: of deals and opponents; None: another episode each time.
            options: as for the PettingZoo environment: `{"deal": …}`.

        Raises:
            ValueError: a malformed seed or deal.
        """
        rng = np.random.default_rng(seed)
        self._env.reset(seed, options=options)
        self._others.begin(rng)
        self.invalid, self._events = 0, []
        self._others.play(self._env, self._play)
        unusual = options_text(self.game, self._env.view(self._agent)["options"])
        about = [f"You play {self.game.title}.", self.game.short_rules, unusual, legend_text(self.game)]
        return "\n\n".join([*filter(None, about), self.prompt()])

    def step(self, answer: str) -> tuple[str, float, bool]:
        """Play the move in an answer, and the others' up to the seat's next decision.

        Returns:
            What happened and the next position, what the seat was paid, and whether the episode is over.

        Raises:
            RuntimeError: the episode is over, or has not begun.
        """
        if self.over:
            raise RuntimeError("the episode is over: call reset")
        try:
            action = self._action_in(answer)
        except ValueError as error:
            self.invalid += 1
            return f"That is no legal move: {error}\n\n{self.prompt()}", 0.0, False
        self._events = []
        paid = self._others.play(self._env, self._play, action)
        return self.prompt(), paid, self.over

    def prompt(self) -> str:
        """Return what happened since the seat's last move, the position and the legal moves, or the result."""
        view, outcome = self._env.view(self._agent), self._env.outcome()
        text = position_text(self.game, self.seat, self._events, view, outcome)
        return text if outcome["over"] else f"{text}\nAnswer with one of them alone, or end with a line `Move: …`."

    def hint(self, opponent: str | Opponent = "strong") -> str:
        """Return what an opponent, or one of a name, would play from this seat, and how the other moves compare.

        Raises ValueError for an unknown opponent, or if the episode is over.
        """
        if self.over:
            raise ValueError("the game is over")
        asked = load_opponent(opponent, self.game) if isinstance(opponent, str) else opponent
        return hint_text(self.game, asked.name, asked.evaluate(self._env.view(self._agent)))

    def legal_moves(self) -> list[str]:
        """Return the seat's legal moves; none once the episode is over."""
        return [] if self.over else self._env.legal_moves()

    def outcome(self) -> dict[str, Any]:
        """Return `{"over", "reason", "scores"}`."""
        return self._env.outcome()

    @property
    def over(self) -> bool:
        """True once the episode has ended."""
        return bool(self._env.outcome()["over"])

    @property
    def seat(self) -> int:
        return self._others.seat

    @property
    def _agent(self) -> str:
        return self._env.possible_agents[self.seat]

    def _play(self, action: int) -> None:
        self._events += step(self._env, action, seat_names(self.game, self.seat))

    def _action_in(self, answer: str) -> int:
        """Return the action that an answer names. Raises ValueError that says what is wrong, and what is legal."""
        if not isinstance(answer, str):
            raise ValueError(f"expected a text, got {answer!r:.80}")
        legal = self._env.legal_moves()
        try:
            move = move_in(answer, self.game.spelled, legal)
        except UnclearAnswer as error:
            raise ValueError(f"{error}; legal are {', '.join(legal)}.") from None
        if move not in legal:
            raise ValueError(f"{move!r}; legal are {', '.join(legal)}.")
        return self._env.parse_move(move)
