"""Playing on the server's page: keys, cards that can't move, what is said of moves and ends, and what is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from card_envs.draw.picture import CREAM, FELT, QUIET
from card_envs.game import Game
from tests.conftest import short_options
from tests.test_page import COMPILING, READY, address, browser, leave, luminance, page, play_last, sit_down

__all__ = ["address", "browser", "page"]  # fixtures


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
    still = page.locator("#picture [data-place]:not(.can)")
    still.last.click(force=True)
    page.wait_for_selector("#status:has-text('nothing to move there now')")
    assert page.get_attribute("#at", "max") == before and page.locator("#picture .can").count()


@pytest.mark.mechanics
def test_what_was_played_is_said(page: Any, game: Game) -> None:
    """At one's turn: one's last move, the replies, and what lay there before it."""
    sit_down(page, game, short_options(game))
    play_last(page, 2)
    names = [text.split()[0].strip(":") for text in page.locator("#log li button").all_inner_texts()]
    own = len(names) - 1 - names[::-1].index("you")
    said = [one for one in page.inner_text("#status").split(".") if one.strip()]
    before = own > 0 and names[own - 1] != "you"
    assert min(len(names) - own + before, 8) <= len(said) <= 8
    assert len(names) - own > 7 or any(one.strip().startswith("You") for one in said)


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


def test_labels_stand_out() -> None:
    """As WCAG 2.2 asks for small text: 4.5 to 1 from the felt, where it is brightest."""
    for colour in (CREAM, QUIET):
        assert (luminance(colour) + 0.05) / (luminance(FELT) + 0.05) >= 4.5
