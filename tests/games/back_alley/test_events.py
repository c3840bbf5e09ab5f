"""The winner of a trick, as the terminal and texts say it."""

from __future__ import annotations

from card_envs.games.back_alley import GAME, view
from card_envs.play.episode import episode_of
from card_envs.play.sitting import Sitting
from tests.games.back_alley.test_rules import dealt

NAMES = ("you", "left", "partner", "right")


def test_the_end_of_a_trick_says_who_takes_it() -> None:
    env = dealt({0: "AC KD", 1: "2S 3C", 2: "4C 5C", 3: "6C 2H"}, turned="9S")
    sitting = Sitting(episode_of(env.record(), GAME), names=NAMES)
    for bid in ("pass", "1", "pass", "pass"):  # from left of the dealer: seats 1, 2, 3, 0
        assert view.event_text(sitting.episode.table.state, sitting.action(bid), NAMES) == ""
        sitting.play(sitting.action(bid))
    while sitting.seat is not None:
        move = {2: "4C", 3: "6C", 0: "AC", 1: "3C"}[sitting.seat]
        legal = sitting.legal_moves()
        sitting.play(sitting.action(move if move in legal else legal[0]))
    said = [event.what for event in sitting.events if not event.who]
    assert said[0] == "The trick goes to you." and said[1].startswith("The trick goes to left")  # ruffed with 2S
    assert GAME.view.event_text is not None and len(said) == 2
