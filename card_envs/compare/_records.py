"""Saving games of a contest as game records."""

from __future__ import annotations

from pathlib import Path

from card_envs.compare.contests import Contest, chunks, lineups
from card_envs.compare.games import play_games
from card_envs.play.episode import played as played_episode
from card_envs.system.files import check_output_folder


def save_records(contest: Contest, pairs: int, limit: int, folder: Path) -> int:
    """Replay the first portion of a contest, move for move, and save the games of its first pairs.

    Args:
        contest: what was played.
        pairs: of the contest.
        limit: number of pairs to save, at most the first portion.
        folder: created if missing.

    Returns:
        Number of games saved, as `<pair>-<policies>.json`, the policy of side 0 first.
    """
    check_output_folder(folder)
    numbers = chunks(pairs)[0]
    saved = 0
    names, options = contest.names, contest.game.validated(dict(contest.options))
    for lineup in lineups(contest.game, len(names)):
        games = play_games(contest.plan(lineup, keep_moves=True), numbers)
        tables_per_pair = len(lineup)
        for table in range(min(limit, len(numbers)) * tables_per_pair):
            number = int(games.number[table])
            there = lineup[::-1] if table % tables_per_pair else lineup
            label = "-".join(f"{i + 1}_{_file_name(names[i])}" for i in there)
            episode = played_episode(contest.game, options, contest.seed, number, games.actions_of(table))
            episode.record().save(folder / f"{number:04d}-{label}.json")
            saved += 1
    return saved


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in Path(name).name)
