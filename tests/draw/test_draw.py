"""Pictures: what they show, what they never show, and what is made of them."""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
from PIL import Image, ImageSequence

from card_envs.cards import ACE_HIGH, card_name, deck
from card_envs.draw import draw
from card_envs.draw._faces import back, face
from card_envs.draw._lettering import STROKES, stroke
from card_envs.draw._plain import draw_view
from card_envs.draw.raster import pixels, save_gif
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.game import Game
from card_envs.testing.malformed import mutated
from tests.conftest import new_env, play_randomly, positions, redealt, run, seats_of, short_options, some

NAMES = {"svg": "http://www.w3.org/2000/svg"}
CARDS = (*deck(ACE_HIGH), "LB", "BB")


def drawn(game: Game, state: Any, seat: int, tall: bool = False) -> str:
    return draw(game, game.view.view(state, seat), tall)


def cards_in(view: Any) -> list[str]:
    """Every card that stands anywhere in a view but among its legal moves and options."""
    if isinstance(view, dict):
        return [card for key, value in view.items() if key not in ("legal", "options") for card in cards_in(value)]
    if isinstance(view, list):
        return [card for value in view for card in cards_in(value)]
    return [view] if view in CARDS else []


@pytest.mark.parametrize("tall", [False, True])
def test_pictures_show_nothing_that_a_seat_may_not_see(game: Game, tall: bool) -> None:
    """The same bytes when everything that the seat can't know is drawn again."""
    states = some(positions(game), 30)
    for shift in range(game.rules.NUM_SEATS):
        seats = seats_of(game, states, shift)
        for state, world, seat in zip(states, redealt(game, states, seats, 3), seats.tolist(), strict=True):
            assert drawn(game, state, seat, tall) == drawn(game, world, seat, tall)


@pytest.mark.parametrize("tall", [False, True])
def test_pictures_are_whole(game: Game, tall: bool) -> None:
    """Well-formed; only cards of the view; places for all legal moves; and nothing outside of the table."""
    for state in some(positions(game), 30):
        view = game.view.view(state, int(state["seat"]))
        root = ElementTree.fromstring(draw(game, view, tall))
        shown = {use.get("data-card") for use in root.iterfind(".//svg:use[@data-card]", NAMES)}
        assert shown <= set(cards_in(view))
        places = {group.get("data-place") for group in root.iterfind(".//svg:g[@data-place]", NAMES)}
        moves = json.loads(root.get("data-moves", ""))
        assert list(moves) == view["legal"]
        if game.drawing is not None:
            sources = {source for source, _ in moves.values() if source}
            assert sources <= places
        assert not root.findall(".//svg:text", NAMES) and not root.findall(".//svg:image", NAMES)
        width, height = int(root.get("width", 0)), int(root.get("height", 0))
        for use in root.iterfind(".//svg:use[@data-card]", NAMES):
            found = re.match(r"translate\((\S+) (\S+)\)( scale\((\S+)\))?", use.get("transform", ""))
            assert found
            x, y, size = float(found[1]), float(found[2]), float(found[4] or 1)
            assert 0 <= x <= width - 100 * size and 0 <= y <= height - 140 * size, use.attrib


@pytest.mark.parametrize("is_plain", [False, True])
def test_ids_are_those_of_one_drawing(game: Game, is_plain: bool) -> None:
    """Each occurs once, no other drawing has it, and what a drawing refers to is in it."""
    owners: dict[str, str] = {}
    for state in some(positions(game), 30):
        view = game.view.view(state, int(state["seat"]))
        for tall in (False, True):
            svg = draw_view(game.title, view, tall) if is_plain else draw(game, view, tall)
            ids = [element.get("id", "") for element in ElementTree.fromstring(svg).iter() if "id" in element.attrib]
            assert len(ids) == len(set(ids)) > 1
            assert {*re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)} <= {(name, "") for name in ids} | {
                ("", name) for name in ids
            }
            assert all(owners.setdefault(name, svg) == svg for name in ids)


def test_every_card_has_a_face_of_its_own() -> None:
    faces = {face(card) for card in CARDS}
    assert len(faces) == 54 and len({card_name(card) for card in CARDS}) == 54
    assert back(0) != back(1)


