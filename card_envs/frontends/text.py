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

from card_envs.engine.buffers import known_keys, new_seed
from card_envs.envs._others import Others
from card_envs.envs.single_agent import LearnersSeat, Opponents, other_players
from card_envs.frontends._answers import FORM, UnclearAnswer, move_in
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Opponent
from card_envs.play.episode import RANDOM, Episode
from card_envs.play.narration import hint_text, legend_text, options_text, position_text, seat_names
from card_envs.play.sitting import Sitting, seated


class TextEnv:
    """A seat that is shown its position as text and answers with a move, in any spelling that leaves no doubt.

    An answer ends with a line `Move: TD`, has `<move>TD</move>` somewhere, or is nothing but a move; what stands in a
    thought does not count. To any other answer, the reply says what is wrong and repeats the form. It is counted, and
    the position stays.

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
        self._options = self.game.validated(options)
        self._sitting: Sitting | None = None
        self.invalid = 0

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> str:
        """Begin an episode; return the rules in short, unusual options, what moves mean, and the first position.

        Args:
            seed: of deals and opponents; None: another episode each time.
            options: as for the PettingZoo environment: `{"deal": …}`.

        Raises:
            ValueError: a malformed seed or deal.
        """
        rng = np.random.default_rng(seed)
        deal = known_keys(options, ("deal",), "reset options").get("deal", RANDOM)
        episode = Episode(self.game, self._options, deal, new_seed() if seed is None else seed)
        self._others.begin(rng)
        players, names = seated(self._others.players, self.seat), seat_names(self.game, self.seat)
        self._sitting = Sitting(episode, players, self._others.rng, names)
        self.invalid = 0
        for _ in self._sitting.advance():
            pass
        unusual = options_text(self.game, self._sitting.view(self.seat)["options"])
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
        sitting = self._begun
        paid = sitting.play(action)[self.seat]
        for rewards in sitting.advance():
            paid += rewards[self.seat]
        if self.over:
            self._others.report(sitting.outcome()["scores"])
        return self.prompt(), paid, self.over

    def prompt(self) -> str:
        """Return what happened since the seat's last move, the position and the legal moves, or the result."""
        text = position_text(self.game, self.seat, *self._begun.prompt(self.seat))
        return text if self.over else f"{text}\nAnswer with {FORM}."

    def hint(self, opponent: str | Opponent = "strong") -> str:
        """Return what an opponent, or one of a name, would play from this seat, and how the other moves compare.

        Raises ValueError for an unknown opponent, or if the episode is over.
        """
        if self.over:
            raise ValueError("the game is over")
        asked = load_opponent(opponent, self.game) if isinstance(opponent, str) else opponent
        return hint_text(self.game, asked.name, self._begun.advice(self.seat, asked))

    def legal_moves(self) -> list[str]:
        """Return the seat's legal moves; none once the episode is over."""
        return self._begun.legal_moves()

    def outcome(self) -> dict[str, Any]:
        """Return `{"over", "reason", "scores"}`."""
        return self._begun.outcome()

    @property
    def over(self) -> bool:
        """True once the episode has ended."""
        return self._begun.over

    @property
    def seat(self) -> int:
        return self._others.seat

    @property
    def _begun(self) -> Sitting:
        if self._sitting is None:
            raise RuntimeError(f"{self.game.name}: call reset() first")
        return self._sitting

    def _action_in(self, answer: str) -> int:
        """Return the action that an answer names. Raises ValueError that says what is wrong, and what is legal."""
        if not isinstance(answer, str):
            raise ValueError(f"expected a text, got {answer!r:.80}")
        legal = self.legal_moves()
        try:
            move = move_in(answer, self.game.spelled)
        except UnclearAnswer as error:
            raise ValueError(f"{error}; legal are {', '.join(legal)}.") from None
        if move not in legal:
            raise ValueError(f"{move!r}; legal are {', '.join(legal)}.")
        return self._begun.action(move)
