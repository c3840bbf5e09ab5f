"""Playing on the server's page: keys, cards that can't move, what is said of moves and ends, and what is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from card_envs.game import Game
from tests.conftest import short_options
from tests.frontends.page.test_page import (
    COMPILING,
    READY,
    address,
    assert_accessible,
    axe,
    browser,
    leave,
    page,
    play_last,
    point,
    sit_down,
)

pytestmark = pytest.mark.slow
__all__ = ["address", "axe", "browser", "page"]  # fixtures


@pytest.mark.mechanics
def test_keys_do_what_buttons_do(page: Any, game: Game) -> None:
    """They are told at the first table, and at no other one."""
    sit_down(page, game, short_options(game))
    assert "H for a hint, U to undo" in page.inner_text("#status")
    play_last(page)
    turn = int(page.get_attribute("#at", "max"))
    page.keyboard.press("h")
    page.wait_for_selector("#moves button.best", timeout=COMPILING)
    page.click("#step")
    page.focus("#table")
    for key, at in (("Home", 0), ("ArrowRight", 1), ("ArrowLeft", 0)):
        page.keyboard.press(key)
        page.wait_for_selector(f"#status:has-text('After {at} of')")
    page.keyboard.press("End")
    page.wait_for_selector(f"#status:has-text('After {turn} of')")
    page.click("#step")
    page.wait_for_selector(READY)
    page.focus("#table")
    page.keyboard.press("u")
    page.wait_for_selector("#undo[aria-disabled=true]")
    page.wait_for_selector("#status:has-text('Taken back.')")
    leave(page)
    sit_down(page, game, short_options(game))
    assert "Keys:" not in page.inner_text("#status")


@pytest.mark.mechanics
def test_a_card_that_cannot_move_says_so(page: Any, game: Game) -> None:
    sit_down(page, game, short_options(game))
    play_last(page)
    before = page.get_attribute("#at", "max")
    place = page.locator("#picture [data-place]:not(.can)").last.get_attribute("data-place")
    page.mouse.click(*point(page, place))
    page.wait_for_selector("#status:has-text('nothing to move there now')")
    assert page.get_attribute("#at", "max") == before and page.locator("#picture .can").count()


def test_what_was_played_is_said(page: Any, game: Game) -> None:
    """At one's turn: the replies, the newest first, one's last move, and what lay there before it."""
    sit_down(page, game, short_options(game))
    play_last(page, 2)
    names = [text.split()[0].strip(":") for text in page.locator("#log li button").all_inner_texts()]
    own = len(names) - 1 - names[::-1].index("you")
    said = [one for one in page.inner_text("#status").split(".") if one.strip()]
    before = own > 0 and names[own - 1] != "you"
    assert min(len(names) - own + before, 8) <= len(said) <= 8
    assert len(names) - own > 7 or any(one.strip().startswith("You") for one in said)
    assert said[0].strip().lower().startswith(names[-1].lower())


@pytest.mark.mechanics
def test_an_end_has_its_reason_and_is_counted(page: Any, game: Game, address: str) -> None:
    """In the words of the game; the start says how many were won and lost, also after a reload."""
    reason = "no move left, {score} of 92 cards placed"

    def listed(route: Any) -> None:
        found = route.fetch().json()
        for one in found["games"]:
            one["ends"] = {"lost": reason}
        route.fulfill(json=found)

    def ended(route: Any) -> None:
        found = route.fetch().json()
        scores = [57, *[90] * (game.rules.NUM_SEATS - 1)]
        outcome = {"over": True, "reason": "lost", "scores": scores}
        route.fulfill(json={**found, "your_turn": False, "outcome": outcome})

    page.route("**/v1/games?*", listed)
    page.goto(address)
    page.reload()
    label = page.locator(f"#games label:has([value={game.name}])")
    assert "You won" not in label.inner_text()
    sit_down(page, game, short_options(game))
    page.route("**/moves?*", ended)
    page.locator("#moves button").last.click()
    page.wait_for_selector("#table[data-state=over]")
    assert page.inner_text("#question").startswith("You lost")
    assert page.inner_text("#question").endswith(": no move left, 57 of 92 cards placed.")
    leave(page)
    assert "You won 0 and lost 1." in label.inner_text()
    page.reload()
    assert "You won 0 and lost 1." in label.inner_text()
    kept = page.evaluate("() => Object.entries(localStorage)")
    assert [json.loads(text) for name, text in kept if "tally" in name] == [{"won": 0, "lost": 1, "drawn": 0}]


BUSY = """(times) => {
    const whole = window.fetch;
    const error = { code: "busy", message: "compiling Whist, 2 of 3; ask again later", field: null };
    window.fetch = async (path, how) => {
        if (!path.includes("v1/tables") || times-- <= 0) return whole(path, how);
        return new Response(JSON.stringify({ error }), { status: 503 });
    };
    const wait = window.setTimeout;
    window.setTimeout = (work, pause) => wait(work, pause / 10);
}"""


@pytest.mark.mechanics
def test_a_server_that_compiles_is_waited_for(page: Any, game: Game) -> None:
    """The page says for what, and the game begins by itself, the one that was chosen last."""
    page.evaluate(BUSY, 9)
    page.check(f"input[value={game.name}]")
    for _ in range(2):
        page.click("form button[type=submit]")
        page.wait_for_selector("#busy:has-text('compiling Whist, 2 of 3. A game takes up to a minute')")
    page.wait_for_selector(READY)
    assert not page.is_visible("#busy") and not page.is_visible("#problem")
    assert len(page.url.partition("#")[2]) == 48


@pytest.mark.mechanics
def test_friends_play_and_watch(page: Any, game: Game, address: str, browser: Any) -> None:
    """By links that say what each may see: a seat's shows its cards, the other one no cards before the end."""
    page.check(f"input[value={game.name}]")
    if game.rules.NUM_SEATS == 1:
        assert not page.is_visible("#friend")
        return
    page.check("#friend")
    page.click("form button[type=submit]")
    page.wait_for_selector("#links:visible")
    seat, watch = (one.input_value() for one in page.locator("#linked input").all())
    said = page.inner_text("#linked")
    assert "sees its cards" in said and "no hands" in said and seat.startswith(f"{address}/#")
    page.click("#links button >> nth=0")
    contexts = [browser.new_context() for _ in range(2)]
    friend, watcher = (context.new_page() for context in contexts)
    try:
        friend.goto(seat)
        watcher.goto(watch)
        watcher.wait_for_selector("#table[data-state=watched] #picture table")
        assert watcher.locator("#picture tr").count() == game.rules.NUM_SEATS
        assert not watcher.is_visible("#moves") and not watcher.locator("#picture svg").count()
        for number in range(1000):
            mover = next(
                (one for one in (page, friend) if one.get_attribute("#table", "data-state") in ("yours", "over")), None
            )
            if mover is None:
                page.wait_for_timeout(50)
                continue
            if mover.get_attribute("#table", "data-state") == "over":
                break
            listed = watcher.locator("#log li").count()
            mover.locator("#moves button:enabled").last.click()
            mover.wait_for_selector("#table:not([data-state=yours]), #moves button:enabled")
            if number < 2:
                watcher.wait_for_function(f"() => document.querySelectorAll('#log li').length > {listed}")
                assert "seat" in watcher.inner_text("#status").lower()
            if number > 6:
                break
        if game.rules.NUM_ACTIONS < 20:  # short: it is over
            watcher.wait_for_selector("#picture svg")
            assert watcher.is_visible("#stepper") and watcher.is_visible("#seat")
    finally:
        for context in contexts:
            context.close()


def test_links_and_reviews_are_accessible(page: Any, game: Game, axe: str) -> None:
    """What friends get, what watchers see, and a review."""
    sit_down(page, game, short_options(game))
    page.click("#invite")
    page.wait_for_selector("#links:visible")
    assert_accessible(page, axe)
    watch = page.locator("#linked input").input_value()
    page.keyboard.press("Escape")
    play_last(page)
    page.click("#step")
    page.click("#judge")
    page.wait_for_selector("#judged:has-text('Judged by'), #judged:has-text('no choice')", timeout=COMPILING)
    assert_accessible(page, axe)
    page.click("#step")
    leave(page)
    page.goto(watch)
    page.wait_for_selector("#table[data-state=watched]")
    assert_accessible(page, axe)
