"""The layout tables in a game's RULES.md for actions, observation and full state, generated from its fields.

They stand between the marks `<!-- layout: actions -->` and `<!-- /layout -->`, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

from card_envs.game import Field, Game
from card_envs.opponents.networks import onnx
from card_envs.opponents.networks._afterstates import move_fields

HEAD = "| name | size | low | high | meaning |\n| --- | --- | --- | --- | --- |\n"


def table(fields: Sequence[Field]) -> str:
    """Return fields as a Markdown table with one row each."""
    rows = (f"| `{name}` | {size} | {low} | {high} | {meaning} |\n" for name, size, high, low, meaning in fields)
    return HEAD + "".join(rows)


def tables(game: Game) -> dict[str, str]:
    """Return the tables by the name in their marks; that of the full state has what the observation lacks."""
    rules = game.rules
    hidden = rules.FULL_FIELDS[len(rules.OBS_FIELDS) :]
    parts = {"actions": rules.ACTION_FIELDS, "observation": rules.OBS_FIELDS, "full state": hidden}
    return {name: table(fields) for name, fields in parts.items() if fields}


def rewritten(game: Game, page: str) -> str:
    """Return the text of a rules page with its layout tables updated.

    Raises:
        ValueError: the marks of a table are missing.
    """
    for name, text in tables(game).items():
        first, last = f"<!-- layout: {name} -->\n", "<!-- /layout -->\n"
        before, found, rest = page.partition(first)
        _, closed, after = rest.partition(last)
        if not found or not closed:
            raise ValueError(f"{game.rules_page}: expected the lines {first.strip()} and, after it, {last.strip()}")
        page = before + first + text + last + after
    return page


def model_page(game: Game) -> str:
    """Return a Markdown description of ONNX inputs and outputs, for those who use a model in another language."""
    rules = game.rules
    fields = {"observation": rules.OBS_FIELDS, "action_mask": rules.ACTION_FIELDS, "moves": move_fields(rules)}
    parts = [f"## {name}\n\n{table(entries)}" for name, entries in fields.items()]
    return "\n".join([f"# {game.title}: inputs and outputs\n", (onnx.__doc__ or "").partition("\n\n")[2], *parts])
