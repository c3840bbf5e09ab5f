"""The package for JavaScript: what it makes of States is what Python makes of them."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from card_envs.build._description import record_layout
from card_envs.build._drawings import drawings_module
from card_envs.draw import draw
from card_envs.game import Game, State
from card_envs.games import GAMES
from card_envs.options import as_json
from card_envs.testing.malformed import mutated
from card_envs.views import in_words
from tests.conftest import built_for_js, option_sets, positions, program, some, table_of

JS = Path(__file__).parents[2] / "js"
PORTED = [game for game in GAMES.values() if (JS / "games" / f"{game.name}.js").exists()]
NUM_POSITIONS, NUM_DEALS = 240, 400
OUTCOME = ("reason", "scores")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with what its build adds."""
    folder = tmp_path_factory.mktemp("package") / "js"
    shutil.copytree(JS, folder)
    (folder / "built" / "wasm32").mkdir(parents=True, exist_ok=True)
    (folder / "built" / "wasm32" / "shapes.js").write_text(drawings_module(PORTED))
    return folder


def run_node(*words: Path) -> str:
    """Run a Node program that must succeed, and return its output."""
    done = subprocess.run([program("node"), *words], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def packed(state: State) -> str:
    return base64.b64encode(state.tobytes()).decode()


def ended(game: Game, options: dict[str, Any]) -> list[State]:
    """States in which a deal comes next, the last one after the end of the episode."""
    table = table_of(game, options, 5)
    states = []
    while not table.over:
        table.play(table.bot_move("greedy"))
        if table.needs_deal:
            states.append(table.copy().state)
            if not table.over:
                table.deal()
    return [*states[:2], states[-1]]


def position(game: Game, state: State, seat: int) -> dict[str, Any]:
    view = game.view.view(state, seat)
    pictures = [draw(game, view, tall) for tall in (False, True)]
    return {
        "kind": "position",
        "state": packed(state),
        "seat": seat,
        "legal": view["legal"],
        "view": view,
        "questions": in_words(game)["questions"],
        "question": game.question(view),
        "notes": game.move_notes(view),
        "cards": [game.view.moved_card(view, move) for move in view["legal"]],
        "svg": [
            (hashlib.sha256(picture.encode()).hexdigest(), re.sub("<defs>.*</defs>", "", picture))
            for picture in pictures
        ],
        "outcome": dict(zip(OUTCOME, game.view.outcome(state))),
        "pack": game.view.dealt_pack(state).tolist(),
    }


def numbers() -> list[tuple[float, str]]:
    """Numbers as `%g` writes them, many with a half of the last digit."""
    rng = random.Random(1)
    found = [rng.randrange(1, 1 << 24) / (1 << rng.randrange(24)) for _ in range(3000)]
    found += [rng.uniform(-1, 1) * 10 ** rng.randrange(-9, 16) for _ in range(3000)]
    return [(number, f"{number:g}") for number in found]


def deals(game: Game, states: list[State]) -> Iterator[dict[str, Any]]:
    """Custom deals, right and wrong."""
    rng = random.Random(3)
    for number in range(NUM_DEALS):
        chosen = rng.choices(states, k=rng.choice((1, 1, 2)))
        deal = game.view.deal_text([game.view.dealt_pack(state) for state in chosen])
        if number % 8:
            deal = mutated(deal, rng)
        try:
            expected: Any = [pack.tolist() for pack in game.view.parse_deal(chosen[0], deal)]
        except ValueError as error:
            expected = str(error).partition(": ")[0]
        yield {"kind": "deal", "state": packed(chosen[0]), "deal": deal, "expected": expected}


def cases(game: Game) -> Iterator[dict[str, Any]]:
    yield {"game": game.name, "layout": record_layout(game.rules.STATE)}
    yield {"kind": "numbers", "numbers": numbers()}
    for options in option_sets(game):
        state = game.rules.new_state(game.validated(options))
        yield {
            "kind": "options",
            "options": options,
            "state": packed(state),
            "made": as_json(game.view.options_of(state)),
        }
    states = list(some(positions(game), NUM_POSITIONS))
    for options in option_sets(game)[:8]:
        states += ended(game, options)
    for number, state in enumerate(states):
        yield position(game, state, (int(state.seat) + number // 2 * (number % 2)) % game.rules.NUM_SEATS)
    yield from deals(game, states[:NUM_POSITIONS])


def test_games_are_in_the_same_order() -> None:
    """As the server lists them."""
    assert re.findall(r"^  (\w+): \[\(\) => import", (JS / "index.js").read_text(), re.M) == [
        game.name for game in PORTED
    ]


@pytest.fixture(scope="module")
def whole_package() -> None:
    """The compiled games: takes long the first time."""
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    built_for_js(tuple(PORTED), ("wasm32",))


@pytest.mark.slow
@pytest.mark.usefixtures("whole_package")
def test_what_the_readme_shows(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```js\n(.*?)^```", (JS / "README.md").read_text(), re.M | re.S)
    (tmp_path / "readme.mjs").write_text(code.replace('"card-envs"', f'"{JS}/node/index.js"'))
    said = run_node(tmp_path / "readme.mjs")
    assert "over: true" in said and "hand:" in said


@pytest.mark.slow
@pytest.mark.usefixtures("whole_package")
def test_the_package() -> None:
    run_node(Path("--test"), JS / "test" / "package.test.mjs")


def test_the_page_without_a_server(package: Path) -> None:
    (package / "index.js").write_text((package / "test" / "core.js").read_text())
    run_node(package / "test" / "ask.mjs")


def test_questions_to_players_end_alone() -> None:
    run_node(JS / "test" / "thinker.mjs")


@pytest.mark.parametrize("game", PORTED, ids=lambda game: game.name)
def test_the_same_as_in_python(game: Game, package: Path, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    with file.open("w") as out:
        out.writelines(json.dumps(case) + "\n" for case in cases(game))
    counts = json.loads(run_node(package / "test" / "same.mjs", file))
    assert counts["position"] >= NUM_POSITIONS and counts["deal"] == NUM_DEALS
