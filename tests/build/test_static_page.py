"""The page that plays without a server: whole games in Chromium on a phone's width and a desk's, online and offline.

Slow: most need the WebAssembly of all games (`make npm`). `CARD_ENVS_PAGE_SHOTS=FOLDER`: where screenshots go.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from card_envs import replay
from card_envs.build._native import usual_players
from card_envs.build._page import BEGINS, MARK, write_page
from card_envs.game import Game
from card_envs.record import GameRecord
from tests.build.test_js import PORTED
from tests.conftest import built_for_js, short_options
from tests.frontends.page.test_page import (
    COMPILING,
    READY,
    SIZES,
    assert_in_words,
    browser,
    judge_record,
    leave,
    level_words,
    more,
    option_words,
    said_of_levels,
    said_of_options,
    shot,
    sit_down,
)

JS = Path(__file__).parents[2] / "js"
__all__ = ["browser"]  # a fixture

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    """Any web server's answers, without its log."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".wasm": "application/wasm", ".js": "text/javascript"}

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a web server with the page's folder, which is not at its top."""
    built_for_js(tuple(PORTED), ("wasm32",))
    top = tmp_path_factory.mktemp("web")
    write_page(JS, top / "cards")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(top))) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/cards/"
        server.shutdown()


@pytest.fixture
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of the size that the test asks for; it may not complain."""
    width, height = SIZES[getattr(request, "param", "desk")]
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    yield page
    context.close()
    assert not complaints


# Where the page itself searched, no timer could run between the click on the button and the answer.
COUNT_MEANWHILE = """
    window.meanwhile = 0;
    const isThinking = () => document.getElementById("hint").title === "One moment.";
    setInterval(() => { if (isThinking()) window.meanwhile++; }, 1);
