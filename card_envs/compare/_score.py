"""The standard measure: any agent against fixed opponents on fixed deals, on a scale from `random` to `strong`.

`strength/measure.json` defines it. Its name changes when something there does, or the rules of a game.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table as Sheet

from card_envs.compare._groups import improvement, leads, over_trainings
from card_envs.compare.contests import Contest, Part, modes_in_words
from card_envs.compare.estimates import Estimate, as_json
from card_envs.compare.report import duration, interval, on_one_line, percent
from card_envs.compare.standings import Standings
from card_envs.games import get_game
from card_envs.opponents.about import strength_folder
from card_envs.system.files import read_json

SCALE = (0, 50, 100)  # scores of the anchors


@dataclass(frozen=True)
class Measure:
    """The standard measure in a game.

    Attributes:
        name: of the measure; quick ones have another.
        contest: of the opponents alone.
        pairs: number of deals.
        anchors: margins of the players that define the scale, weakest first.
    """

    name: str
    contest: Contest
    pairs: int
    anchors: dict[str, float]

    def contest_of(self, name: str, trainings: tuple[str, ...], sampled: bool) -> Contest:
        """Return what an agent plays, or all trainings of a method."""
        opponents, groups = self.contest, ((name, trainings),) if len(trainings) > 1 else ()
        players = (*opponents.players, *trainings)
        return Contest(opponents.game, players, opponents.seed, opponents.options, sampled, groups=groups)

    def on_scale(self, margin: float) -> float:
        """Return the score of a margin: straight lines lead from the middle anchor to the others, and beyond."""
        worst, middle, best = self.anchors.values()
        return SCALE[1] + SCALE[1] * (margin - middle) / (middle - worst if margin < middle else best - middle)

    def in_words(self) -> str:
        """Return in a sentence what is played."""
        game, names = self.contest.game, ", ".join(self.contest.names)
        options = "".join(f", {name}={value}" for name, value in self.contest.options)
        how = f"more points than {names} on the same {self.pairs:,} deals"
        if not game.is_solitaire:
            how = f"points an episode over {names}, {self.pairs:,} deals each, every deal twice with the sides swapped"
        anchors = ", ".join(f"{name} {margin:.4g}" for name, margin in self.anchors.items())
        return f"{game.title} (version {game.version}{options}): {how}; on average, {anchors}."


def measures(quick: bool) -> dict[str, Measure]:
    """Return the standard measure of each game that has one. Raises ValueError if a game has other rules by now."""
    stored, found = read_json(strength_folder() / "measure.json"), {}
    for name, entry in stored["games"].items():
        game = get_game(name)
        if game.version != entry["version"]:
            raise ValueError(f"{stored['name']}: expected version {entry['version']} of {name}, got {game.version}")
        contest = Contest(game, tuple(stored["opponents"]), stored["seed"], tuple(entry["options"].items()))
        label, pairs = ("-quick", entry["quick_pairs"]) if quick else ("", entry["pairs"])
        found[name] = Measure(stored["name"] + label, contest, pairs, entry["anchors"])
    return found


class Score:
    """What an agent, or all trainings of a method, did in a game.

    Attributes:
        name: of the agent or method.
        measure: what was played.
        results: of all players.
        by_training: [R] mean margin of each training.
        figures: the score, the mean margin over the opponents, and the margin over each.
    """

    def __init__(self, name: str, measure: Measure, results: Standings, part: Part) -> None:
        """Compute the figures."""
        self.name, self.measure, self.results = name, measure, results
        rivals = range(len(measure.contest.names))
        ahead = leads(results.contest, part.margins, range(len(rivals), len(results.policies)), rivals)  # [R, O, N]
        margin = over_trainings(ahead.mean(axis=1))
        self.by_training: NDArray[np.float64] = ahead.mean(axis=(1, 2))
        self.figures = {"score": Estimate(*map(measure.on_scale, (margin.mean, margin.low, margin.high)))}
        self.figures |= {"margin": margin}
        self.figures |= {f"over_{name}": over_trainings(ahead[:, k]) for k, name in enumerate(measure.contest.names)}
        self.trainings = results.policies[len(rivals) :]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, with all results behind them."""
        scores = [self.measure.on_scale(margin) for margin in self.by_training.tolist()]
        about = {"measure": self.measure.name, "game": self.measure.contest.game.name, "name": self.name}
        about |= {"trainings": dict(zip(self.results.contest.names[-len(scores) :], scores))}
        figures = {name: as_json(figure) for name, figure in self.figures.items()}
        return {**about, **figures, "anchors": self.measure.anchors, "results": self.results.as_dict()}


def score_sheets(scores: Sequence[Score]) -> list[Sheet]:
    """Return a table of scores for each game."""
    by_game = groupby(sorted(scores, key=lambda score: score.measure.contest.game.name), lambda score: score.measure)
    return [_score_sheet(list(some)) for _, some in by_game]


def _score_sheet(scores: Sequence[Score]) -> Sheet:
    measure, several = scores[0].measure, any(len(score.trainings) > 1 for score in scores)
    sheet = Sheet(title=f"{measure.contest.game.title}: {measure.name}", show_lines=True)
    sheet.add_column("", overflow="fold")
    for column in (*scores[0].figures, *["trainings"] * several, "a move"):
        sheet.add_column(column.replace("_", " "), justify="right", no_wrap=True)
    for score in sorted(scores, key=lambda score: -score.by_training.mean()):
        low, high = (measure.on_scale(float(bound(score.by_training))) for bound in (np.min, np.max))
        spread = [f"{len(score.trainings)}\n{low:z.4g} to {high:z.4g}" if len(score.trainings) > 1 else ""] * several
        time = duration(score.trainings[0].microseconds_per_move)
        scaled, *margins = score.figures.values()
        sheet.add_row(score.name, interval(scaled), *(on_one_line(each, False) for each in margins), *spread, time)
    sheet.caption = "score: " + ", ".join(f"{name} {value}" for name, value in zip(measure.anchors, SCALE))
    return sheet


def score_notes(scores: Sequence[Score]) -> Iterator[str]:
    """Yield how probable it is that a training of one method is better than another's, and how all was measured."""
    for first, second in combinations(scores, 2):
        if first.measure is second.measure and max(len(first.trainings), len(second.trainings)) > 1:
            ahead = improvement(np.subtract.outer(first.by_training, second.by_training))
            better = percent(ahead).replace("\n", " (") + ")"
            yield f"{first.measure.contest.game.title}: {first.name} is better than {second.name}: {better}."
    played = " ".join(dict.fromkeys(score.measure.in_words() for score in scores))
    modes = modes_in_words((policy.name, policy.sampled) for score in scores for policy in score.trainings)
    over = "trainings and deals" if any(len(score.trainings) > 1 for score in scores) else "deals"
    anchors = ", ".join(f"{name} {value}" for name, value in zip(scores[0].measure.anchors, SCALE))
    yield (
        f"How this was measured: {scores[0].measure.name} of card_envs {version('card_envs')}, deals of seed "
        f"{scores[0].measure.contest.seed}. {played} Scores lie on straight lines through these averages ({anchors}). "
        f"{f'Networks: {modes}. ' if modes else ''}In brackets: 95 % intervals, each by itself, over {over}."
    )
