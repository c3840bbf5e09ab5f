"""Writes the tables of measured figures into the documents: `python docs/figures.py`.

Where they come from: `strength/GAME-*.json`, which `compare --json` writes, and `docs/speed.json`, which `bench --json`
writes. A table stands between `<!-- figures: NAME -->` and `<!-- /figures -->`; what the names are, `tables` says.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

from card_envs import GAMES, Game
from card_envs.compare._report import duration

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "strength/README.md", "docs/speed.md")
MARKED = re.compile(r"(<!-- figures: (\S+) -->\n).*?(<!-- /figures -->\n)", re.S)
FRONT_PLAYERS = ("champion", "strong", "search:64", "small", "greedy")
# A stronger player, a weaker one, and the comparisons in which they may have met, the largest first.
HEAD_TO_HEAD = (
    ("champion", "strong", ("top",)),
    ("strong", "search:64", ("steps", "ladder", "front")),
    ("strong", "small", ("steps", "ladder", "front")),
    ("search:64", "small", ("steps", "ladder", "front")),
    ("small", "greedy", ("ladder", "front")),
)
FRONT_PAGE = ("random playouts, M/s", "BatchEnv.step, 1,024 tables, M/s", "AEC last + step, k/s")  # rows of `bench`

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
        endless if figure[key] is None else f"{scale * figure[key]:{form}}"
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


def is_strong(game: Game, name: str) -> bool:
    """Whether a preset stands for the same player as `strong`."""
    return game.presets[name] == game.presets["strong"]


def result(found: Figures, policy: Figures) -> str:
    """Its points over `greedy`, or the share of deals it won."""
    if "rating" in policy:
        return spread(over(found, policy["name"], "greedy"), form="+.1f") if policy["name"] != "greedy" else "0"
    return spread(policy["win_share"], 100, ".1f", " %")


def summary() -> str:
    """Return a table of all games: points over `greedy`, or deals won in a solitaire.

    Raises ValueError where the players of a game did not play the same deals.
    """
    games = measured_games()
    head, counts, cells = [""], [], []
    for game in games:
        found = comparison(game, "front")
        results = {one["name"]: result(found, one) for one in found["policies"]}
        results["champion"] = results["strong"]
        if not is_strong(game, "champion"):
            best = comparison(game, "champion")
            if any(found[key] != best[key] for key in ("options", "seed", "pairs")):
                raise ValueError(f"{game.name}: `front` and `champion` are not of the same deals")
            results |= {one["name"]: result(best, one) for one in best["policies"]}
        cells.append(results)
        head.append(f"{game.title}: " + ("deals won" if game.is_solitaire else "points per deal"))
        options = "".join(f" with `{name}={value}`" for name, value in found["options"].items())
        counts.append(
            f"{game.title}{options}: {found['pairs']:,} {'deals' if game.is_solitaire else 'mirrored pairs'}."
        )
    body = [[f"`{name}`", *(column[name] for column in cells)] for name in FRONT_PLAYERS]
    return rows(head, body) + "\n" + fill(" ".join(counts), 120) + "\n"


def speed(labels: tuple[str, ...] = ()) -> str:
    """What `bench` measured by CPU time: these rows, or all of them with what the clock said beside it."""
    found = json.loads((ROOT / "docs" / "speed.json").read_text(encoding="utf-8"))["games"]
    games = [game for game in GAMES.values() if game.name in found]
    form = "{cpu:.3g}" if labels else "{cpu:.3g} / {clock:.3g}"
    body = [
        [label, *(form.format(**found[game.name][label]) for game in games)]
        for label in labels or tuple(found[games[0].name])
    ]
    return rows(["", *(game.title for game in games)], body)


def tables() -> dict[str, str]:
    """The tables by their names: `strength`, `head-to-head`, `speed`, `speed-all`, and `GAME-*.json` of strength/."""
    found = {"strength": summary(), "speed": speed(FRONT_PAGE), "speed-all": speed(), "head-to-head": head_to_head()}
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
