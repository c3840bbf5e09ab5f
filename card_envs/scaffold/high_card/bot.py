"""High Card's scripted players, compiled."""

from card_envs.compiling import rule
from card_envs.engine.sets import above_card, highest, lowest
from card_envs.game import State


@rule
def trivial(state: State) -> int:
    """Return the highest card."""
    return highest(state.hands[int(state.seat)])


@rule
def greedy(state: State) -> int:
    """Return the highest card when leading; else the lowest that wins, or the lowest."""
    hand = state.hands[int(state.seat)]
    if state.num_played & 1 == 0:
        return highest(hand)
    winners = hand & above_card(state.history[int(state.num_played) - 1])
    return lowest(winners if winners else hand)
