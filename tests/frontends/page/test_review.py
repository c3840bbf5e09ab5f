"""Looking back on the server's page: the curve, the costliest moves, and the better move on the table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from card_envs.game import Game
from tests.conftest import short_options
from tests.frontends.page.test_page import PHONES, address, browser, gestures, page, play_choices, sit_down

__all__ = ["address", "browser", "page"]  # fixtures

pytestmark = pytest.mark.slow
COST = 2.5


def review(page: Any, game: Game) -> dict[int, str]:
    """Play two choices, and have each judged as costly; return the better move by the number of moves before."""
    judged: dict[int, str] = {}
    asked = [0]  # the position that the page fetched last

    def note(request: Any) -> None:
        if "/v1/seats/" in request.url and (at := re.search(r"[?&]at=(\d+)", request.url)):
            asked[0] = int(at[1])

    def judge(route: Any) -> None:
        body = route.request.post_data_json
        best = next(move for move in body["view"]["legal"] if move != body["move"])
        judged[asked[0]] = best
        reply = {"game": game.name, "opponent": "x", "seat": 0, "best": best, "cost": COST, "error": 0.5}
        route.fulfill(json=reply)

    sit_down(page, game, short_options(game))
    play_choices(page, 2)
    page.on("request", note)
    page.route("**/v1/judge*", judge)
    page.click("#step")
    page.click("#judge")
    page.wait_for_selector("#judged:has-text('Judged by')")
    return judged


def assert_at(page: Any, game: Game, at: int) -> None:
    """The table shows the position before a judged move, and what would have been better; the list has it in sight."""
    page.wait_for_selector(f"#status:has-text('After {at} of')")
    assert f" cost {COST} ± 0.5" in page.inner_text("#status")
    entry = page.locator(f"#log li:nth-child({at + 1})")
    assert entry.locator("button").get_attribute("aria-current") == "true"
    log, box = page.locator("#log").bounding_box(), entry.bounding_box()
    assert log["y"] <= box["y"] + 1 and box["y"] + box["height"] <= log["y"] + log["height"] + 1
    assert gestures(page)  # those of the position before


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_costly_moves_are_found(page: Any, game: Game) -> None:
    """In a list and on the curve; each leads to the position before it."""
    judged = review(page, game)
    assert page.locator("#costliest button").count() == page.locator("#curve .dot").count() == len(judged)
    for number, at in enumerate(judged):
        page.click("#first")
        page.locator("#costliest button").nth(number).click()
        assert_at(page, game, at)
        page.click("#first")
        page.wait_for_selector("#status:has-text('After 0 of')")  # longer or shorter text moves what is below
        page.locator("#curve").scroll_into_view_if_needed()
        dot = page.locator("#curve .dot").nth(number).bounding_box()
        page.mouse.click(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
        assert_at(page, game, at)
        page.click("#next")  # to the position after it, or to the next one that was judged
        page.wait_for_selector(f"#status:has-text('After {at + 1} of')")
    page.click("#step")
    page.wait_for_selector("#table[data-state=yours] #moves button:enabled")
    assert not page.locator("#picture .better").count()


@pytest.mark.mechanics
def test_the_better_move_is_on_the_table(page: Any, game: Game) -> None:
    """A frame where its card comes from, and where it goes to, unless several places have that name."""
    (at, best), *_ = review(page, game).items()
    page.locator("#costliest button").first.click()
    assert_at(page, game, at)
    places = "(all) => all.map((one) => one.closest('[data-place]').dataset.place)"
    framed = page.locator("#picture .better").evaluate_all(places)
    meant = {one for one in gestures(page)[best] if page.locator(f"#picture [data-place='{one}']").count() == 1}
    assert sorted(framed) == sorted(meant)


@pytest.mark.mechanics
def test_the_table_keeps_its_size(page: Any, game: Game) -> None:
    """Looking back, it is as wide as while playing, at every size, and nothing empty lies below it."""
    for number, (width, height) in enumerate(PHONES):
        page.set_viewport_size({"width": width, "height": height})
        if number:
            page.click("#step")
        else:
            review(page, game)
            page.click("#step")
        page.wait_for_selector("#table[data-state=yours] #moves button:enabled")
        playing = page.locator("#picture").bounding_box()
        page.click("#step")
        page.wait_for_selector("#curve:visible")
        picture, curve = page.locator("#picture").bounding_box(), page.locator("#curve").bounding_box()
        assert picture["width"] >= playing["width"] and picture["height"] >= playing["height"] - 1, (width, height)
        if height > width:
            assert 0 <= curve["y"] - picture["y"] - picture["height"] <= 12
        assert curve["height"] >= 30, (width, height)
        for button in ("#first", "#next", "#judge", "#step"):
            page.locator(button).click(trial=True)
