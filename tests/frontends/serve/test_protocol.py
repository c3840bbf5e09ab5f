"""The position protocol: what may be left out of a view, what errors name, the document, and the example positions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from card_envs.engine.table import Table
from card_envs.frontends.serve._described import key_table
from card_envs.frontends.serve._messages import OneGame
from card_envs.frontends.serve._operations import CALLS, OPERATIONS, Operation
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.options import describe_options
from tests.conftest import bots_moves, positions, some

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "positions"
FOLLOWS = "follows from the rest"


def part_of(key: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of the objects that a key holds or lists; empty where it holds none."""
    for choice in key.get("anyOf", [key]):
        name = (choice.get("$ref") or choice.get("items", {}).get("$ref", "")).rpartition("/")[2]
        if name:
            found: dict[str, Any] = schema["$defs"][name]
            return found
    return {}


def without_derived(view: Any, part: dict[str, Any], schema: dict[str, Any]) -> Any:
    """A view without what follows from the rest, at any depth."""
    if isinstance(view, list):
        return [without_derived(one, part, schema) for one in view]
    if not isinstance(view, dict) or "properties" not in part:
        return view
    keys = part["properties"]
    return {
        name: without_derived(value, part_of(keys[name], schema), schema)
        for name, value in view.items()
        if FOLLOWS not in keys[name].get("description", "")
    }


def test_what_follows_from_the_rest_may_be_left_out(game: Game) -> None:
    """Then the position is the same, to the last thing that the seat sees and observes."""
    view, schema = game.view, game.view.SCHEMA
    left_out = 0
    for state in some(positions(game), 80, seed=201):
        seat = int(state.seat)
        seen = view.view(state, seat)
        brief = without_derived(seen, schema, schema)
        left_out += len(seen) - len(brief)
        jsonschema.validate(brief, schema)
        again = view.from_view(brief)
        assert view.view(again, seat) == seen
        assert np.array_equal(Table(game, state).observe(seat), Table(game, again).observe(seat))
        nulls = {key: brief.get(key) for key in seen}
        assert view.view(view.from_view({**nulls, "version": 1, "game": game.name}), seat) == seen
    assert left_out >= 80


def test_views_have_a_version(game: Game) -> None:
    state = positions(game)[0]
    seen = game.view.view(state, int(state.seat))
    assert seen["version"] == 1
    with pytest.raises(ValueError, match="view: version: "):
        game.view.from_view({**seen, "version": 2})
    assert game.view.from_view({key: value for key, value in seen.items() if key != "version"}) is not None


def test_options_are_typed(game: Game) -> None:
    options = part_of(game.view.SCHEMA["properties"]["options"], game.view.SCHEMA)
    assert options["properties"].keys() == describe_options(game.options).keys()
    state = positions(game)[0]
    seen = game.view.view(state, int(state.seat))
    with pytest.raises(ValueError, match=r"view: options\.reward: "):
        game.view.from_view({**seen, "options": {"reward": "gold"}})


def test_the_view_of_another_seat_is_told_whose_turn_it_is(game: Game) -> None:
    if game.rules.NUM_SEATS == 1:
        pytest.skip("there is no other seat")
    opponent = load_opponent("trivial", game)
    for state in some(positions(game), 20, seed=202):
        seat = int(state.seat)
        other = (seat + 1) % game.rules.NUM_SEATS
        with pytest.raises(
            ValueError, match=f"view: seat: this is what seat {other} sees, but it is the turn of seat {seat}$"
        ):
            opponent.rank_moves(game.view.view(state, other))


def test_errors_name_the_key(game: Game) -> None:
    """Whatever single key is replaced by something else: the message begins with a key of the view."""
    state = some(positions(game), 1, seed=203)[0]
    seen = game.view.view(state, int(state.seat))
    for name in seen:
        for wrong in ("?", -7, ["?"], {"?": 1}):
            with pytest.raises(ValueError, match=r"^view: \w+") as raised:
                game.view.from_view({**seen, name: wrong})
            assert re.match(r"view: (\w+)", str(raised.value))[1] in seen  # type: ignore[index]


def test_the_document_has_the_keys_of_every_game(game: Game) -> None:
    """Made by `python -m card_envs schema GAME --table`."""
    page = (ROOT / "docs" / "protocol.md").read_text()
    if f"<!-- keys: {game.name} -->" not in page:
        pytest.skip(f"once its view is settled, `card_envs schema {game.name} --table` prints its table for this page")
    assert key_table(game) in page


def with_table(page: str, name: str, table: str) -> str:
    before, mark, rest = page.partition(f"<!-- {name} -->")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    assert mark and end
    return f"{before}{mark}\n\n{table}\n{end}{after}"


def request_of(operation: Operation) -> str:
    return f"`{operation.method} {operation.path}`"


def keys_of(operation: Operation) -> str:
    if operation.method == "POST" and not operation.names_in_path():
        return "same"
    return ", ".join(f"`{name}`" for name in operation.request.model_fields)


def with_operations(page: str) -> str:
    requests = [f"| {request_of(operation)} | {operation.sentence} |\n" for operation in OPERATIONS]
    calls = [f"| `{call.name}` | {keys_of(call)} | {request_of(call)} |\n" for call in CALLS.values()]
    page = with_table(page, "requests", "".join(["| request | effect |\n| --- | --- |\n", *requests]))
    return with_table(page, "calls", "".join(["| call | body | like |\n| --- | --- | --- |\n", *calls]))


def test_the_document_has_all_operations() -> None:
    """Made by `python -m tests.frontends.serve.test_protocol`."""
    page = (ROOT / "docs" / "protocol.md").read_text()
    assert page == with_operations(page)


def test_the_document_and_the_types_have_the_keys_of_descriptions() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text().partition("### `GET /v1/games`")[2].partition("### `POST")[0]
    assert all(f'"{key}"' in page for key in OneGame.model_fields)
    types = (ROOT / "js" / "index.d.ts").read_text().partition("interface Description")[2].partition("\n}")[0]
    assert all(f"  {key}: " in types for key in OneGame.model_fields if key != "picture")  # on request


def test_the_hand_written_positions_are_understood(game: Game) -> None:
    """With nothing in them but what a person at the table would know."""
    if not (EXAMPLES / f"{game.name}.json").exists():
        pytest.skip(
            f"write {game.name}.json by hand; `python -m tests.frontends.serve.test_protocol` writes the whole view"
        )
    given = json.loads((EXAMPLES / f"{game.name}.json").read_text())
    jsonschema.validate(given, game.view.SCHEMA)
    whole = json.loads((EXAMPLES / f"{game.name}-whole.json").read_text())
    assert game.view.view(game.view.from_view(given), given["seat"]) == whole
    assert len(given) < len(whole) / 2
    states = np.array([game.view.from_view(view) for view in (given, whole)], game.rules.STATE)
    one, other = bots_moves(game, states).T.tolist()
    assert one == other


if __name__ == "__main__":
    document = ROOT / "docs" / "protocol.md"
    document.write_text(with_operations(document.read_text()))
    for file in EXAMPLES.glob("*.json"):
        if not file.stem.endswith("-whole"):
            view = json.loads(file.read_text())
            module = GAMES[view.get("game", file.stem)].view
            whole = module.view(module.from_view(view), view["seat"])
            file.with_stem(f"{file.stem}-whole").write_text(json.dumps(whole, indent=1) + "\n")
