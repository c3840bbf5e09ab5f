"""Mirrored pairs: the unit of every comparison.

A pair is one episode played twice on the same deals with the policies' sides swapped. What the cards give to one side
they also give to the other, so the difference is due to play. In a solitaire, all policies play the same deals. Letters
for shapes: `N` pairs (in a solitaire: deals), `P` policies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.contests import MODES, Contest, join, play_contest
from card_envs.compare.estimates import Estimate, as_json, margin, share, span
from card_envs.engine.buffers import check_game, seed_number
from card_envs.game import Game
from card_envs.opponents.about import warn_if_unlike_training
from card_envs.opponents.names import load_policy


@dataclass(frozen=True, repr=False)
class PairResult:
    """Results of the first policy against the second.

    Attributes:
        margins: [N] the first's score minus the second's, averaged over a pair's two episodes.
        win_shares: [N] share of the pair's episodes that the first won; a draw counts one half.
        deals_per_episode: scored deals.
        seconds_per_move: processor time per decision of (first, second).
        decisions: of (first, second).
        counts_wins: whether margins count episodes won, not points: in a solitaire, and under the option
            `reward="win"`.
        sampled: whether (first, second) drew its moves from the probabilities of a network; False: it played the
            likeliest; None: it has no such choice.
    """

    margins: NDArray[np.float64]
    win_shares: NDArray[np.float64]
    deals_per_episode: int
    seconds_per_move: tuple[float, float]
    decisions: tuple[int, int]
    counts_wins: bool = False
    sampled: tuple[bool | None, bool | None] = (None, None)

    @property
    def margin_per_episode(self) -> Estimate:
        """Mean margin of the first policy per episode, in points or wins."""
        return margin(self.margins, self.win_shares, self.counts_wins)

    @property
    def margin_per_deal(self) -> Estimate:
        """Mean margin of the first policy per scored deal, in points or wins."""
        return self.margin_per_episode.scaled(1 / self.deals_per_episode)

    @property
    def win_share(self) -> Estimate:
        """Share of the episodes that the first policy won."""
        return share(self.win_shares)

    def in_words(self) -> str:
        """Return wins and points as text, and how the first policy chose its moves if it is a network."""
        won, more = self.win_share, self.margin_per_episode
        unit = "wins more" if self.counts_wins else "points"
        figures = f"{won.mean:.3f} ({span(won, '.3f')}) of the wins, {more.mean:+z.3g} ({span(more, '+z.3g')}) {unit}"
        return figures if self.sampled[0] is None else f"{figures}, {MODES[self.sampled[0]]}"

    def __repr__(self) -> str:
        return f"PairResult({len(self.margins):,} pairs: {self.in_words()})"

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON; infinite bounds become None."""
        return {
            "pairs": len(self.margins),
            "deals_per_episode": self.deals_per_episode,
            "win_share": as_json(self.win_share),
            "margin_per_episode": as_json(self.margin_per_episode),
            "margin_per_deal": as_json(self.margin_per_deal),
            "microseconds_per_move": [round(1e6 * seconds, 3) for seconds in self.seconds_per_move],
            "decisions": list(self.decisions),
            **({} if self.sampled == (None, None) else {"sampled": list(self.sampled)}),
        }


def play_pairs(
    game: Game,
    first: Any,
    second: Any,
    pairs: int,
    seed: int = 0,
    *,
    options: dict[str, Any] | None = None,
    sampled: bool = True,
    progress: Callable[[int], object] | None = None,
) -> PairResult:
    """Play mirrored pairs of episodes. Results are reproducible for a seed.

    Args:
        game: the game.
        first: the policy whose margin is reported: a name for `load_opponent`; a `Policy` or another object with
            `act`; or what `TorchPolicy` takes, such as a torch module or a model of stable-baselines3, which should be
            in `eval()` mode if that makes a difference.
        second: its opponent, likewise.
        pairs: N, the number of deals (each is played twice).
        seed: of deals and policies.
        options: of the game; rewards are in points by default.
        sampled: networks draw their moves from their probabilities, unless they were made to play the likeliest, as
            one of action values is; False: all networks play their likeliest. Other players are not affected.
        progress: called with the number of pairs finished since the last call.

    Raises:
        ValueError: an invalid argument, or a policy fails.

    Warns:
        UserWarning: a policy was trained under other options.
    """
    check_game(game)
    policies = load_policy(first, "first", game, sampled), load_policy(second, "second", game, sampled)
    for policy in policies:
        warn_if_unlike_training(policy, game, options or {})
    # What was given by name is loaded again for each portion: a class of the user's may keep state.
    players = tuple(player if isinstance(player, str) else policy for player, policy in zip((first, second), policies))
    contest = Contest(game, players, seed_number(seed), tuple((options or {}).items()), sampled)
    parts = []
    for part in play_contest(contest, pairs):
        parts.append(part)
        if progress is not None:
            progress(part.num_deals)
    part = join(parts)
    margins, wins = part.margins[0], part.wins[0]
    counts_wins = game.is_solitaire or contest.counts_wins
    if game.is_solitaire:
        margins = part.wins[0] - part.wins[1]
        wins = (margins + 1) / 2
    seconds = (part.seconds_per_move[0], part.seconds_per_move[1])
    decisions = (int(part.decisions[0]), int(part.decisions[1]))
    modes = (policies[0].sampled, policies[1].sampled)
    return PairResult(margins, wins, contest.deals_per_episode, seconds, decisions, counts_wins, modes)
