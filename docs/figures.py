"""Writes the tables of measured figures into the documents: `python docs/figures.py`.

Where they come from: `strength/GAME-*.json`, which `compare --json` writes; `docs/speed.json`, which `bench --json`
writes; `docs/gpu.json` of `python -m benchmarks.gpu`; `strength/baselines.json` of `python -m benchmarks.training`. A
table stands between `<!-- figures: NAME -->` and `<!-- /figures -->`; what the names are, `tables` says.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

from card_envs import GAMES, Game
from card_envs.compare.report import duration
from card_envs.opponents import opponent_names
from card_envs.opponents._levels import levels
from card_envs.opponents.about import figures_of as measured_strength

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "strength/README.md", "docs/speed.md", "docs/baselines.md", "docs/guides/measure.md")
MARKED = re.compile(r"(<!-- figures: (\S+) -->\n).*?(<!-- /figures -->\n)", re.S)
FRONT_PLAYERS = ("champion", "strong", "search:64", "small", "greedy")
# A stronger player, a weaker one, and the comparisons in which they may have met, the largest first.
HEAD_TO_HEAD = (
    ("champion", "strong", ("top",)),
    ("strong", "search:64", ("steps", "ladder", "front")),
    ("strong", "small", ("steps", "ladder", "front")),
    ("search:64", "small", ("steps", "ladder", "front")),
    ("small", "greedy", ("front",)),
)
FRONT_PAGE = ("random playouts, M/s", "BatchEnv.step, 1,024 tables, M/s", "AEC last + step, k/s")  # rows of `bench`
FRONT_TABLES = 1 << 16  # of the row from a GPU
METHODS = {
    "maskable_ppo": "MaskablePPO",
    "cleanrl_ppo": "PPO in CleanRL's style",
    "tianshou_dqn": "Tianshou's DQN",
    "ppo": "our `ppo`",
    "advantages": "our `advantages`",
    "td": "our `td`",
}
MARKS = (30_000, 100_000, 0.1, 0.3, 1.0)  # of learning curves: decisions, and shares of the time

Figures = dict[str, Any]


def rows(head: list[str], body: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def spread(figure: Figures | None, scale: float = 1, form: str = ".0f", unit: str = "") -> str:
    """A mean with its 95 % interval."""
    if figure is None:
        return ""
    mean, low, high = (
        endless if figure[key] is None else f"{scale * figure[key]:{form.replace('.', 'z.', 1)}}"
        for key, endless in (("mean", "?"), ("low", "-∞"), ("high", "∞"))
    )
    return f"{mean} ({low} to {high}){unit}" if (low, high) != (mean, mean) else f"{mean}{unit}"


def by_strength(found: Figures) -> list[Figures]:
    """The policies of a comparison, the strongest first."""
    key = "rating" if "rating" in found["policies"][0] else "win_share"
    return sorted(found["policies"], key=lambda policy: -policy[key]["mean"])


def strength(found: Figures) -> str:
    """The policies of a comparison with all their figures."""
    solved = "won_of_winnable" in found["policies"][0]
    body = []
    for policy in by_strength(found):
        won, move = spread(policy["win_share"], 100, ".1f", " %"), duration(policy["microseconds_per_move"])
        if "rating" in policy:
            cells = [spread(policy["rating"]), won, spread(policy["margin_per_episode"], form="+.1f")]
        else:
            cells = [won, spread(policy["score"], form=".1f")]
            cells += [spread(policy["won_of_winnable"], 100, ".1f", " %")] if solved else []
        body.append([f"`{policy['name']}`", *cells, move])
    two_sides = "rating" in found["policies"][0]
    head = ["rating", "won", "margin"] if two_sides else ["deals won", "score", *["of the winnable"] * solved]
    return rows(["", *head, "a move"], body)


def figures_of(game: Game, name: str) -> Path:
    """The file of a comparison of a game's players."""
    return ROOT / "strength" / f"{game.name}-{name}.json"


def measured_games() -> list[Game]:
    """The games whose players' strength has been measured; a new one may have no figures."""
    return [game for game in GAMES.values() if figures_of(game, "front").exists()]


def comparison(game: Game, name: str) -> Figures:
    """A comparison of a game's players."""
    figures: Figures = json.loads(figures_of(game, name).read_text(encoding="utf-8"))
    return figures


def over(found: Figures, name: str, other: str) -> Figures:
    """Return a policy's margin over another per episode; in a solitaire, the difference in the share of deals won.

    Raises ValueError where the two did not meet.
    """
    for pairing in found["pairings"]:
        margin: Figures = pairing.get("margin_per_episode") or pairing["wins_more"]
        if (pairing["first"], pairing["second"]) == (name, other):
            return margin
        if (pairing["first"], pairing["second"]) == (other, name):
            mean, low, high = (None if margin[key] is None else -margin[key] for key in ("mean", "low", "high"))
            return {"mean": mean, "low": high, "high": low}
    raise ValueError(f"{name} did not play {other}")


