"""The page at every size, in every state: nothing reaches out of it, nothing is too small to touch, no text is cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from card_envs.game import Game
from tests.conftest import short_options
from tests.frontends.page.test_page import (
    COMPILING,
    PHONES,
    address,
    browser,
    leave,
    more,
    page,
    play_last,
    shot,
    sit_down,
)
from tests.frontends.page.test_review import review

__all__ = ["address", "browser", "page"]  # fixtures

pytestmark = pytest.mark.slow
SIZES = (*PHONES, (768, 1024))

# The picture is the one for this shape of screen.
SHAPE = """() => {
  const box = document.querySelector("#picture svg")?.viewBox.baseVal;
  return !box || (box.height > box.width) === (innerHeight > innerWidth);
}"""

# Every fault that can be measured, as a text. The ring around what has the focus is measured with the focus there.
FAULTS = """() => {
  const faults = [];
  const nameOf = (one) => `${one.localName}#${one.id} "${(one.ariaLabel || one.textContent).trim().slice(0, 30)}"`;
  const seen = [...document.body.querySelectorAll("*")].filter((one) => {
    return !one.closest("svg *") && one.checkVisibility({ opacityProperty: true }) && one.getClientRects().length;
  });
  for (const one of seen) {
    const fail = (what) => faults.push(`${nameOf(one)} ${what}`);
    const { left, right } = one.getBoundingClientRect();
    if (left < -0.5 || right > innerWidth + 0.5) fail(`reaches from ${left} to ${right}`);
    const { overflowX, overflowY } = getComputedStyle(one);
    const isField = one.matches("input, select");
    if (overflowX !== "visible" && one.scrollWidth > one.clientWidth && !isField) {
      fail(`is cut: ${one.scrollWidth} in ${one.clientWidth}`);
    }
    const isCut = ["hidden", "clip"].includes(overflowY) && one.scrollHeight > one.clientHeight + 1;
    if (isCut && !one.querySelector("#all:not([hidden])")) fail(`is cut: ${one.scrollHeight} in ${one.clientHeight}`);
    if (!one.matches("button, select, summary, input, a")) continue;
    const { width, height } = (one.matches("input") && one.labels[0] || one).getBoundingClientRect();
    if (width < 24 || height < 24) fail(`is ${width} by ${height}`);
    if (!one.matches("#file")) one.focus();
    if (document.activeElement !== one || one.matches("#file")) continue; // below a dialog, or what is not seen
    const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(one);
    const ring = outlineStyle === "none" ? 0 : Math.max(0, parseFloat(outlineWidth) + parseFloat(outlineOffset));
    const box = one.getBoundingClientRect();
    for (let around = one.parentElement; around !== document.body; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === "visible") continue;
      const edge = around.getBoundingClientRect();
      const room = [box.left - edge.left, box.top - edge.top, edge.right - box.right, edge.bottom - box.bottom];
      if (Math.min(...room) < ring - 1) fail(`has ${room.map(Math.round)} around it, its ring needs ${ring}`);
    }
  }
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) faults.push(`the page is ${scrollWidth} wide`);
  return faults;
}"""


def at_the_start(page: Any, game: Game) -> None:
    page.check(f"input[value={game.name}]")


def with_all_choices(page: Any, game: Game) -> None:
    at_the_start(page, game)
    for part in ("#others", "#more"):
        if page.is_visible(f"{part} > summary"):
            page.click(f"{part} > summary")


def at_a_turn(page: Any, game: Game) -> None:
    sit_down(page, game, short_options(game))
    page.click("#extra > summary")


def with_more(page: Any, game: Game) -> None:
    at_a_turn(page, game)
    more(page)


def with_a_long_status(page: Any, game: Game) -> None:
    at_a_turn(page, game)
    play_last(page, 2)
    page.evaluate("() => { const one = document.querySelector('#status'); one.append(one.textContent.repeat(3)); }")


def with_a_hint(page: Any, game: Game) -> None:
    at_a_turn(page, game)
    page.click("#hint")
    page.wait_for_selector("#moves button.best", timeout=COMPILING)


def looking_back(page: Any, game: Game) -> None:
    at_a_turn(page, game)
    play_last(page)
    page.click("#step")


def with_a_review(page: Any, game: Game) -> None:
    review(page, game)
    page.locator("#costliest button").first.click()
    page.wait_for_selector("#status:has-text(' cost ')")


def watching(page: Any, game: Game) -> None:
    at_a_turn(page, game)
    play_last(page)
    links = json.loads(page.evaluate("() => Object.entries(localStorage).find(([name]) => name.includes('links'))[1]"))
    leave(page)
    page.goto(f"{page.url.partition('#')[0]}#watch={links['watch']}")
    page.wait_for_selector("#table[data-state=watched]")


def end(page: Any, game: Game) -> None:
    def over(route: Any) -> None:
        reply = route.fetch().json()
        outcome = {"over": True, "reason": next(iter(game.view.ENDS), "played"), "scores": [57] * game.rules.NUM_SEATS}
        route.fulfill(json={**reply, "your_turn": False, "outcome": outcome})

    at_a_turn(page, game)
    page.route("**/moves?*", over)
    page.locator("#moves button").last.click()
    page.wait_for_selector("#table[data-state=over]")


def with_links(page: Any, game: Game) -> None:
    at_a_turn(page, game)
    more(page)
    page.click("#invite")
    page.wait_for_selector("#links:visible")


def with_the_rules(page: Any, game: Game) -> None:
    at_a_turn(page, game)
    page.click("#help")
    page.wait_for_selector("#rules:has-text('The rules in full')")


STATES: tuple[Callable[[Any, Game], None], ...] = (
    at_the_start, with_all_choices, at_a_turn, with_more, with_a_long_status, with_a_hint, looking_back, with_a_review,
    watching, end, with_links, with_the_rules,
)  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_everything_fits(page: Any, game: Game, state: Callable[[Any, Game], None]) -> None:
    state(page, game)
    page.keyboard.press("Tab")  # from now on, what has the focus has its ring
    faults = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(SHAPE)
        shot(page, game.name, state.__name__, f"{width}x{height}")
        if found := page.evaluate(FAULTS):
            faults[width, height] = found
    assert not faults, json.dumps({str(size): found for size, found in faults.items()}, indent=1)


def test_a_phones_table_is_as_wide_as_the_phone(page: Any, game: Game) -> None:
    """Almost: the drawing, which keeps its shape, has 320 of 366 pixels."""
    at_a_turn(page, game)
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(SHAPE)
    drawing = page.locator("#picture svg")
    scale, units = drawing.evaluate("(svg) => [svg.getScreenCTM().a, svg.viewBox.baseVal.width]")
    assert scale * units >= 320
