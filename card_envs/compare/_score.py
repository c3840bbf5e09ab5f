"""The standard measure: any agent against fixed opponents on fixed deals, on a scale from `random` to `strong`.

`strength/measure.json` defines it. Its name changes when something there does, or the rules of a game.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from card_envs.compare._groups import Group, improvement, leads, over_trainings
from card_envs.compare.contests import Contest, Part, modes_in_words
from card_envs.compare.estimates import Estimate, as_json, span
from card_envs.compare.report import duration, on_one_line, percent
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

    def contest_of(self, group: Group, sampled: bool) -> Contest:
        """Return what an agent plays, or all trainings of a method."""
        rivals, groups = self.contest, (group,) if len(group[1]) > 1 else ()
        return Contest(rivals.game, (*rivals.players, *group[1]), rivals.seed, rivals.options, sampled, groups=groups)

    def on_scale(self, margin: float) -> float:
        """Return the score of a margin: straight lines lead from the middle anchor to the others, and beyond."""
        worst, middle, best = self.anchors.values()
        return SCALE[1] + SCALE[1] * (margin - middle) / (middle - worst if margin < middle else best - middle)

    def in_words(self) -> str:
        """Return in a sentence what is played."""
        game, names = self.contest.game, " and ".join(self.contest.names)
        options = "".join(f", {name}={value}" for name, value in self.contest.options)
        twice = "" if game.is_solitaire else " twice, with the sides swapped,"
        anchors = ", ".join(f"{name} {margin:.4g}" for name, margin in self.anchors.items())
        played = f"{self.pairs:,} deals played{twice} by it and each of {names}"
        return f"{game.title} (version {game.version}{options}): {played}; mean margin of {anchors}."


def measures(quick: bool) -> dict[str, Measure]:
    """Return the standard measure of each game that has one. Raises ValueError if a game has other rules by now."""
    stored, by_game = read_json(strength_folder() / "measure.json"), {}
    for name, entry in stored["games"].items():
        game = get_game(name)
        if game.version != entry["version"]:
            raise ValueError(f"{stored['name']}: expected version {entry['version']} of {name}, got {game.version}")
        contest = Contest(game, tuple(stored["opponents"]), stored["seed"], tuple(entry["options"].items()))
        label, pairs = ("-quick", entry["quick_pairs"]) if quick else ("", entry["pairs"])
        by_game[name] = Measure(stored["name"] + label, contest, pairs, entry["anchors"])
    return by_game


def contests_of(
    group: Group, measures: Sequence[Measure], sampled: bool, say: Callable[[str], object]
) -> list[tuple[str, Measure, Contest]]:
    """Return what an agent or method plays; say in which games it can't. Raises ValueError if in none."""
    tasks, problems = [], []
    for measure in measures:
        contest = measure.contest_of(group, sampled)
        try:
            contest.check()
            tasks.append((group[0], measure, contest))
        except ValueError as error:
            problems.append(error)
    if not tasks:
        raise problems[0]
    refusals = [f"left out: {problem}" for problem in problems if ":" in group[1][0]]  # a class should play all games
    for line in refusals + [line for *_, contest in tasks for line in contest.warnings()]:
        say(line)
    return tasks


class Score:
    """The results of an agent, or of all trainings of a method, in a game.

    Attributes:
        name, measure, results: of the agent or method; what was played; the results of all players.
        trainings: results of its own; `by_training` has their mean margins.
        figures: the score, the mean margin over the opponents, and the margin over each.
    """

    def __init__(self, name: str, measure: Measure, results: Standings, part: Part) -> None:
        """Compute the figures."""
        self.name, self.measure, self.results, opponents = name, measure, results, measure.contest.names
        self.trainings, rivals = results.policies[len(opponents) :], range(len(opponents))
        ahead = leads(results.contest, part.margins, range(len(opponents), len(results.policies)), rivals)
        self.by_training, margin = ahead.mean(axis=(1, 2)), over_trainings(ahead.mean(axis=1))
        self.figures = {"score": Estimate(*map(measure.on_scale, (margin.mean, margin.low, margin.high)))}
        self.figures |= {"margin": margin}
        self.figures |= {f"over_{rival}": over_trainings(ahead[:, k]) for k, rival in enumerate(opponents)}

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, with all results behind them."""
        scores = map(self.measure.on_scale, self.by_training.tolist())
        return {
            "measure": self.measure.name, "game": self.measure.contest.game.name, "name": self.name,
            **{name: as_json(figure) for name, figure in self.figures.items()},
            "trainings": {policy.name: score for policy, score in zip(self.trainings, scores)},
            "results": self.results.as_dict(),
        }  # fmt: skip


def rows_of(scores: Sequence[Score]) -> Iterator[list[str]]:
    """Yield the rows of a table of scores, by game and best first."""
    for score in sorted(scores, key=lambda score: (score.measure.contest.game.title, -score.by_training.mean())):
        scaled, *margins = score.figures.values()
        name, time = f"{score.measure.contest.game.title}:\n{score.name}", score.trainings[0].microseconds_per_move
        scale = f"{scaled.mean:z.1f}\n{span(scaled, 'z.1f')}", *(on_one_line(margin, False) for margin in margins)
        yield [name, *scale, duration(time)]


def score_notes(scores: Sequence[Score]) -> Iterator[str]:
    """Yield what is known of methods by their trainings, and a paragraph for papers: how all was measured."""
    for first in scores:
        title, by_training = first.measure.contest.game.title, first.by_training
        if len(by_training) > 1:
            low, high = map(first.measure.on_scale, (by_training.min(), by_training.max()))
            yield f"{title}: {len(by_training)} trainings of {first.name} have scores from {low:z.1f} to {high:z.1f}."
        for second in scores[scores.index(first) + 1 :]:
            if first.measure is second.measure and len(by_training) + len(second.by_training) > 2:
                better = percent(improvement(np.subtract.outer(by_training, second.by_training))).replace("\n", " (")
                yield f"{title}: a training of {first.name} is better than {second.name}: {better})."
    measure, played = scores[0].measure, " ".join(dict.fromkeys(score.measure.in_words() for score in scores))
    modes = modes_in_words((policy.name, policy.sampled) for score in scores for policy in score.trainings)
    over = "trainings and deals" if any(len(score.trainings) > 1 for score in scores) else "deals"
    anchors = ", ".join(f"{name} {value}" for name, value in zip(measure.anchors, SCALE))
    yield (
        f"How this was measured: {measure.name} of card_envs {version('card_envs')}, seed {measure.contest.seed}. "
        f"{played} Scores lie on straight lines through these margins ({anchors}). "
        f"{f'Networks: {modes}. ' if modes else ''}Intervals: 95 %, each by itself, over {over}."
    )
