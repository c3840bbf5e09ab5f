"""Games as a Minari data set: an episode is what one seat decides in a game."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from card_envs.compare.rows import Rows
from card_envs.compare.spread import Executor
from card_envs.data._plan import Plan
from card_envs.envs._observations import ObservationFormat
from card_envs.system.files import short_repr


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
    one of an episode is what the seat sees when the game is over, with an empty mask. A data set that was stopped, or
    that would have no episodes, is deleted.

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
        from minari.dataset.minari_dataset import parse_dataset_id
    except ImportError:
        raise ValueError("this format needs Minari: pip install 'card_envs[data]'") from None
    try:
        parse_dataset_id(dataset_id)
    except (ValueError, TypeError):  # TypeError: no version
        raise ValueError(
            f"out: expected the name of a Minari data set, such as NAME/OF-v0, got {short_repr(dataset_id)}"
        ) from None
    workers = Executor(processes, ray_address)
    plan.check()
    folder = Path(minari.storage.get_dataset_path(dataset_id))
    if folder.exists():
        raise ValueError(f"{dataset_id}: there is a Minari data set of this name")
    games = count = 0

    def episodes() -> Iterator[Any]:
        nonlocal games, count
        parts = plan.parts()
        for part, rows in _in_order(parts, workers.spread(partial(_play_part, plan, plan.digests()), parts)):
            yield from _episodes(plan, rows)
            games, count = games + len(part), count + len(rows.seat)
            if progress is not None:
                progress(games, count)

    with workers:
        try:
            minari.create_dataset_from_buffers(
                dataset_id,
                episodes(),
                observation_space=ObservationFormat(plan.game).space(),
                action_space=spaces.Discrete(plan.game.rules.NUM_ACTIONS),
                algorithm_name=", ".join(plan.names) or "solver",
                description=f"{plan.game.title}: {plan.as_dict()}",
                data_format="arrow",
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    if not count:  # no deal was won
        shutil.rmtree(folder)
    return count


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
