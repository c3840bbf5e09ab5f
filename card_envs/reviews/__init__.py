"""Reviews: what each decision of a game, or of a policy, cost in the eyes of a judge.

Example::

    review = card_envs.review(card_envs.GameRecord.load("game.json"), by="strong", seat=0)
    for move in review.costliest(3):
        print(move.number, move.played, move.best, move.cost, move.error)

The judge searches from what the seat to move could know, so a move that turned out badly by bad luck costs nothing.
"""

from card_envs.reviews._judge import MoveJudge
from card_envs.reviews._review import CostSummary, Review, ReviewedMove, review, review_policy

__all__ = ["CostSummary", "MoveJudge", "Review", "ReviewedMove", "review", "review_policy"]