def head_to_head() -> str:
    """Return a table of all games: the margins of stronger players over weaker ones."""
    games = measured_games()
    head = ["", *(f"{game.title}: " + ("more won of 100" if game.is_solitaire else "points") for game in games)]
    body = []
    for name, other, places in HEAD_TO_HEAD:
        row = [f"`{name}` over `{other}`"]
        for game in games:
            if name == "champion" and is_strong(game, name):
                row.append("the same")
                continue
            made = [comparison(game, place) for place in places if figures_of(game, place).exists()]
            found = next(one for one in made if {name, other} <= {policy["name"] for policy in one["policies"]})
            row.append(spread(over(found, name, other), 100 if game.is_solitaire else 1, "+.1f"))
        body.append(row)
    return rows(head, body)


def player_levels() -> str:
    """Return a table of all games: their levels for people, and the players behind them."""
    body = [
        [f"{game.title}, {level.name}", f"`{level.player}`", level.strength]
        for game in measured_games()
        for level in levels(game, opponent_names(game))
    ]
    return rows(["level", "player", "measured"], body)


def is_strong(game: Game, name: str) -> bool:
    """Whether a preset stands for the same player as `strong`."""
    return game.presets[name] == game.presets["strong"]


def summary() -> str:
    """Return a table of all games: points over `greedy`, or deals won in a solitaire, as the command `games` has them.

    Raises ValueError where the players of a game did not play the same deals.
    """
    games = measured_games()
    head, counts = [""], []
    for game in games:
        found = comparison(game, "front")
        if not is_strong(game, "champion"):
            best = comparison(game, "champion")
            if any(found[key] != best[key] for key in ("options", "seed", "pairs")):
                raise ValueError(f"{game.name}: `front` and `champion` are not of the same deals")
        head.append(f"{game.title}: " + ("deals won" if game.is_solitaire else "points per deal"))
        options = "".join(f" with `{name}={value}`" for name, value in found["options"].items())
        counts.append(
            f"{game.title}{options}: {found['pairs']:,} {'deals' if game.is_solitaire else 'mirrored pairs'}."
        )
    body = []
    for name in FRONT_PLAYERS:
        meant = [(game, "strong" if name == "champion" and is_strong(game, name) else name) for game in games]
        found = [measured_strength(player, game) for game, player in meant]
        times = sorted(time for *_, time in found if time is not None)
        span = f"{duration(times[0])} to {duration(times[-1])}"
        body.append([f"`{name}`", *(figure or "0" for _, figure, _ in found), span])
    return rows([*head, "a move"], body) + "\n" + fill(" ".join(counts), 120) + "\n"


def speed(labels: tuple[str, ...] = ()) -> str:
    """Return the table of `bench`: the named rows by CPU time and a GPU's, or all rows, by the clock as well."""
    found = json.loads((ROOT / "docs" / "speed.json").read_text(encoding="utf-8"))["games"]
    games = [game for game in GAMES.values() if game.name in found]
    form = "{cpu:.3g}" if labels else "{cpu:.3g} / {clock:.3g}"
    body = [
        [label, *(form.format(**found[game.name][label]) for game in games)]
        for label in labels or tuple(found[games[0].name])
    ]
    if labels:
        card = cards()[0]
        label = f"GpuBatchEnv.step, {FRONT_TABLES:,} tables, {card['card']}, by the clock, M/s"
        body.append([label, *(str(card["rates"][game.name][str(FRONT_TABLES)]) for game in games)])
    return rows(["", *(game.title for game in games)], body)


def cards() -> list[Figures]:
    """Return the figures of `benchmarks.gpu`, one entry for each card."""
    found: list[Figures] = json.loads((ROOT / "docs" / "gpu.json").read_text(encoding="utf-8"))
    return found


def gpus() -> str:
    """Return a table for each card: our steps beside pgx's environments, in millions a second."""
    titles = {game.name: game.title for game in GAMES.values()}
    parts = []
    for found in cards():
        sizes = sorted({int(size) for rates in found["rates"].values() for size in rates})
        body = [
            [titles.get(name, name.replace(" ", ", ")), *(str(rates.get(str(size), "")) for size in sizes)]
            for name, rates in found["rates"].items()
        ]
        head = [f"**{found['card']}**", *(f"{size:,} tables, M/s" for size in sizes)]
        parts.append(rows(head, body) + "\n" + fill(f"{found['made']}.", 120) + "\n")
    return "\n".join(parts)


