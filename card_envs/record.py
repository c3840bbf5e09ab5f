"""Game records: everything needed to play an episode again, as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from card_envs.envs.aec import CardEnv


class GameRecord(BaseModel):
    """One episode, in the notation of the game's RULES.md. An illegal last move is not among the moves."""

    model_config = ConfigDict(extra="forbid")

    game: str
    version: int
    options: dict[str, Any]
    deal: dict[str, Any]  # as for `reset(options={"deal": …})`
    moves: list[str]
    outcome: dict[str, Any]

    def save(self, path: str | Path) -> None:
        """Write the record as JSON."""
        Path(path).write_text(self.model_dump_json(indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> GameRecord:
        """Read a record. Raises ValueError naming the file if it is not one."""
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{path}: no game record: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None

    def replay(self, num_moves: int | None = None) -> CardEnv:
        """An environment in which the first `num_moves` moves (default all) have been played.

        Raises:
            ValueError: another version of the rules, or a move that is illegal at its place.
        """
        from card_envs.envs.aec import CardEnv
        from card_envs.games import get_game

        game = get_game(self.game)
        if game.version != self.version:
            raise ValueError(f"record of {self.game} version {self.version}; these are the rules of {game.version}")
        env = CardEnv(game, illegal_move="raise", **self.options)
        env.reset(seed=0, options={"deal": self.deal})
        for number, move in enumerate(self.moves[:num_moves]):
            action = env.parse_move(move)
            if move not in env.legal_moves():
                raise ValueError(f"move {number}: {move} is illegal; legal: {', '.join(env.legal_moves())}")
            env.step(action)
        return env

    def verify(self) -> None:
        """Replay and compare the outcome. Raises ValueError where they differ."""
        outcome = self.replay().outcome()
        if self.outcome.get("reason") == "illegal" and not outcome["over"]:
            outcome |= {"over": True, "reason": "illegal"}
        if outcome != self.outcome:
            raise ValueError(f"the record says {self.outcome}, its moves lead to {outcome}")
