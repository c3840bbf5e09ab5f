"""Provenance of data sets: metadata in each file, and a README that data hubs show as a card."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from card_envs.data._plan import Plan
from card_envs.game import Field, total
from card_envs.layout import table

CARD = "README.md"
LICENSE = "mit"
SIZES = (
    "n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B", "10B<n<100B",
    "100B<n<1T", "n>1T",
)  # fmt: skip
COLUMNS = {
    "game": "number of the episode, from 0",
    "deal": "number of the deal in it, from 0",
    "seat": "who decides",
    "player": "which opponent that is; `solver` in solved deals",
    "text": "the position: what the seat sees, as the terminal shows it",
    "legal": "a list of all legal moves, in the game's notation",
    "move": "what was played, one of these",
    "action": "what was played, a number below A",
    "reward": "what the seat is paid until its next decision",
    "last": "whether it is the seat's last decision in the episode",
    "obs": "observation: D bytes, one int8 each",
    "mask": "legal actions: A bytes, 1 where legal and 0 elsewhere",
    "values": "margin that a searching player expects of each action (or legal move); nan or null: it said nothing",
}
ONLY_IN = {"parquet": ("action", "obs", "mask"), "jsonl": ("text", "legal", "move")}
JOINED = 'b"".join(rows["obs"])'
OPENED: dict[
    str, dict[str, tuple[str, str | None]]
] = {  # by format and module: what reads the folder, and the bytes of all observations
    "parquet": {
        "pyarrow.parquet": ('pyarrow.parquet.read_table("games/data")', 'rows["obs"].combine_chunks().buffers()[1]'),
        "polars": ('polars.read_parquet("games/data")', JOINED),
        "datasets": ('datasets.load_dataset("games", split="train")', JOINED),
    },
    "jsonl": {
        "pyarrow.dataset": ('pyarrow.dataset.dataset("games/data", format="json").to_table()', None),
        "polars": ('polars.read_ndjson("games/data/*.jsonl")', None),
        "datasets": ('datasets.load_dataset("games", split="train")', None),
    },
}


def describe_columns(plan: Plan) -> dict[str, Any]:
    """Return what the numbers of a plan's rows mean, for JSON: fields of observations and actions with offsets."""
    rules = plan.game.rules
    return {"license": LICENSE, "observation": _fields(rules.OBS_FIELDS), "actions": _fields(rules.ACTION_FIELDS)}


def _fields(fields: Sequence[Field]) -> list[dict[str, Any]]:
    return [{"offset": total(fields[:i]), **field._asdict()} for i, field in enumerate(fields)]


def card(plan: Plan, form: str, num_rows: int) -> str:
    """Return a Markdown page about a folder of games, with the front matter that data hubs read.

    Args:
        plan: what was played.
        form: of the files.
        num_rows: in all files.
    """
    game, about = plan.game, plan.as_dict()
    foreign = [name for other, names in ONLY_IN.items() if other != form for name in names]
    columns = [name for name in COLUMNS if name not in foreign and (plan.values or name != "values")]
    tasks = ["reinforcement-learning"] + ["text-generation"] * (form == "jsonl")
    who = f"played by {', '.join(plan.names)}" if plan.names else "won by the solver with all cards known"
    front = {
        "pretty_name": f"{game.title}, {who}",
        "license": LICENSE,
        "task_categories": tasks,
        "tags": ["card_envs", game.name, "card-games", "offline-reinforcement-learning", "imitation-learning"],
        "size_categories": [SIZES[min(max(0, len(str(num_rows)) - 3), len(SIZES) - 1)]],
        "configs": [{"config_name": "default", "data_files": f"data/*.{form}"}],
    }
    parts = [
        "---\n" + "".join(f"{name}: {json.dumps(value)}\n" for name, value in front.items()) + "---",
        f"# {game.title}: {num_rows:,} decisions",
        f"Decisions of {game.title}, {who}. Made by card_envs {about['card_envs']} (rules of version {game.version}, "
        f"layout {about['layout']}):\n\n```bash\n{_command(plan, form)}\n```",
        "## Columns\n\n| column | what |\n| --- | --- |\n"
        + "\n".join(f"| `{name}` | {COLUMNS[name]} |" for name in columns),
        "## Reading it\n\nWhere `games` is this folder:\n\n" + "\n\n".join(_readers(form)),
    ]
    if form == "parquet":
        parts.append(
            "Each file's metadata has the players' digests and this layout, as JSON under the key `card_envs`.\n\n"
            f"## Observation\n\nD = {game.rules.OBS_SIZE}\n\n{table(game.rules.OBS_FIELDS)}\n"
            f"## Actions\n\nA = {game.rules.NUM_ACTIONS}\n\n{table(game.rules.ACTION_FIELDS)}"
        )
    return "\n\n".join(parts).rstrip() + "\n"


def _command(plan: Plan, form: str) -> str:
    """Return the command that generates the games of a plan."""
    words = ["python", "-m", "card_envs", "generate", plan.game.name, "--games", str(plan.games)]
    words += ["--seed", str(plan.seed), "--format", form, "--out", "games"]
    words += ["--players", ",".join(plan.names)] if plan.names else ["--solve", str(plan.solve_seconds)]
    for name, value in plan.options:
        words += ["--option", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words + ["--values"] * plan.values + ["--best"] * (not plan.sampled))


def _readers(form: str) -> Iterator[str]:
    """Yield blocks of code that open the files with one library each."""
    for module, (read, obs) in OPENED[form].items():
        lines = [f"import {module}", f"rows = {read}"]
        if obs:
            lines = ["import numpy as np", *lines, f"obs = np.frombuffer({obs}, np.int8).reshape(len(rows), -1)"]
        yield "```python\n" + "\n".join(lines) + "\n```"
