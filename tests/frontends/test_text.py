"""One seat in words: what is shown, which answers are taken, and that nothing hidden is."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from card_envs.cards import squeezed
from card_envs.frontends.text import TextEnv
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import positions, run_python, some

ROOT = Path(__file__).parents[2]
SHORT_RULES = 300  # words


def test_what_remains_of_a_spelling() -> None:
    for text, expected in (
        ("TD", "td"), ("10 of diamonds", "td"), ("Ten of Diamonds", "td"), ("T♦", "td"), ("10♢", "td"), ("10d.", "td"),
        ("I play the queen of hearts!", "qh"), ("Big Blooper", "bb"), ("little joker", "lb"), ("10", "10"),
        ("I bid three", "3"), ("BOARD", "board"), ("R to F", "rf"), ("h1 → h2", "h1h2"), ("T10-F", "t10f"),
        ("T10 to T3", "t10t3"), ("", ""), ("9\u0005", "9\u0005"), ("9\U00045eef", "9\U00045eef"),
    ):  # fmt: skip
        assert squeezed(text) == expected


def test_moves_are_taken_in_any_spelling(game: Game) -> None:
    shorts = [squeezed(text) for text in game.move_texts]
    assert len(set(shorts)) == len(shorts), "two moves differ in signs alone"
    for state in some(positions(game), 50):
        for text in {game.view.move_text(state, action) for action in range(game.rules.NUM_ACTIONS)}:
            action = game.view.parse_move(state, text)
            for spelling in (text.lower(), text.upper(), f" {text} ", text.replace("-", " to "), f"{text}."):
                assert game.parse_move(state, spelling) == action
    with pytest.raises(ValueError, match=re.escape("'nothing at all' is not")):
        game.parse_move(state, "nothing at all")


@pytest.mark.parametrize("game", list(GAMES.values()), ids=str)
def test_every_game_has_rules_in_short(game: Game) -> None:
    if not game.rules_page.exists():
        pytest.skip("RULES.md is missing")
    assert 30 < len(game.short_rules.split()) <= SHORT_RULES
    assert game.view.LEGEND


@pytest.mark.mechanics
def test_a_whole_episode_by_text(game: Game) -> None:
    env = TextEnv(game, "random", seat=game.rules.NUM_SEATS - 1)
    text = env.reset(seed=3)
    assert text.startswith(f"You play {game.title}.") and game.short_rules in text
    rng = np.random.default_rng(0)
    total, done = 0.0, env.over
    while not done:
        legal = env.legal_moves()
        assert f"Your legal moves: {', '.join(legal)}" in text
        text, paid, done = env.step(f"Let me think.\nMove: {legal[rng.integers(len(legal))].lower()}")
        total += paid
    assert "Game over" in text and env.invalid == 0 and env.legal_moves() == []
    assert env.outcome()["over"]
    with pytest.raises(RuntimeError, match="the episode is over"):
        env.step("anything")
    assert env.reset(seed=3) != text and not env.over


@pytest.mark.mechanics
def test_rewards_are_those_of_the_environment(game: Game) -> None:
    """Their sum is the seat's margin at the end; in a solitaire, whether it was won."""
    env = TextEnv(game, "trivial")
    env.reset(seed=5)
    total, done = 0.0, env.over
    while not done:
        _, paid, done = env.step(env.legal_moves()[0])
        total += paid
    scores, reason = env.outcome()["scores"], env.outcome()["reason"]
    others = [score for score, side in zip(scores, game.sides) if side != game.sides[0]]
    assert total == pytest.approx(scores[0] - others[0] if others else float(reason == "won"))


def test_answers_that_are_no_moves_are_explained_and_counted() -> None:
    env = TextEnv(HIGH_CARD, "greedy")
    before = env.reset(seed=1)
    legal = env.legal_moves()
    both = f"either {legal[0]} or {legal[1]}"
    for number, answer in enumerate(("", "a trump", both), 1):
        text, paid, done = env.step(answer)
        assert (
            f"'{answer}' gives no move; legal are" in text
            and text.startswith("That is no legal move")
            and not done
            and paid == 0
        )
        assert env.invalid == number and env.legal_moves() == legal
        assert text.endswith(before[before.index("Your legal moves") :])
    for answer in (f"**{legal[1]}**", f"I take the second.\nMove: {legal[1]}", f"<move>{legal[1]}</move>"):
        env.reset(seed=1)
        env.step(answer)
        assert legal[1] not in env.legal_moves() and legal[0] in env.legal_moves() and env.invalid == 0


def test_the_text_says_nothing_hidden(game: Game) -> None:
    """The same text where only hidden cards differ."""
    env = TextEnv(game, "greedy")
    env.reset(seed=2)
    before = env.prompt()
    for key in (1, 2, 3):
        env._begun.episode.table.determinize(env.seat, key)
        assert env.prompt() == before


def test_seats_and_opponents_are_checked() -> None:
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        TextEnv(HIGH_CARD).legal_moves()
    with pytest.raises(ValueError, match="seat: expected"):
        TextEnv(HIGH_CARD, seat=5)
    with pytest.raises(ValueError, match="option trump"):
        TextEnv(HIGH_CARD, trump="C")
    seats = set()
    env = TextEnv(HIGH_CARD, seat="random")
    for seed in range(20):
        env.reset(seed=seed)
        seats.add(env.seat)
    assert seats == {0, 1}


class Chat(BaseHTTPRequestHandler):
    """An endpoint that answers with the last legal move shown, sometimes in other words, once with nonsense."""

    asked: ClassVar[list[list[dict[str, str]]]] = []

    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        self.asked.append(messages)
        legal = re.findall(r"Your legal moves: (.*)", messages[-1]["content"])[-1].split(", ")
        answer = "I am not sure." if len(self.asked) == 2 else f"Let me see.\nMove: {legal[-1].lower()}"
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.processes
def test_a_chat_model_plays() -> None:
    """The example, against an endpoint of this process."""
    game = next(game for game in GAMES.values() if game != HIGH_CARD)
    with ThreadingHTTPServer(("127.0.0.1", 0), Chat) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        words = ["examples/chat_model.py", "--url", url, "--game", game.name, "--seed", "1"]
        done = run_python(*words)
        server.shutdown()
    assert "Game over" in done.stdout and done.stdout.rstrip().endswith("answers that were no legal move: 1")
    assert all(messages[0] == Chat.asked[0][0] and len(messages) <= 7 for messages in Chat.asked)