"""


def play_as_advised(page: Any, who: str, moves: int = 10_000) -> None:
    """Play what a player advises, to the end of the game or that many moves."""
    more(page)
    page.select_option("#adviser", who)
    for _ in range(moves):
        page.wait_for_selector(READY)
        if page.get_attribute("#table", "data-state") == "over":
            return
        page.click("#hint")
        page.click("#moves button.best")


@pytest.mark.parametrize(
    ("game", "page"),
    [(game, [*SIZES][1 - number % 2]) for number, game in enumerate(PORTED)],
    indirect=["page"],
    ids=lambda value: getattr(value, "name", value),
)
def test_whole_games(page: Any, game: Game, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    size = request.node.callspec.params["page"]
    sit_down(page, game, short_options(game), "small")
    play_as_advised(page, "greedy", 6)
    shot(page, "static", game.name, size)
    page.reload()  # comes back to the table
    page.wait_for_selector(READY)
    more(page)
    page.select_option("#pace", "0")
    play_as_advised(page, "small")
    shot(page, "static", game.name, size, "over")
    with page.expect_download() as download:
        page.click("#save")
    file = tmp_path / "game.json"
    download.value.save_as(file)
    record = GameRecord(**json.loads(file.read_text()))
    assert record.outcome["over"] and replay(record) is not None
    leave(page)
    judge_record(page, file, record, "strong")
    shot(page, "static", game.name, size, "judged")


@pytest.mark.parametrize("game", PORTED, ids=lambda game: game.name)
def test_options_levels_and_moves_are_in_the_words_of_the_other_page(page: Any, game: Game) -> None:
    assert option_words(page, game) == said_of_options(game)
    assert level_words(page, game) == said_of_levels(game, usual_players(game))
    sit_down(page, game, short_options(game))
    assert_in_words(page, game)


@pytest.mark.parametrize("game", PORTED, ids=lambda game: game.name)
def test_strong_players_think_in_a_worker(page: Any, game: Game) -> None:
    """The page goes on meanwhile, and leaving the table stops them."""
    sit_down(page, game, short_options(game))
    page.evaluate(COUNT_MEANWHILE)
    play_as_advised(page, "champion", 2)
    assert page.evaluate("window.meanwhile") > 0
    page.wait_for_selector(READY)
    if page.get_attribute("#table", "data-state") == "yours":
        page.click("#hint")
    leave(page)


def test_pages_of_one_origin_keep_their_files(browser: Any, tmp_path: Path) -> None:
    """A new version of a page deletes what its last one kept, and nothing of the pages beside and below it."""

    def publish(place: str, version: str) -> None:
        folder = tmp_path / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").write_text('<script>navigator.serviceWorker.register("sw.js")</script>')
        (folder / "kept").write_text(f"{place} {version}")
        begins = f'{BEGINS}{version}";\nconst FILES = ["./", "kept"];\n'
        (folder / MARK).write_text(begins + (JS / "page" / MARK).read_text())
        for file in folder.iterdir():  # of long ago: a browser's own cache takes such files for fresh
            os.utime(file, (1e9 + int(version), 1e9 + int(version)))

    def kept(page: Any) -> set[str]:
        page.wait_for_function("navigator.serviceWorker.controller !== null")
        return set(page.evaluate("caches.keys()"))

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever).start()
        context = browser.new_context()
        try:
            page = context.new_page()
            for place in ("cards", "cards/new", "cards2"):
                publish(place, "1")
                page.goto(f"http://127.0.0.1:{server.server_port}/{place}/")
                kept(page)
            assert kept(page) == {f"card_envs /{place}/ card_envs 1" for place in ("cards", "cards/new", "cards2")}
            publish("cards", "2")
            page.goto(f"http://127.0.0.1:{server.server_port}/cards/")
            page.evaluate("navigator.serviceWorker.ready.then((found) => found.update())")
            places = ("cards/new/ card_envs 1", "cards2/ card_envs 1", "cards/ card_envs 2")
            expected = {f"card_envs /{place}" for place in places}
            for _ in range(600):
                if kept(page) == expected:
                    break
                page.wait_for_timeout(50)
            assert kept(page) == expected
            context.set_offline(True)
            for place, version in (("cards", 2), ("cards/new", 1), ("cards2", 1)):
                page.goto(f"http://127.0.0.1:{server.server_port}/{place}/")
                assert page.evaluate("fetch('kept').then((reply) => reply.text())") == f"{place} {version}"
        finally:
            context.close()
            server.shutdown()


def test_a_full_cache_takes_no_file_away(browser: Any, tmp_path: Path) -> None:
    """What is fetched later, such as the files of strong players, is there even where it can't be kept."""
    (tmp_path / "index.html").write_text('<script>navigator.serviceWorker.register("sw.js")</script>')
    (tmp_path / "strong").write_text("weights")
    full = "Cache.prototype.put = async () => { throw new DOMException('full', 'QuotaExceededError'); };\n"
    begins = f'{full}{BEGINS}1";\nconst FILES = ["./"];\n'
    (tmp_path / MARK).write_text(begins + (JS / "page" / MARK).read_text())
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever).start()
        page = browser.new_page()
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_function("navigator.serviceWorker.controller !== null")
            assert page.evaluate("fetch('strong').then((reply) => reply.text())") == "weights"
        finally:
            page.close()
            server.shutdown()


@pytest.mark.parametrize("game", [game for game in PORTED if game.is_solitaire], ids=lambda game: game.name)
def test_a_hint_that_is_stopped_stops_no_review(page: Any, game: Game) -> None:
    """Where there is a choice at every move: with one legal move, nobody thinks."""
    sit_down(page, game, short_options(game))
    for _ in range(2):
        page.locator("#moves button:enabled").last.click()
        page.wait_for_selector(READY)
    page.select_option("#adviser", "champion")
    page.click("#step")
    page.click("#judge")
    page.wait_for_selector("#judge[aria-disabled=true]")
    page.click("#step")
    page.click("#hint")
    page.wait_for_timeout(100)  # the question is on its way
    page.evaluate("document.getElementById('stop').click()")  # it shows itself after a second
    page.wait_for_selector("#problem:has-text('Stopped.')")
    page.click("#step")
    page.wait_for_selector("#judged:has-text('Judged by champion')", state="attached", timeout=COMPILING)


def test_offline(page: Any) -> None:
    """After the first visit."""
    page.evaluate("navigator.serviceWorker.ready")
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    page.context.set_offline(True)
    page.reload()
    for game in PORTED:
        sit_down(page, game, {}, "small")
        play_as_advised(page, "small", 4)
        leave(page)
