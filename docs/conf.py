"""The documentation site: `make docs`. Its source is the checkout, because the documents are also read in place.

A game's page is its RULES.md; the build adds an image, key facts and measured strength.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
os.environ["PYTHONPATH"] = sys.path[1]  # of the notebook

import figures
import motion

from card_envs import GAMES, Game
from card_envs.draw import draw
from card_envs.envs.aec import CardEnv
from card_envs.opponents import load_opponent, opponent_names
from card_envs.options import describe_options

ROOT = Path(__file__).parents[1]
SHOWN_AFTER = 60  # most moves of the deal before a game's image is taken

project = "card_envs"
author = copyright = "The card_envs authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = [
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "strength/README.md", "benchmarks/README.md",
    "training/NOTES.md", "js/README.md", "card_envs/games/*/RULES.md", "docs/**.md", "docs/notebook.ipynb",
]  # fmt: skip
exclude_patterns = [".*", "build", "dist", "runs", "card_envs/scaffold"]

html_theme = "furo"
html_title = "card_envs"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_favicon = "../card_envs/frontends/serve/page/icon.svg"
html_copy_source = html_show_sourcelink = False

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # a cell, also on a busy machine
nb_merge_streams = True

napoleon_use_ivar = True  # else attributes that are properties as well would be described twice
default_role = "code"  # docstrings have `names` in single backticks
autodoc_member_order = "bysource"
autoclass_content = "both"  # the arguments stand in `__init__`
autodoc_inherit_docstrings = False
autodoc_typehints = "none"  # signatures and docstrings say it
autodoc_default_options = {"members": True, "undoc-members": False}

SECTIONS = {
    "Games": [str(game.rules_page.relative_to(ROOT)) for game in GAMES.values() if ROOT in game.rules_page.parents],
    "Guides": [
        "docs/guides/first-steps.md", "docs/guides/install.md", "docs/guides/your-trainer.md",
        "docs/guides/measure.md", "docs/guides/train.md", "docs/guides/opponents.md", "docs/guides/compare.md",
        "docs/guides/data.md", "docs/guides/frontends.md", "docs/guides/words.md", "docs/guides/onnx.md",
        "docs/notebook.ipynb", "CONTRIBUTING.md",
    ],
    "Reference": [
        "docs/api.md", "docs/works-with.md", "docs/names.md", "docs/protocol.md", "docs/embed.md", "docs/glossary.md",
        "strength/README.md", "docs/baselines.md", "docs/speed.md", "benchmarks/README.md", "docs/gpu.md",
        "docs/serving.md",
    ],
    "Background": [
        "docs/inside.md", "docs/native.md", "js/README.md", "training/NOTES.md", "SECURITY.md", "docs/release.md",
        "CHANGELOG.md",
    ],
}  # fmt: skip

# Titles in the table of contents that differ from the page's own.
TITLES = {
    "CONTRIBUTING.md": "Add a game, contribute",
    "js/README.md": "The package for JavaScript",
    "training/NOTES.md": "Training: what was tried",
}


def contents() -> str:
    """Return the table of contents, hidden on the front page."""

    def place(name: str) -> str:
        return f"/{Path(name).with_suffix('')}"

    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n"
        + "".join(f"{TITLES[name]} <{place(name)}>\n" if name in TITLES else f"{place(name)}\n" for name in names)
        + "```\n"
        for caption, names in SECTIONS.items()
    )


def picture(game: Game) -> str:
    """Return a moving picture, or, where `docs/motion.py` made none, a position in the middle of a deal."""
    moving = motion.FOLDER / f"{game.name}.gif"
    if moving.exists():
        return f"![A deal of {game.title}](/{moving.relative_to(ROOT)})"
    env, greedy = CardEnv(game), load_opponent("greedy", game)
    env.reset(seed=2)
    seen = []
    while env.agents and env.deals == 1 and len(seen) < SHOWN_AFTER:
        seen.append(env.view(env.agent_selection))
        env.step(env.parse_move(greedy.advise(seen[-1])[0][0]))
    return f"```{{raw}} html\n<figure class=table>{draw(game, seen[len(seen) // 2])}</figure>\n```"


def facts(game: Game) -> str:
    """Return the facts that pages of PettingZoo and Gymnasium environments begin with."""
    rules, view = game.rules, game.view
    agents = ", ".join(f"`player_{seat}`" for seat in range(rules.NUM_SEATS))
    seen = f"; each sees {', '.join(view.SEAT_NAMES)}" if rules.NUM_SEATS > 1 else ""
    space = f"`Box` int8, shape `({rules.OBS_SIZE},)`, beside the mask `({rules.NUM_ACTIONS},)`"
    module = f"{game.name}_v{game.version}"
    teams = [[str(seat) for seat, own in enumerate(game.sides) if own == side] for side in range(game.num_sides)]
    options = describe_options(game.options)
    rows = [
        ["import", f"`from card_envs import {module}`"],
        ["PettingZoo (AEC)", f'`{module}.env()`, or `pettingzoo.make("aec", "{game.id}")`'],
        ["Gymnasium", f'`gymnasium.make("{game.gymnasium_id}", opponents="greedy")`; `make_vec` for many tables'],
        ["many tables", f'`card_envs.BatchEnv(card_envs.get_game("{game.name}"), 1024)`'],
        ["opponents", ", ".join(f"`{name}`" for name in opponent_names(game))],
        ["version of the rules", str(game.version)],
        ["agents", f"{rules.NUM_SEATS}, clockwise: {agents}{seen}"],
        ["sides", " against ".join(" and ".join(team) for team in teams) if game.num_sides > 1 else "one"],
        ["actions", f"`Discrete({rules.NUM_ACTIONS})`; [layout](#actions)"],
        ["observation", f"{space}; [layout](#observation)"],
        ["full state, for critics", f"`Box` int8, shape `({rules.FULL_SIZE},)`"],
        *([f"option `{name}={field.default!r}`", field.description] for name, field in options.items()),
    ]
    return figures.rows(rows[0], rows[1:])


def strengths(game: Game) -> str:
    """Return the section with the measured strength of a game's opponents."""
    found = figures.comparison(game, "ladder" if figures.figures_of(game, "ladder").exists() else "front")
    what = "deals" if game.is_solitaire else "mirrored pairs"
    options = "".join(f", `{name}={value}`" for name, value in found["options"].items())
    return (
        f"## Strength\n\n{found['pairs']:,} {what}{options}; 95 % intervals. "
        f"[More tables](/strength/README.md), with the commands.\n\n{figures.strength(found)}\n"
    )


def complete(app: Sphinx, name: str, source: list[str]) -> None:
    """Add the parts of a page that only the site has."""
    if name == root_doc:
        source[0] += contents()
    for game in GAMES.values():
        if ROOT / f"{name}.md" == game.rules_page:
            title, intro, rest = source[0].split("\n\n", 2)
            source[0] = "\n\n".join([title, intro, picture(game), facts(game), strengths(game), rest])


def lead_home(app: Sphinx, error: Exception | None) -> None:
    """Redirect index.html to the front page."""
    if error is None and app.builder.name == "html":
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={root_doc}.html"><title>card_envs</title>\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("source-read", complete)
    app.connect("build-finished", lead_home)