def by_seed(runs: Figures, mark: float, value: Callable[[Figures], float], form: str) -> str:
    """Return the mean of a method's seeds at a point of its learning curves, with the least and the most."""
    points = [point for one in runs.values() for point in one["points"] if mark in point["after"]]
    if not points:
        return ""
    found = [value(point) for point in points]
    return spread({"mean": fmean(found), "low": min(found), "high": max(found)}, form=form)


def curves(game: Figures, title: str, value: Callable[[Figures], float], form: str) -> str:
    """Return a table of learning curves, with players that did not learn here below."""
    seconds = [f"{60 * game['minutes'] * mark:.3g} s" if mark <= 1 else f"{mark:,} decisions" for mark in MARKS]
    body = [
        [METHODS[name], *(by_seed(game["methods"][name], mark, value, form) for mark in MARKS)]
        for name in METHODS
        if name in game["methods"]
    ]
    blank = [""] * (len(MARKS) - 1)
    body += [[f"`{name}`", *blank, f"{value(found):{form}}"] for name, found in game["known"].items()]
    return rows([title, *seconds], body)


def costs(game: Figures) -> str:
    """Return a table of what methods cost."""
    body = []
    for name in METHODS:
        runs = list(game["methods"].get(name, {}).values())
        if runs:
            decisions = fmean(one["points"][-1]["decisions"] for one in runs)
            rate = fmean(one["decisions_per_second"] for one in runs)
            memory = min(one["memory_mib"] for one in runs)
            body.append([METHODS[name], f"{len(runs)}", f"{decisions:,.0f}", f"{rate:,.0f}", f"{memory:,}"])
    return rows(["cost", "seeds", "decisions", "a second", "MiB"], body)


def baselines(name: str, game: Figures) -> str:
    """Return the learning curves of a game's methods against each scripted player, and their cost."""

    def over(anchor: str) -> Callable[[Figures], float]:
        return lambda point: float(point[anchor]["gained"]["mean"])

    parts = [curves(game, f"over `{anchor}`", over(anchor), "+.1f") for anchor in ("greedy", "trivial")]
    ends = [
        point["greedy"]["gained"]
        for runs in game["methods"].values()
        for one in runs.values()
        for point in one["points"]
        if 1.0 in point["after"]
    ]
    half = fmean(end["high"] - end["low"] for end in ends) / 2
    what = "deals" if GAMES[name].is_solitaire else "mirrored pairs"
    note = f"{game['pairs']:,} {what} a measurement: a 95 % interval over `greedy` of ±{half:.1f} on average."
    return "\n".join([*parts, costs(game), note + "\n"])


def scores() -> str:
    """Return a table of the standard scores of all players that were measured, the best first in each game."""
    found = json.loads((ROOT / "strength" / "scores.json").read_text(encoding="utf-8"))["scores"]
    body = []
    for score in sorted(found, key=lambda score: (score["game"], -score["score"]["mean"])):
        over = [spread(score[key], form="+.1f") for key in score if key.startswith("over_")]
        move = duration(score["results"]["policies"][-1]["microseconds_per_move"])
        name = f"{GAMES[score['game']].title}: `{score['name']}`"
        body.append([name, spread(score["score"], form=".1f"), spread(score["margin"], form="+.1f"), *over, move])
    return rows(["", "score", "margin", "over `greedy`", "over `small`", "a move"], body)


def tables() -> dict[str, str]:
    """The tables by their names: as below, `GAME-*.json` of strength/, and `baselines-GAME`."""
    found = {"strength": summary(), "speed": speed(FRONT_PAGE), "speed-all": speed(), "head-to-head": head_to_head()}
    found["levels"] = player_levels()
    found |= {"speed-gpu": gpus(), "scores": scores()}
    learned = json.loads((ROOT / "strength" / "baselines.json").read_text(encoding="utf-8"))["games"]
    found |= {f"baselines-{name}": baselines(name, game) for name, game in learned.items()}
    for path in (ROOT / "strength").glob("*.json"):
        figures = json.loads(path.read_text(encoding="utf-8"))
        if "policies" in figures:
            found[path.name] = strength(figures)
    return found


def rewritten(text: str) -> str:
    """A document with its tables as they should be. Raises KeyError for a name that is none."""
    known = tables()
    return MARKED.sub(lambda found: found[1] + known[found[2]] + found[3], text)


if __name__ == "__main__":
    check = sys.argv[1:] == ["--check"]
    for name in DOCUMENTS:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        if rewritten(text) != text:
            if check:
                raise SystemExit(f"{name}: its figures are not those of the JSON files: python docs/figures.py")
            page.write_text(rewritten(text), encoding="utf-8")
            print(f"written: {name}")
