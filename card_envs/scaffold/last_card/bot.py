"""Last Card's scripted players, compiled."""

from card_envs.compiling import rule
from card_envs.engine.sets import bit, count, lowest
from card_envs.game import State
from card_envs.scaffold.last_card.rules import NUM_CARDS, Hand, choices, fitting


@rule
def trivial(state: State) -> int:
    """Return the first legal action: a card, or `draw`, or `pass`."""
    return lowest(choices(state))


@rule
def greedy(state: State) -> int:
    """Return the card that the fewest unseen cards fit, the first of those; without one, `draw` or `pass`."""
    actions = choices(state)
    best, most = lowest(actions), -1
    for card in range(NUM_CARDS):
        if actions & bit(card):
            seen = num_fitting(state.hands[int(state.seat)], card) + num_fitting(state.pile, card)
            if seen > most:
                best, most = card, seen
    return best


@rule
def num_fitting(hand: Hand, card: int) -> int:
    """Return how many cards of a hand fit a card."""
    return count(hand[0] & fitting(card)) + count(hand[1] & fitting(card))
