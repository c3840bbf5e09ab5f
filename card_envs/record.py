"""Game records: everything needed to replay an episode (`card_envs.replay`), as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, ValidationError

from card_envs.system.files import MAX_JSON, read_utf8, replace_file


class GameRecord(BaseModel):
    """One episode, in the notation of the game's RULES.md. An illegal last move is not among the moves."""

    model_config = ConfigDict(extra="forbid")

    game: str
    version: int
    options: dict[str, Any]
    deal: dict[str, Any]  # as for `reset(options={"deal": …})`
    moves: Annotated[list[str], FailFast()]
    outcome: dict[str, Any]

    def save(self, path: str | Path) -> None:
        """Write the record as JSON, atomically."""
        replace_file(path, self.model_dump_json(indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> GameRecord:
        """Read a record. Raises ValueError naming the file if it is not one, OSError if it can't be read."""
        return parse_record(read_utf8(path, MAX_JSON), f"{path}: not a game record")


def parse_record(data: str | bytes | dict[str, Any], where: str) -> GameRecord:
    """Return a record, given as JSON or as what JSON says. Raises ValueError, which begins with `where`."""
    try:
        return GameRecord.model_validate(data) if isinstance(data, dict) else GameRecord.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {key}: {first['msg']}" if key else f"{where}: {first['msg']}") from None