def test_views_without_a_drawing_are_drawn_whole(game: Game) -> None:
    """All their cards, drawn as often as they occur or named in a text, in letters that there are."""
    for state in some(positions(game), 30):
        view = game.view.view(state, int(state["seat"]))
        for tall in (False, True):
            drawn = draw_view(game.title, view, tall)
            shown = re.findall(r' data-card="(..)"', drawn)
            root = ElementTree.fromstring(drawn)
            assert list(json.loads(root.get("data-moves", ""))) == view["legal"]
            told = {group.get("aria-label", "") for group in root.iterfind(".//svg:g[@data-place]", NAMES)}
            assert Counter(shown) <= Counter(cards_in(view))
            assert set(shown) <= set(cards_in(view)) <= {*shown, *re.findall(r"\w+", " ".join(told))}
            assert set("".join(told)) <= {*STROKES, " "}


def test_letters_do_not_touch() -> None:
    """Glyphs stay within their widths, up to the pen, wherever they are in a text."""
    for letter, (width, _) in STROKES.items():
        twice, path = stroke(letter + letter)
        assert twice == 2 * width + 26
        single = pixels(_letters(stroke(letter)[1], width), 100)
        double = pixels(_letters(path, twice), 100)
        assert single.any() and double.any()
    assert stroke("I I")[0] == 0 + 26 + 48 + 0
    assert stroke("\N{SNOWMAN}") == stroke("?")


def _letters(path: str, width: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-20 -20 {width + 40} 170"><path d="{path}" fill="none" '
        'stroke="#fff" stroke-width="9"/></svg>'
    )


@pytest.mark.mechanics
def test_rgb_array(game: Game) -> None:
    """One shape throughout, another picture after a move, and a table that is green, not blank."""
    env = new_env(game, render_mode="rgb_array", **short_options(game))
    first = env.render()
    assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3 and first.std() > 10
    assert first.shape[0] % 2 == first.shape[1] % 2 == 0
    assert np.array_equal(first, env.render())
    play_randomly(env, 2, moves=3)
    later = env.render()
    assert later.shape == first.shape and not np.array_equal(later, first)
    play_randomly(env, 2)
    assert env.render().shape == first.shape


@pytest.mark.mechanics
def test_notebooks_show_pictures(game: Game) -> None:
    env = new_env(game, **short_options(game))
    assert env._repr_svg_() == draw(game, env.view(env.agent_selection))
    single = SingleSeatEnv(game.name, opponents="random", **short_options(game))
    assert single._repr_svg_() is None
    single.reset(seed=1)
    assert (single._repr_svg_() or "").startswith("<svg")


@pytest.mark.mechanics
def test_record_video(game: Game, tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="RecordVideo needs moviepy")
    made = gymnasium.make(
        game.gymnasium_id, opponents="random", render_mode="rgb_array", disable_env_checker=True, **short_options(game)
    )
    env = gymnasium.wrappers.RecordVideo(made, str(tmp_path / "video"), video_length=4, disable_logger=True)
    _, info = env.reset(seed=1)
    for _ in range(5):
        _, _, over, _, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        if over:
            break
    env.close()  # type: ignore[no-untyped-call]
    videos = list((tmp_path / "video").glob("*.mp4"))
    assert len(videos) == 1 and videos[0].stat().st_size > 1000


@pytest.mark.mechanics
def test_gif_of_a_record(game: Game, tmp_path: Path) -> None:
    """One picture for each position: each is shown for its time."""
    record = play_randomly(new_env(game, **short_options(game)), 1, moves=5).record()
    record.save(tmp_path / "game.json")
    status, output = run("watch", "--replay", tmp_path / "game.json", "--delay", "0.5", "--gif", tmp_path / "game.gif")
    assert status == 0 and f"{len(record.moves) + 1} pictures" in output, output
    with Image.open(tmp_path / "game.gif") as image:
        shown = sum(frame.info["duration"] for frame in ImageSequence.Iterator(image))
    assert shown == 500 * len(record.moves) + 1500


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="seconds"):
        save_gif(tmp_path / "a.gif", ["<svg/>"], seconds=0)
    with pytest.raises(ValueError, match="width"):
        pixels("<svg/>", 0)
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ValueError, match=r"card_envs\[draw\]"):
        pixels("<svg/>")


def test_drawings_of_wrong_views(game: Game) -> None:
    """Wherever something in a view is wrong or left out, the message begins with the view."""
    rng = random.Random(0)
    env = play_randomly(new_env(game), 1, 20)
    for _ in range(400):
        try:
            assert draw(game, mutated(env.view(env.agent_selection), rng)).startswith("<svg")
        except ValueError as error:
            assert str(error).startswith("view") and len(str(error)) < 2000  # noqa: PT017 (some are right)
