"""Playing on the server's page: keys, cards that can't move, what is said of moves and ends, and what is counted."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from card_envs.cards import card_name
from card_envs.game import Game
from tests.conftest import short_options
from tests.frontends.page.test_page import (
    COMPILING,
    READY,
    address,
    assert_accessible,
    axe,
    browser,
    gestures,
    leave,
    more,
    page,
    play_last,
    point,
    seen_at,
    shot,
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
    said, friends_seat = page.inner_text("#linked"), seen_at(seat, address)["seat"]
    assert "sees its cards" in said and "no hands" in said and seat.startswith(f"{address}/#")
    page.click("#links button >> nth=0")
    contexts = [browser.new_context() for _ in range(2)]
    friend, watcher = (context.new_page() for context in contexts)
    try:
        friend.goto(seat)
        watcher.goto(watch)
        watcher.wait_for_selector("#table[data-state=watched] #picture svg")
        seats = [f"seat {seat + 1} is" for seat in range(game.rules.NUM_SEATS)]
        assert all(seat in watcher.inner_text("#question") for seat in seats)
        assert not watcher.locator("#moves button, .tools button:visible").count()
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
            with mover.expect_request("**/moves?*") as sent:
                mover.locator("#moves button:enabled").last.click()
            assert sent.value.post_data_json["wait"] == 0  # seen at once, not when somebody else has moved
            for one in (page, friend, watcher):
                one.wait_for_function(f"() => document.querySelectorAll('#log li').length > {listed}")
            mover.wait_for_selector("#table:not([data-state=yours]), #moves button:enabled")
            if number < 2:
                shot(watcher, "watched", game.name, str(number))
                assert "seat" in watcher.inner_text("#status").lower()
            if number > 6:
                break
        if game.rules.NUM_ACTIONS < 20:  # short: it is over
            watcher.wait_for_selector("#stepper:visible")
            assert watcher.is_visible("#seat") and not watcher.is_visible("#hint") and not watcher.is_visible("#again")
            assert re.match(r"Seat \d( and seat \d)? won|Drawn", watcher.inner_text("#status"))
            assert page.inner_text("#again") == "Rematch, seats changed"
            page.click("#again")
            page.wait_for_selector("#links:visible")
            (seat,) = page.locator("#linked input").all()[:-1]
            assert seen_at(page.url, address)["seat"] == game.rules.NUM_SEATS - 1
            assert seen_at(seat.input_value(), address)["seat"] == friends_seat - 1
    finally:
        for context in contexts:
            context.close()


def test_moves_are_words_and_codes_small_print(page: Any, game: Game) -> None:
    """Codes are there on request, which is remembered; words name the card that goes, if all see it."""
    sit_down(page, game, short_options(game))
    play_last(page, 2)
    codes = page.locator(".code")
    assert not [code for code in codes.all() if code.is_visible()]
    moved = seen_at(page.url, page.url.partition("#")[0][:-1], "?since=0")["moves"]
    entries = page.locator("#log li button")
    for number, move in enumerate(moved):
        card = move["card"] and card_name(move["card"])
        assert card in entries.nth(number).inner_text() and "a card from" not in entries.nth(number).inner_text()
    places = [one.get_attribute("data-place") for one in page.locator("#picture [data-place]").all()]
    sources = [gestures(page)[one.get_attribute("data-move")][0] for one in page.locator("#moves button").all()]
    order = [places.index(source) for source in sources if source]
    assert order == sorted(order)
    more(page)
    page.check("#codes")
    assert codes.count() == len([code for code in codes.all() if code.is_visible()])
    page.reload()
    page.wait_for_selector(READY)
    more(page)
    assert page.is_checked("#codes")
    page.uncheck("#codes")


def test_cards_are_seen_to_move(page: Any, game: Game) -> None:
    """For a quarter of a second at most, and not where people want things to be still."""
    if game.drawing is None:
        pytest.skip("its cards are touched where they lie")
    page.add_init_script("""
        const { animate } = Element.prototype;
        window.flights = [];
        Element.prototype.animate = function (frames, how) {
            if (this.localName === "use") window.flights.push(how.duration);
            return animate.call(this, frames, how);
        };
    """)
    page.reload()
    for motion, are_seen in (("reduce", False), ("no-preference", True)):
        page.emulate_media(reduced_motion=motion)
        sit_down(page, game, short_options(game))
        for _ in range(8):
            moves = [move for move, (source, target) in gestures(page).items() if source and source != target]
            if moves:
                break
            play_last(page)
        page.evaluate("() => { window.flights = []; }")
        turn = page.get_attribute("#at", "max")
        page.click(f"#moves button[data-move='{moves[0]}']")
        page.wait_for_selector(f"#table:not(:has(#at[max='{turn}']))")
        flights = page.evaluate("() => window.flights")
        assert bool(flights) == are_seen and all(150 <= time <= 250 for time in flights)
        page.wait_for_function("() => !document.querySelector('#picture .flying')")
        leave(page)


@pytest.mark.mechanics
def test_forced_moves_play_themselves(page: Any, game: Game) -> None:
    """If that is wanted: nobody has to press a button that is the only one."""
    sit_down(page, game, short_options(game))
    more(page)
    page.check("#forced")
    for _ in range(60):
        page.wait_for_selector("#moves button + button:enabled, #table[data-state=over]")
        if page.get_attribute("#table", "data-state") == "over":
            break
        turn = page.get_attribute("#at", "max")
        page.locator("#moves button:enabled").last.click()
        page.wait_for_selector(f"#table:not(:has(#at[max='{turn}']))")


@pytest.mark.mechanics
def test_a_number_deals_the_same_again(page: Any, game: Game, address: str) -> None:
    """The number stands at the table, behind "More"; the page is called after the game."""
    page.unroute("**/v1/tables")
    views = []
    for number in ("4711", "4711", ""):
        page.check(f"input[value={game.name}]")
        if page.get_attribute("#more", "open") is None:
            page.click("#more summary")
        page.fill("#deal", number)
        page.click("form button[type=submit]")
        page.wait_for_selector(READY)
        assert page.title() == page.inner_text("#title") == game.title
        assert (page.text_content("#number") == "deal 4711") == bool(number)
        views.append(seen_at(page.url, address)["view"])
        leave(page)
        assert page.title() == "Card games"
    assert views[0] == views[1]


@pytest.mark.mechanics
def test_after_the_game(page: Any, game: Game, browser: Any) -> None:
    """A review is the first thing that is offered; a link holds the whole game, for any browser."""
    if game.rules.NUM_ACTIONS >= 20:
        pytest.skip("it takes too long")
    sit_down(page, game, short_options(game))
    while page.get_attribute("#table", "data-state") != "over":
        page.locator("#moves button:enabled").first.click()
        page.wait_for_selector(READY)
    moves = int(page.get_attribute("#at", "max"))
    assert page.locator("#after button:visible").first.inner_text() == "Review my moves"
    assert page.is_visible("#prize") == page.inner_text("#question").startswith("You won")
    page.click("#share")
    link = page.locator("#linked input").input_value()
    page.keyboard.press("Escape")
    page.click("#review")
    page.wait_for_selector("#judged:has-text('Judged by'), #judged:has-text('no choice')", timeout=COMPILING)
    context = browser.new_context()
    try:
        other = context.new_page()
        other.goto(link)
        other.wait_for_selector("#stepper:visible")
        assert other.locator("#log li").count() == moves and not other.is_visible("#after")
        other.goto(link[:-9])
        other.reload()
        other.wait_for_selector("#problem:has-text('it may have been cut')")
    finally:
        context.close()


@pytest.mark.mechanics
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
