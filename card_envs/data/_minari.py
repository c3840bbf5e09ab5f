"""Games as a Minari data set: an episode is what one seat decides in a game."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from card_envs.compare.rows import Rows
from card_envs.compare.spread import Executor
from card_envs.data._plan import Plan
from card_envs.envs._observations import ObservationFormat
from card_envs.system.files import OLD, clear_leftovers, short_repr

ROOT = "MINARI_DATASETS_PATH"  # environment variable


def to_minari(
    plan: Plan,
    dataset_id: str,
    *,
    processes: int = 1,
    ray_address: str = "",
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Play games into a Minari data set of this machine; return the number of decisions.

    Observations are `{"observation": int8 [D], "action_mask": int8 [A]}`, as of the PettingZoo environment; the last
    one of an episode is what the seat sees when the game is over, with an empty mask.

    Args:
        plan: what is played.
        dataset_id: its name for Minari, such as "back_alley/strong-v0".
        processes, ray_address: the workers, as for `generate`.
        progress: called with the numbers of games done and of rows so far.

    Raises:
        ValueError: an argument or a player does not fit, there is such a data set, or Minari or Ray is missing.
        OSError: the cluster can't be reached.
    """
    try:
        import minari
    except ImportError:
        raise ValueError("this format needs Minari: pip install 'card_envs[data]'") from None
    _check_name(dataset_id)
    workers = Executor(processes, ray_address)
    plan.check()
    root = Path(minari.storage.get_dataset_path())
    if (root / dataset_id).exists():
        raise ValueError(f"{dataset_id}: there is a Minari data set of this name")
    for parent in Path(dataset_id).parents:
        if (root / parent / "data").is_dir():
            raise ValueError(f"{dataset_id}: {parent} is a Minari data set, in which there can be no other one")
    with workers:
        # Complete, or not there at all: a part of a data set would trouble all programs that list them. Minari skips
        # hidden folders.
        clear_leftovers(root, OLD)
        hidden = root / f".new-{os.getpid()}-{secrets.token_hex(8)}"
        try:
            count = _write_minari(plan, hidden, dataset_id, workers, progress)
            if count:
                _make_known(hidden, root, dataset_id)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
    return count


def _write_minari(
    plan: Plan, root: Path, dataset_id: str, workers: Executor, progress: Callable[[int, int], object] | None
) -> int:
    """Play games into a data set below another root than the user's; return the number of decisions."""
    import minari

    dataset: Any = None
    games = count = 0
    for part, rows in _in_order(plan.parts(), workers.spread(partial(_play_part, plan, plan.digests()), plan.parts())):
        episodes = list(_episodes(plan, rows))
        if dataset is not None:
            dataset.update_dataset_from_buffer(episodes)
        elif episodes:  # no deal of a part may have been won
            with _datasets_in(root):
                dataset = minari.create_dataset_from_buffers(
                    dataset_id,
                    episodes,
                    observation_space=ObservationFormat(plan.game).space(),
                    action_space=spaces.Discrete(plan.game.rules.NUM_ACTIONS),
                    algorithm_name=", ".join(plan.names) or "solver",
                    description=f"{plan.game.title}: {plan.as_dict()}",
                    data_format="arrow",
                )
        games, count = games + len(part), count + len(rows.seat)
        if progress is not None:
            progress(games, count)
    return count


def _check_name(dataset_id: str) -> None:
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        parse_dataset_id(dataset_id)
        if any(part.startswith(".") or part == "data" for part in dataset_id.split("/")):
            raise ValueError  # Minari skips hidden folders, and takes one with a folder `data` for a data set
    except (ValueError, TypeError):  # TypeError: no version
        raise ValueError(
            f"out: expected the name of a Minari data set, such as NAME/OF-v0, got {short_repr(dataset_id)}"
        ) from None


@contextmanager
def _datasets_in(root: Path) -> Iterator[None]:
    """Let Minari create data sets below another root."""
    root.mkdir(exist_ok=True)
    before = os.environ.get(ROOT)
    os.environ[ROOT] = str(root)
    try:
        yield
    finally:
        if before is None:
            del os.environ[ROOT]
        else:
            os.environ[ROOT] = before


def _make_known(hidden: Path, root: Path, dataset_id: str) -> None:
    """Move a complete data set, and its namespace if that is new, to where Minari finds it."""
    target = root / dataset_id
    namespace = hidden
    for name in Path(dataset_id).parts[:-1]:
        namespace = namespace / name
        known = root / namespace.relative_to(hidden)
        known.mkdir(exist_ok=True)
        for file in namespace.iterdir():
            if file.is_file() and not (known / file.name).exists():
                shutil.copy2(file, known)
    (hidden / dataset_id).rename(target)


def _play_part(plan: Plan, digests: dict[str, str], part: range) -> tuple[range, Rows]:
    return part, plan.play(part, digests)


def _in_order(parts: list[range], played: Iterator[tuple[range, Rows]]) -> Iterator[tuple[range, Rows]]:
    """Yield parts, which come as they are finished, in their own order."""
    early: dict[range, Rows] = {}
    for part in parts:
        while part not in early:
            early.update([next(played)])
        yield part, early.pop(part)


def _episodes(plan: Plan, rows: Rows) -> Iterator[Any]:
    """Yield what each seat decided in each game, as Minari's buffers."""
    from minari.data_collector import EpisodeBuffer

    no_mask = np.zeros((1, plan.game.rules.NUM_ACTIONS), np.int8)
    ends = np.flatnonzero(np.diff(rows.game)) + 1
    for number, game in enumerate(np.split(np.arange(len(rows.game)), ends)):
        for seat in range(plan.game.rules.NUM_SEATS):
            decided = game[rows.seat[game] == seat]
            if len(decided):
                yield EpisodeBuffer(
                    observations={
                        "observation": np.concatenate([rows.obs[decided], rows.finals[number, seat][None]]),
                        "action_mask": np.concatenate([rows.mask[decided], no_mask]),
                    },
                    actions=rows.action[decided].astype(np.int64),
                    rewards=rows.reward[decided],
                    terminations=rows.last[decided],
                    truncations=np.zeros(len(decided), np.bool_),
                    infos={},
                )
