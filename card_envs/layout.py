"""The layout tables in a game's RULES.md for actions, observation and full state, generated from its fields.

They stand between the marks `<!-- layout: actions -->` and `<!-- /layout -->`, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

from card_envs.game import Field, Game
from card_envs.opponents.networks.afterstates import move_fields

HEAD = "| name | size | low | high | meaning |\n| --- | --- | --- | --- | --- |\n"


def table(fields: Sequence[Field]) -> str:
    """Return fields as a Markdown table with one row each."""
    rows = (f"| `{name}` | {size} | {low} | {high} | {meaning} |\n" for name, size, high, low, meaning in fields)
    return HEAD + "".join(rows)


def layout_tables(game: Game) -> dict[str, str]:
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
    for name, text in layout_tables(game).items():
        first, last = f"<!-- layout: {name} -->\n", "<!-- /layout -->\n"
        before, mark, rest = page.partition(first)
        _, closed, after = rest.partition(last)
        if not mark or not closed:
            raise ValueError(f"{game.rules_page}: expected the lines {first.strip()} and, after it, {last.strip()}")
        page = before + first + text + last + after
    return page


# The inputs of ONNX models. The last four: of networks that score actions by their afterstates.
MODEL_INPUTS = {
    "observation": "[n, D] float32: what the seat to move sees, as the environments return it, unscaled.",
    "action_mask": "[n, A] float32: 1 where legal.",
    "moves": "[R, M] float32, unscaled: a row for each legal action of the n decisions.",
    "lookahead_moves": "[R, M] float32, unscaled: a row for each afterstate of the legal actions of the n decisions.",
    "decision": "[R] int64: the decision of each row, from 0 to n - 1.",
    "action": "[R] int64: the action of each row.",
}


def model_page(game: Game, inputs: Sequence[str]) -> str:
    """Return a Markdown description of an ONNX model, for those who use it in another language.

    Args:
        game: the game.
        inputs: the names of those that it reads.
    """
    rules = game.rules
    fields = {"observation": rules.OBS_FIELDS, "action_mask": rules.ACTION_FIELDS}
    fields |= dict.fromkeys(("moves", "lookahead_moves"), move_fields(rules))
    head = f"# {game.title}: inputs and outputs of a model\n\nFor version {game.version} of {game.name}. It reads "
    parts = [
        head + ", ".join(f"`{name}`" for name in inputs) + ", and returns `probabilities` or `logits` [n, A] float32.\n"
    ]
    for name in inputs:
        parts.append(f"## {name}\n\n{MODEL_INPUTS[name]}\n")
        if name in fields:
            parts.append(table(fields[name]))
    if "decision" in inputs:
        parts.append(
            "In Python, `card_envs.opponents.networks.onnx.dense_moves` computes all inputs but the first two.\n"
        )
    return "\n".join(parts)
