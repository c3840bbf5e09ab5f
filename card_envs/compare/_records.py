"""Saving games of a contest as game records."""

from __future__ import annotations

from pathlib import Path

from card_envs.compare.contests import Contest, Part
from card_envs.play.episode import played as played_episode
from card_envs.system.files import check_output_folder


def save_records(contest: Contest, part: Part, folder: Path) -> int:
    """Save the games that a contest recorded; return their number.

    They are named `<pair>-<policies>.json`, the policy of side 0 first. The folder is created if it is missing.
    """
    check_output_folder(folder)
    options, names = contest.validated(), [_file_name(name) for name in contest.names]
    for number, policies, actions in part.recorded:
        label = "-".join(f"{i + 1}_{names[i]}" for i in policies)
        episode = played_episode(contest.game, options, contest.seed, number, actions)
        episode.record().save(folder / f"{number:04d}-{label}.json")
    return len(part.recorded)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in Path(name).name)
