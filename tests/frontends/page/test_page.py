"""The page of the server in a browser: whole games clicked through on a phone's width and a desk's.

Needs Chromium, such as Debian's, and skips without. With `CARD_ENVS_PAGE_SHOTS=FOLDER` it leaves screenshots there.
Each test plays the same games every time; `CARD_ENVS_PAGE_SEED=2` has them play others.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

import card_envs
from card_envs.cards import card_name
from card_envs.draw._pips import PIPS
from card_envs.game import Game
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents._levels import levels
from card_envs.opponents.about import about
from card_envs.record import GameRecord
from tests.conftest import games_under_test, npm_install, program, short_options

playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
pytest.importorskip("uvicorn", reason="the page's tests need the extra `serve`")

pytestmark = pytest.mark.slow
SIZES = {"phone": (390, 844), "desk": (1280, 800)}
PHONES = ((320, 480), (390, 844), (480, 320), (667, 375), (844, 390), (932, 430), (1280, 800))
PAGE = Path(card_envs.__file__).parent / "frontends" / "serve" / "page"
READY = "#table[data-state=yours] #moves button:enabled, #table[data-state=over]"
RESULT = re.compile(r"(You won|You lost|Drawn)\b")
CARD = re.compile("[A2-9TJQK][CDHS]|[BL]B")
COMPILING = 200_000  # ms: as long may the first question to a player take on a machine that has compiled nothing
SHOTS = os.environ.get("CARD_ENVS_PAGE_SHOTS")
SEED = os.environ.get("CARD_ENVS_PAGE_SEED", "1")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server with all games."""
    from card_envs.frontends.serve._command import make_service
    from card_envs.frontends.serve._limits import Limits
    from tests.frontends.serving import serving

    names = [game.name for game in games_under_test()]
    with serving(make_service(tmp_path_factory.mktemp("tables"), names, [], Limits(), allow_deals=True)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = program("chromium", "chromium-browser", "google-chrome")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of the size that the test asks for; it may not complain, nor ask anybody else."""
    size = getattr(request, "param", "desk")
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=size == "phone", reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda asked: complaints.append(asked.url) if not asked.url.startswith((address, "blob:")) else None
    )
    seed = zlib.crc32(f"{request.node.nodeid} {SEED}".encode())
    page.route("**/v1/tables", lambda route: route.continue_(post_data={**route.request.post_data_json, "seed": seed}))
    page.goto(address)
    yield page
    context.close()
    assert not complaints


def sit_down(page: Any, game: Game, options: dict[str, Any], opponent: str = "greedy", pace: str = "0") -> None:
    page.check(f"input[value={game.name}]")
    if game.rules.NUM_SEATS > 1:
        level = page.locator(f"input[name=level][value='{opponent}']")
        if level.count():
            level.check()
        else:
            unfold(page, "#others")
            for select in page.locator("select[name=player]").all():
                select.select_option(opponent)
    if options:
        unfold(page, "#more")
        for name, value in options.items():
            page.select_option(f"select[name='option {name}']", json.dumps(value))
    page.click("form button[type=submit]")
    page.wait_for_selector(READY)
    more(page)
    page.select_option("#pace", pace)


def leave(page: Any) -> None:
    """Go back to the start; a running game is left for good."""
    page.click("#leave")
    if page.is_visible("#sure"):
        page.click("#sure button[value=leave]")
    page.wait_for_selector("#form:visible")


def more(page: Any) -> None:
    """Open what is not needed to play."""
    unfold(page, "#extra")


def unfold(page: Any, details: str) -> None:
    """Open a part of the page, unless an earlier game left it open."""
    if page.get_attribute(details, "open") is None:
        page.click(f"{details} > summary")


def is_grey(page: Any, button: str) -> bool:
    """Return whether a button says why it can't be used."""
    grey: bool = page.get_attribute(button, "aria-disabled") == "true"
    assert grey == bool(page.get_attribute(button, "title"))
    return grey


def shot(page: Any, *words: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{'-'.join(words)}.png", full_page=True)


def seen_at(link: str, address: str, query: str = "") -> dict[str, Any]:
    """The position at the seat of a link."""
    with urllib.request.urlopen(f"{address}/v1/seats/{link.partition('#')[2]}{query}") as reply:
        position: dict[str, Any] = json.load(reply)
    return position


def best_move(page: Any, address: str) -> str:
    """What `greedy` would play, asked like any frontend."""
    position = seen_at(page.url, address)
    body = json.dumps({"game": position["game"], "opponent": "greedy", "view": position["view"]}).encode()
    asked = urllib.request.Request(f"{address}/v1/advise", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked) as reply:
        return str(json.load(reply)["moves"][0]["move"])


def gestures(page: Any) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = json.loads(page.get_attribute("#picture svg", "data-moves"))
    return found


def point(page: Any, place: str) -> tuple[float, float]:
    """Where a finger would touch a place: on its top card."""
    cards = page.locator(f"#picture [data-place='{place}'] use")
    box = (cards.last if cards.count() else page.locator(f"#picture [data-place='{place}']").last).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def make(page: Any, move: str, way: str) -> None:
    """Play a move by its button, by touching places, by dragging, or with the keyboard."""
    source, target = gestures(page)[move]
    alone = [other for other, (start, _) in gestures(page).items() if start == source] == [move]
    if way == "button" or not source:
        page.click(f"#moves button[data-move='{move}']")
    elif way == "tap" or source == target:
        page.mouse.click(*point(page, source))
        if not alone:
            assert page.locator("#picture .target").count()
            page.mouse.click(*point(page, target))
    elif way == "drag":
        page.mouse.move(*point(page, source))
        page.mouse.down()
        page.mouse.move(*point(page, target), steps=4)
        assert page.locator("#picture .ghost").count() == 1
        page.mouse.up()
    else:
        page.locator(f"#picture [data-place='{source}'][tabindex='0']").last.focus()
        page.keyboard.press("Enter")
        if not alone:
            page.locator(f"#picture [data-place='{target}'][tabindex='0']").last.focus()
            page.keyboard.press("Enter")


def play_on(page: Any, game: Game, address: str, size: str, number: int = 10_000) -> None:
    """Play that many moves, or to the end, in every way there is."""
    played = 0
    while page.get_attribute("#table", "data-state") != "over" and played < number:
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), "it scrolls sideways"
        if played in (5, 30):
            shot(page, game.name, size, str(played))
        before = page.locator("#at").get_attribute("max")
        make(page, best_move(page, address), ("button", "tap", "drag", "keyboard")[played % 4])
        page.wait_for_selector(f"#table:not(:has(#at[max='{before}']))")
        page.wait_for_selector(READY)
        played += 1
    assert played > 0


@pytest.mark.mechanics
@pytest.mark.parametrize("page", list(SIZES), indirect=True)
def test_some_moves(page: Any, game: Game, address: str, request: pytest.FixtureRequest) -> None:
    size = request.node.callspec.params["page"]
    sit_down(page, game, short_options(game), pace={"phone": "0", "desk": "350"}[size])
    play_on(page, game, address, size, 8)


@pytest.mark.parametrize(
    ("game", "page"),
    [(game, [*SIZES][number % 2]) for number, game in enumerate(games_under_test())],
    indirect=["page"],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_whole_game(page: Any, game: Game, address: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """To the end; the record is saved, opened again and stepped through."""
    size = request.node.callspec.params["page"]
    shot(page, "start", size)
    sit_down(page, game, short_options(game))
    play_on(page, game, address, size)
    assert RESULT.match(page.inner_text("#question"))
    shot(page, game.name, size, "end")
    with page.expect_download() as waiting:
        page.click("#save")
    file = tmp_path / "game.json"
    waiting.value.save_as(file)
    record = GameRecord.load(file)
    assert record.outcome["over"] and len(record.moves) == int(page.get_attribute("#at", "max"))

    leave(page)
    judge_record(page, file, record, "search:64")
    shot(page, game.name, size, "judged")
    first = page.inner_html("#picture")
    page.click("#last")
    page.wait_for_function(f"() => document.querySelector('#at').value === '{len(record.moves)}'")
    page.wait_for_selector("#table[data-state=over]")
    assert RESULT.match(page.inner_text("#status"))
    assert page.inner_html("#picture") != first
    page.click("#first")
    page.wait_for_function("(first) => document.querySelector('#picture').innerHTML === first", arg=first)


def judge_record(page: Any, file: Path, record: GameRecord, judge: str) -> None:
    """Open a saved game at its beginning, with all its moves listed, and ask what those of seat 0 cost."""
    page.set_input_files("#file", file)
    page.wait_for_selector("#stepper:visible")
    assert page.locator("#log li").count() == len(record.moves) and not page.is_visible("#save")
    more(page)
    page.select_option("#adviser", judge)
    page.click("#judge")
    page.wait_for_selector(f"#judged:has-text('Judged by {judge}')", timeout=COMPILING)
    assert page.locator("#log li .cost").count() > 0


@pytest.mark.mechanics
def test_what_is_needed_can_be_touched_at_every_size(page: Any, game: Game) -> None:
    """Play is in sight without scrolling, the moves are beside the picture, and each can be clicked."""
    for width, height in PHONES:
        page.set_viewport_size({"width": width, "height": height})
        page.check(f"input[value={game.name}]")
        button = page.locator("form button[type=submit]").bounding_box()
        assert 0 <= button["y"] <= height - button["height"], (width, height)
        sit_down(page, game, short_options(game))
        for move in page.locator("#moves button").all():
            move.click(trial=True)  # scrolls there, and raises where something lies above
        moves, tools = page.locator("#moves").bounding_box(), page.locator("#hint").bounding_box()
        assert moves["height"] >= 40 and moves["y"] + moves["height"] <= tools["y"], (width, height)
        leave(page)


def option_words(page: Any, game: Game) -> list[str]:
    """Return the words of each option of a game on the start page: its title, then its values."""
    page.check(f"input[value={game.name}]")
    return [label.text_content() for label in page.locator("#options label").all()]


def said_of_options(game: Game) -> list[str]:
    """Return the same from the game itself."""
    return ["".join([title, *(words for _, words in values)]) for _, title, values in game.view.CHOICES]


def test_options_are_in_words(page: Any, game: Game) -> None:
    if not game.view.CHOICES:
        pytest.skip("its options have no words")
    assert option_words(page, game) == said_of_options(game)


@pytest.mark.mechanics
def test_long_turns_pass_quicker(page: Any, game: Game, address: str) -> None:
    """However many moves the others make, people wait for a few seconds only."""
    page.evaluate("""() => {
        const wait = window.setTimeout;
        window.pauses = [];
        window.setTimeout = (work, pause) => { window.pauses.push(pause); return wait(work, 0); };
    }""")
    sit_down(page, game, short_options(game), pace="900")
    shown = 0
    while shown <= 8000 / 900 and page.get_attribute("#table", "data-state") != "over":
        page.evaluate("() => { window.pauses = []; }")
        before = int(page.get_attribute("#at", "max"))
        play_on(page, game, address, "desk", 1)
        shown, pauses = int(page.get_attribute("#at", "max")) - before, page.evaluate("() => window.pauses")
        assert pauses == ([min(900, 8000 / shown)] * shown if shown > 1 else [])


@pytest.mark.mechanics
def test_hint_undo_and_coming_back(page: Any, game: Game, address: str) -> None:
    sit_down(page, game, short_options(game))
    for button in ("#undo", "#save"):
        assert is_grey(page, button)
        page.click(button, force=True)  # Playwright waits for one that works
        assert page.inner_text("#status") == page.get_attribute(button, "title")
    before = page.inner_html("#picture")
    moves = [*worth(page)]
    page.select_option("#adviser", "search:64")
    with page.expect_response("**/v1/advise", timeout=COMPILING) as reply:
        page.click("#hint")
    page.wait_for_selector("#moves button.best")
    assert [*worth(page)] == moves and sorted(moves) == sorted(gestures(page))
    assert_compared(page, game, reply.value.json()["moves"])
    page.click("#moves button.best")
    page.wait_for_selector("#undo[aria-disabled=false], #table[data-state=over]")
    if page.get_attribute("#table", "data-state") == "over":
        return
    page.wait_for_selector(READY)
    page.reload()
    page.wait_for_selector(READY)
    page.click("#undo")
    page.wait_for_selector("#undo[aria-disabled=true]")
    page.wait_for_selector(READY)
    assert page.inner_html("#picture") == before
    assert page.locator("#log li").count() == int(page.get_attribute("#at", "max"))


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_what_moves_cost(page: Any, game: Game, request: pytest.FixtureRequest) -> None:
    """Looking back, each own move has its cost in the list, and its position says what would have been better."""
    size = request.node.callspec.params["page"]
    sit_down(page, game, short_options(game))
    more(page)
    page.select_option("#adviser", "search:64")
    for _ in range(4):
        page.wait_for_selector(READY)
        if page.get_attribute("#table", "data-state") == "over":
            break
        page.locator("#moves button").last.click()
    page.wait_for_selector(READY)
    page.click("#step")
    page.click("#judge")
    page.wait_for_selector("#judged:has-text('Judged by search:64')", timeout=COMPILING)
    judged = page.locator("#log li:has(.cost)")
    assert judged.count() > 0
    opinion = "() => / cost |judge's choice|as good as|no opinion/.test(document.querySelector('#status').textContent)"
    for entry in (judged.first, judged.last):
        if not page.is_visible("#stepper"):
            page.click("#step")
        page.click("#first")
        page.wait_for_selector("#status:has-text('After 0 of')")
        entry.locator("button").click()
        page.wait_for_function(opinion)
        shot(page, "judged", game.name, size)


def play_choices(page: Any, number: int) -> None:
    """Play the last move of each position, until that many of them had another one."""
    while number:
        number -= page.locator("#moves button:enabled").count() > 1
        play_last(page)


def play_last(page: Any, times: int = 1) -> None:
    """Play the last of the legal moves."""
    for _ in range(times):
        page.locator("#moves button:enabled").last.click()
        page.wait_for_selector(READY)
        assert page.get_attribute("#table", "data-state") == "yours"


def undo(page: Any) -> None:
    listed = page.locator("#log li").count()
    page.click("#undo")
    page.wait_for_function("before => document.querySelectorAll('#log li').length < before", arg=listed)
    page.wait_for_selector(READY)


@pytest.mark.mechanics
def test_a_verdict_goes_with_its_move(page: Any, game: Game) -> None:
    """What was judged of a move that is taken back is not said of the one that is played instead."""
    sit_down(page, game, short_options(game))
    page.select_option("#adviser", "search:64")
    play_choices(page, 2)
    page.click("#step")
    page.click("#judge")
    page.wait_for_selector("#judged:has-text('Judged by search:64')", timeout=COMPILING)
    judged = page.locator("#log li:has(.cost)")  # the others may have moved before
    kept = judged.first.inner_text()
    assert judged.count() == 2
    page.click("#step")
    undo(page)
    assert judged.count() == 1 and page.text_content("#judged") == ""
    page.locator("#moves button:enabled").first.click()
    page.wait_for_selector(READY)
    others = page.locator("#log li:not(:has(.cost))").all()
    assert others
    for entry in others:
        entry.locator("button").click()
        entry.locator("button[aria-current=true]").wait_for()
        assert not re.search(r" cost |judge|as good as", page.inner_text("#status"))
    assert judged.count() == 1 and judged.first.inner_text() == kept


@pytest.mark.mechanics
@pytest.mark.parametrize("way", ["without site data", "without room"])
def test_what_only_remembers_may_fail(page: Any, game: Game, way: str) -> None:
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"
        if way == "without site data"
        else "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"
    )
    page.reload()
    made = []
    page.on("response", lambda reply: made.append(reply) if reply.url.endswith("/v1/tables") else None)
    sit_down(page, game, short_options(game))
    play_last(page)
    page.reload()  # the address has the seat
    page.wait_for_selector(READY)
    leave(page)
    assert len(made) == 1 and not page.is_visible("#problem") and not page.is_visible("#unfinished")


@pytest.mark.mechanics
@pytest.mark.parametrize("button", ["#judge", "#help", "#moves button:enabled"])
def test_a_server_that_is_away_is_told(page: Any, game: Game, button: str) -> None:
    """And the page goes on once it is back."""
    sit_down(page, game, short_options(game))
    play_last(page)
    if button == "#judge":
        page.click("#step")
    page.evaluate("() => { window.back = fetch; fetch = async () => { throw new TypeError('Failed to fetch'); }; }")
    page.locator(button).first.click()
    page.wait_for_selector('#problem:has-text("The server can\'t be reached.")', state="attached")
    page.evaluate("() => { fetch = window.back; }")
    if button == "#help":
        page.keyboard.press("Escape")
    elif button == "#judge":
        page.click("#step")
    page.wait_for_selector("#hint[aria-disabled=false]")
    play_last(page)
    assert not page.is_visible("#problem")


def assert_compared(page: Any, game: Game, moves: list[dict[str, Any]]) -> None:
    """Moves tried to the end say why they are not the best one."""
    shown = worth(page)
    assert {*shown} == {one["move"] for one in moves}
    best, *others = moves
    status, question = page.inner_text("#status"), page.inner_text("#question")
    assert shown[best["move"]] == "best" and status[:-1] in page.get_attribute("#moves .best", "title")
    fully = [one for one in others if one["worlds"] and not one["dropped"]]
    for one in others:
        cost = -one["difference"] if one in fully else None
        expected = "" if cost is None else "as good" if cost < 0.5 else f"−{int(cost + 0.5)}"
        assert shown[one["move"]] == expected
    if others:
        assert question.startswith("Next best: ") if fully else question == "The others look less good."
    else:
        assert question == "There is no other move."


def worth(page: Any) -> dict[str, str]:
    """Return what a hint wrote on each move, in their order."""
    return {
        button.get_attribute("data-move"): "".join(
            small.get_attribute("data-worth") for small in button.locator("small").all()
        )
        for button in page.locator("#moves button").all()
    }


def test_bids_are_compared_by_points(page: Any, game: Game) -> None:
    """Where the adviser has no estimate, as a network in the bidding, a judge prices the likeliest moves."""
    if not game.view.PHASES:
        pytest.skip("all its decisions are of one kind")
    sit_down(page, game, {})
    page.select_option("#adviser", "strong")
    with page.expect_response("**/v1/advise", timeout=COMPILING) as reply:
        page.click("#hint")
    page.wait_for_selector("#moves button.best", timeout=COMPILING)
    best, *others = reply.value.json()["moves"]
    assert best["margin"] is None
    shown = worth(page)
    assert shown.pop(best["move"]) == "best"
    priced = [move for move, small in shown.items() if small]
    assert {*priced} == {one["move"] for one in others[:3]}
    assert all(re.fullmatch(r"as good|−\d+\.\d", shown[move]) for move in priced)
    assert re.search(r"Next best: .*, (about as good|costs .* ± .*)\.$", page.inner_text("#question"))


def assert_in_words(page: Any, game: Game) -> None:
    """Each legal move says in words what it is, with its card where that is seen; a code comes last."""
    for button in page.locator("#moves button").all():
        text = button.get_attribute("data-move")
        words = game.view.move_words(text)
        title = button.get_attribute("title")
        pattern = re.escape(words[0].upper() + words[1:])
        for part, card in ((r"a\ card", "the .*"), (r"turned\ card", "turned .* of .*")):
            pattern = pattern.replace(part, f"(?:{part}|{card})")
        assert re.match(pattern, title) and (title.endswith(f"({text})") or text in words or CARD.fullmatch(text))


def test_moves_are_in_words(page: Any, game: Game, address: str) -> None:
    """Those that are legal, and those that were played."""
    sit_down(page, game, short_options(game))
    assert_in_words(page, game)
    (move, *_) = gestures(page)
    card = game.view.moved_card(seen_at(page.url, address)["view"], move)
    make(page, move, "button")
    own = page.locator("#log li:has-text('you ')").first
    own.wait_for()
    words = game.view.move_words(move)
    words = words.replace("a card", f"the {card_name(card)}", 1) if card else words
    assert own.inner_text().startswith(f"you {words}" if words[:3].isalpha() else f"you: {words}")


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_the_list_of_moves(page: Any, game: Game, address: str, request: pytest.FixtureRequest) -> None:
    """All moves, also after a reload, the newest in sight; each shows the position after it."""
    sit_down(page, game, short_options(game))
    play_on(page, game, address, request.node.callspec.params["page"], 2)
    page.reload()
    page.wait_for_selector(READY)
    turn = int(page.get_attribute("#at", "max"))
    entries = page.locator("#log button")
    assert entries.count() == turn
    log, newest = page.locator("#log").bounding_box(), entries.last.bounding_box()
    assert log["y"] <= newest["y"] and newest["y"] + newest["height"] <= log["y"] + log["height"] + 1
    now = page.inner_html("#picture")
    entries.first.click()
    page.wait_for_selector("#log button[aria-current] >> nth=0")
    page.wait_for_function("() => document.querySelector('#status').textContent.includes('After 1 of ')")
    first = page.inner_html("#picture")
    assert first != now and page.is_visible("#stepper")
    for _ in range(turn - 1):
        page.keyboard.press("ArrowDown")
    page.wait_for_selector("#table[data-state=yours] #moves button:enabled, #table[data-state=over]")
    page.wait_for_function("(now) => document.querySelector('#picture').innerHTML === now", arg=now)
    page.keyboard.press("Home")
    page.wait_for_function("(first) => document.querySelector('#picture').innerHTML === first", arg=first)


@pytest.mark.mechanics
def test_screen_readers_are_told(page: Any, game: Game) -> None:
    """Everything that can be pressed has a name; what happens is said; places say what lies there."""
    sit_down(page, game, short_options(game))
    assert page.get_attribute("#status", "aria-live") == "polite"
    assert page.get_attribute("#question", "aria-live") == "polite"
    page.wait_for_function("() => document.querySelector('#question').textContent")
    for control in page.locator("button:visible, select:visible, input:visible, [role=button]").all():
        assert control.evaluate("(one) => one.ariaLabel || one.innerText || one.labels?.[0]?.innerText"), control
    for place in page.locator("#picture [data-place]").all():
        assert place.get_attribute("aria-label")


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, which finds faults of accessibility."""
    folder = tmp_path_factory.mktemp("axe")
    (folder / "package.json").write_text("{}")
    npm_install(folder, "axe-core@4.14.1")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def assert_accessible(page: Any, axe: str) -> None:
    """No fault by WCAG 2.2, levels A and AA, such as text of too little contrast."""
    page.evaluate(axe)
    found = page.evaluate("() => axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })")
    assert found["passes"]
    faults = [(fault["id"], [node["html"][:200] for node in fault["nodes"]]) for fault in found["violations"]]
    assert not faults


@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_nothing_keeps_people_out(page: Any, game: Game, address: str, axe: str) -> None:
    """The start, a table with advice, what opens over it, and the end."""
    assert_accessible(page, axe)
    sit_down(page, game, short_options(game))
    page.click("#hint")
    page.wait_for_selector("#moves button.best", timeout=COMPILING)
    assert_accessible(page, axe)
    for button, dialog in (("#help", "#rules"), ("#leave", "#sure")):
        page.click(button)
        page.wait_for_selector(f"{dialog}:visible")
        assert_accessible(page, axe)
        page.click(f"{dialog} button >> nth=0")
    page.click("#step")
    page.click("#first")
    assert_accessible(page, axe)
    if game.rules.NUM_ACTIONS < 20:  # short
        page.click("#step")
        play_on(page, game, address, "desk")
        assert_accessible(page, axe)


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_the_table_does_not_jump(page: Any, game: Game, address: str) -> None:
    """However many moves there are, the picture stays where it is."""
    sit_down(page, game, short_options(game))
    places = []
    for _ in range(6):
        places.append(page.locator("#picture").bounding_box())
        if page.get_attribute("#table", "data-state") == "over":
            break
        play_on(page, game, address, "phone", 1)
    assert len(places) > 2 and all(place == places[0] for place in places)


@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_a_double_click_sends_a_card_home(page: Any, game: Game, address: str) -> None:
    """Also where the card could go elsewhere."""
    sit_down(page, game, short_options(game))
    home = page.get_attribute("#picture svg", "data-home")
    if home is None:
        pytest.skip("there is no such place")
    for _ in range(200):
        moves = gestures(page)
        homeward = [source for source, target in moves.values() if target == home]
        sources = [source for source, _ in moves.values()]
        several = [source for source in homeward if sources.count(source) > 1]
        before = int(page.get_attribute("#at", "max"))
        if several or (homeward and game.rules.NUM_SEATS > 1):  # there, such a move is compulsory
            meant = (several or homeward)[0]
            (move,) = [text for text, places in moves.items() if tuple(places) == (meant, home)]
            page.mouse.dblclick(*point(page, meant))
            page.wait_for_selector(f"#table:not(:has(#at[max='{before}']))")
            assert page.get_attribute(f"#log li:nth-child({before + 1}) button", "data-move") == move
            return
        make(page, best_move(page, address), "button")
        page.wait_for_selector(f"#table:not(:has(#at[max='{before}']))")
        page.wait_for_selector(READY)
    raise AssertionError("no card could go home")


@pytest.mark.mechanics
@pytest.mark.parametrize("page", list(SIZES), indirect=True)
def test_all_that_is_needed_to_play_is_on_the_screen(page: Any, game: Game) -> None:
    """Without scrolling, and large enough to touch."""
    page.check(f"input[value={game.name}]")
    page.click("form button[type=submit]")
    page.wait_for_selector(READY)
    for part in ("#help", "#leave", "#status", "#picture", "#moves button >> nth=0", "#hint", "#undo", "#step"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"], part
        assert box["height"] >= 40 or part == "#status"
    moves = page.locator("#moves").bounding_box()
    for one in page.locator("#moves button").all():
        box = one.bounding_box()
        assert box["y"] + box["height"] <= moves["y"] + moves["height"] <= page.viewport_size["height"]
    assert page.evaluate("() => scrollY") == 0
    assert page.locator("#picture").bounding_box()["height"] > page.viewport_size["height"] / 3


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_the_rules_and_the_codes_of_moves_are_there_to_read(page: Any, game: Game) -> None:
    page.check(f"input[value={game.name}]")
    page.click("#help")
    page.wait_for_selector("#rules:has-text('The rules')")
    text = page.inner_text("#rules")
    assert game.title in text and all(code in text and meaning in text for code, meaning in game.view.LEGEND)
    parts = (game.view.GOAL, game.short_rules.partition(" ")[0], "Hints", "The rules in full", "How moves are written")
    places = [text.index(part) for part in parts]
    assert game.view.GOAL and game.short_rules and places == sorted(places)
    assert "layout:" not in text and "**" not in text and "## " not in text  # it is for players, and no Markdown
    page.click("#rules button")
    assert not page.is_visible("#rules")


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_a_game_without_a_drawing_is_readable(page: Any, game: Game, address: str) -> None:
    """Its hand lies there as cards, which can be touched, and what was played, the newest on top."""
    if game.drawing is not None:
        pytest.skip("it has a drawing")
    sit_down(page, game, {})
    for move in (moves := gestures(page)):
        card = page.locator(f"#picture [data-place='{move}']")
        assert tuple(moves[move]) == (move, move) and card.get_attribute("aria-label") == move
        box = card.locator("use").bounding_box()
        assert box["width"] >= 40 and box["height"] >= 56
    make(page, next(iter(moves)), "tap")
    page.wait_for_selector("#table:not(:has(#at[max='0']))")
    page.wait_for_selector(READY)
    played = page.locator("#picture [data-place=played]")
    assert played.locator("use").count() == len((played.get_attribute("aria-label") or "").split(","))


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_the_start_says_what_games_are(page: Any, game: Game, request: pytest.FixtureRequest) -> None:
    label = page.locator(f"#games label:has([value={game.name}])")
    seats = game.rules.NUM_SEATS
    words = (game.title, f"{seats} player", f"about {game.view.MINUTES} minute", game.view.GOAL)
    assert game.view.MINUTES and game.view.GOAL and all(part in label.inner_text() for part in words)
    assert label.locator("img").evaluate("(one) => one.complete && one.naturalWidth > 100")
    page.check(f"input[value={game.name}]")
    shot(page, "start", game.name, request.node.callspec.params["page"])


@pytest.mark.mechanics
@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_buttons_say_what_moves_come_to(page: Any, game: Game, address: str, request: pytest.FixtureRequest) -> None:
    """As a bid that is added to the partner's: on the button, in its name and title, and in the help."""
    players = [None, *["greedy"] * (game.rules.NUM_SEATS - 1)]
    for seed in range(20):
        body = json.dumps({"game": game.name, "players": players, "seed": seed}).encode()
        asked = urllib.request.Request(f"{address}/v1/tables", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as reply:
            link = f"{address}/#{json.load(reply)['seats'][0]['token']}"
        position = seen_at(link, address, "?wait=20")
        if position["move_notes"]:
            break
    else:
        pytest.skip("none of its moves needs a note")
    page.goto(link)
    page.reload()
    page.wait_for_selector(READY)
    assert page.inner_text("#question") == position["question"] == game.question(position["view"])
    width = SIZES[request.node.callspec.params["page"]][0]
    for move, note in position["move_notes"].items():
        button = page.locator(f"#moves [data-move='{move}']")
        box = button.bounding_box()
        words = game.view.move_words(move)
        face = move if move in re.split(r"\W+", words) else words
        written = face if note in face else f"{face}: {note}"
        assert button.inner_text() == written
        assert page.get_by_role("button", name=written, exact=True).get_attribute("data-move") == move
        assert note in button.get_attribute("title")
        assert button.evaluate("(one) => one.scrollWidth <= one.clientWidth + 1")
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    shot(page, "notes", game.name, request.node.callspec.params["page"])
    page.click("#help")
    help_text = page.inner_text("#text")
    assert all(note in help_text for note in position["move_notes"].values())


@pytest.mark.mechanics
def test_a_running_game_is_not_lost(page: Any, game: Game, address: str) -> None:
    """Leaving asks first, by the button and by the browser's history; the start offers to go on."""
    sit_down(page, game, short_options(game))
    played = page.url
    for way in (lambda: page.click("#leave"), page.go_back):
        way()
        page.wait_for_selector("#sure:visible")
        page.click("#sure button[value=stay]")
        assert page.url == played and page.is_visible("#table")
    leave(page)
    page.goto(address)
    page.wait_for_selector("#on:visible")
    assert page.inner_text("#on") == f"Go on with {game.title}"
    page.click("#on")
    page.wait_for_selector(READY)
    assert page.url == played
    more(page)
    page.select_option("#pace", "0")
    play_on(page, game, address, "desk")
    assert RESULT.match(page.inner_text("#question")) and "(played)" not in page.inner_text("#question")
    page.click("#again")
    page.wait_for_function("(played) => location.href !== played", arg=played)
    page.wait_for_selector("#table[data-state=yours] #moves button:enabled")
    page.go_back()  # to the finished one
    page.wait_for_selector("#sure:visible")
    page.click("#sure button[value=leave]")
    page.wait_for_selector("#on:visible")


def level_words(page: Any, game: Game) -> list[str]:
    """Return the words of each level of a game on the start page, and what is said of it once it is chosen."""
    page.check(f"input[value={game.name}]")
    found = []
    for label in page.locator("#levels label").all():
        label.click()
        found.append(f"{label.text_content()}. {page.text_content('#about')}")
    return found


def said_of_levels(game: Game, names: Collection[str]) -> list[str]:
    """Return the same from what is known of these opponents."""
    return [
        f"{level.name}{level.strength}. It {about(load_opponent(level.player, game))}." for level in levels(game, names)
    ]


def test_levels_are_in_words(page: Any, game: Game) -> None:
    assert level_words(page, game) == said_of_levels(game, opponent_names(game))


@pytest.mark.mechanics
def test_levels_come_first(page: Any, game: Game) -> None:
    """One choice for all seats; each seat has the other opponents behind "more"."""
    page.check(f"input[value={game.name}]")
    offered = [level.player for level in levels(game, opponent_names(game))]
    assert page.locator("#levels input").evaluate_all("(all) => all.map((one) => one.value)") == offered
    if game.rules.NUM_SEATS == 1:  # there, it is the level of the hints
        page.check(f"input[name=level][value={offered[0]}]")
        page.click("form button[type=submit]")
        page.wait_for_selector(READY)
        assert page.input_value("#adviser") == offered[0]
        return
    assert page.is_checked(f"input[name=level][value={offered[0]}]") and not page.is_visible("#seats")
    page.click("#others > summary")
    for select in page.locator("#seats select").all():
        names = select.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
        assert names.pop() == "" and names[: len(offered)] == offered and sorted(names) == sorted(opponent_names(game))
        select.select_option("random")
    assert page.locator("#levels input:checked").count() == 0
    page.check(f"input[name=level][value={offered[1]}]")
    assert {select.input_value() for select in page.locator("#seats select").all()} == {offered[1]}


def test_suits_are_drawn_as_on_the_cards() -> None:
    index = (PAGE / "index.html").read_text(encoding="utf-8")
    for suit, path in PIPS.items():
        assert f'<symbol id="suit-{suit}" viewBox="-50 -50 100 100"><path d="{path}"/>' in index
    pictographs = re.compile("[\u2190-\u21ff\u2300-\u2bff\U0001f000-\U0001ffff]")
    for file in PAGE.glob("*.[jhc]*"):
        assert not pictographs.findall(file.read_text(encoding="utf-8")), file


@pytest.mark.mechanics
def test_errors_are_shown(page: Any, game: Game, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    page.set_input_files("#file", broken)
    page.wait_for_selector("#problem:visible")
    assert "broken.json" in page.inner_text("#problem")
    sit_down(page, game, short_options(game))
    assert not page.is_visible("#problem")


def test_the_openapi_page_works_offline(page: Any, address: str) -> None:
    """Its scripts come from the server, as the fixture sees to, and it lists every request."""
    page.goto(f"{address}/docs")
    page.locator(".opblock").first.wait_for()
    paths = json.load(urllib.request.urlopen(f"{address}/openapi.json"))["paths"]
    assert page.locator(".opblock").count() == sum(map(len, paths.values()))
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / "docs.png"))
