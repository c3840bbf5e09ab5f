"""The winner of a trick, as the terminal and texts say it."""

from __future__ import annotations

from card_envs.games.back_alley import GAME, view
from card_envs.terminal._narration import step
from tests.games.back_alley.test_rules import dealt

NAMES = ("you", "left", "partner", "right")


def test_the_end_of_a_trick_says_who_takes_it() -> None:
    env = dealt({0: "AC KD", 1: "2S 3C", 2: "4C 5C", 3: "6C 2H"}, turned="9S")
    for bid in ("pass", "1", "pass", "pass"):  # from left of the dealer: seats 1, 2, 3, 0
        assert view.event_text(env.states[0], env.parse_move(bid), NAMES) == ""
        env.step(env.parse_move(bid))
    said = []
    while not env.outcome()["over"]:
        move = {"2": "4C", "3": "6C", "0": "AC", "1": "3C"}.get(env.agent_selection[-1], "")
        action = env.parse_move(move if move in env.legal_moves() else env.legal_moves()[0])
        said += [event.what for event in step(env, action, NAMES) if not event.who]
    assert said[0] == "The trick goes to you." and said[1].startswith("The trick goes to left")  # ruffed with 2S
    assert GAME.view.event_text is not None and len(said) == 2
