"""Games as a Minari data set: an episode is what one seat decides in a game."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from card_envs.compare._spread import spread
from card_envs.data._plan import Plan, Rows
from card_envs.envs.aec import observation_space


def to_minari(
    plan: Plan,
    dataset_id: str,
    *,
    processes: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Play games into a Minari data set of this machine; return the number of decisions.

    Observations are `{"observation": int8 [D], "action_mask": int8 [A]}`, as of the PettingZoo environment; the last
    one of an episode is what the seat sees when the game is over, with an empty mask.

    Args:
        plan: what is played.
        dataset_id: its name for Minari, such as "back_alley/strong-v0".
        processes: on this machine.
        progress: called with the numbers of games done and of rows so far.

    Raises:
        ValueError: an argument or a player does not fit, there is such a data set, or Minari is missing.
    """
    try:
        import minari
    except ImportError:
        raise ValueError("this format needs Minari: pip install 'card_envs[data]'") from None
    plan.check()
    if dataset_id in minari.list_local_datasets():
        raise ValueError(f"{dataset_id}: there is a Minari data set of this name")
    found: Any = None
    games = count = 0
    for part, rows in spread(partial(_played, plan), plan.parts(), processes):
        episodes = list(_episodes(plan, rows))
        if found is None:
            found = minari.create_dataset_from_buffers(
                dataset_id,
                episodes,
                observation_space=observation_space(plan.game, "observation"),
                action_space=spaces.Discrete(plan.game.rules.NUM_ACTIONS),
                algorithm_name=", ".join(plan.players) or "solver",
                description=f"{plan.game.title}: {plan.as_dict()}",
                data_format="arrow",
            )
        else:
            found.update_dataset_from_buffer(episodes)
        games, count = games + len(part), count + len(rows.seat)
        if progress is not None:
            progress(games, count)
    return count


def _played(plan: Plan, part: range) -> tuple[range, Rows]:
    return part, plan.play(part)


def _episodes(plan: Plan, rows: Rows) -> Iterator[Any]:
    """Yield what each seat decided in each game, as Minari's buffers."""
    from minari.data_collector import EpisodeBuffer

    no_mask = np.zeros((1, plan.game.rules.NUM_ACTIONS), np.int8)
    ends = np.flatnonzero(np.diff(rows.game)) + 1
    for number, game in enumerate(np.split(np.arange(len(rows.game)), ends)):
        for seat in range(plan.game.rules.NUM_SEATS):
            own = game[rows.seat[game] == seat]
            if len(own):
                yield EpisodeBuffer(
                    observations={
                        "observation": np.concatenate([rows.obs[own], rows.finals[number, seat][None]]),
                        "action_mask": np.concatenate([rows.mask[own], no_mask]),
                    },
                    actions=rows.action[own].astype(np.int64),
                    rewards=rows.reward[own],
                    terminations=rows.last[own],
                    truncations=np.zeros(len(own), np.bool_),
                    infos={},
                )
