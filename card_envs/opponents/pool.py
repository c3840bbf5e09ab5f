"""An opponent pool for self-play: past selves of a learner, and rivals that do not change.

A learner that plays only its latest self may forget how to beat earlier ones. Against a pool it trains on a mixture of
them: fictitious self-play (Heinrich, Lanctot & Silver 2015, "Fictitious self-play in extensive-form games"). Vinyals et
al. 2019, "Grandmaster level in StarCraft II using multi-agent reinforcement learning", prefer opponents by result.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import check_choice, check_game, check_int, check_within
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents.names import load_policy
from card_envs.opponents.networks.torch_policy import TorchPolicy
from card_envs.opponents.policy import Opponent, Policy, PolicyLike
from card_envs.system.files import short_repr

DrawBy = Literal["uniform", "recent", "hard", "close"]
FIRST_RATING = 1000.0
ELO_STEP = 16.0  # most points that one episode moves a rating
MEMORY = 0.99  # weight of an episode in the win share, relative to the next one against the same member


@dataclass(frozen=True)
class MemberFigures:
    """Results of the learner against a member of a pool.

    Attributes:
        name: the member's name.
        episodes: number reported.
        win_share: the learner's, in (0, 1). Recent episodes count more (each 0.99 times the next one), and one draw is
            added, so that a member without results has 0.5.
        rating: the member's, on the scale of `OpponentPool.rating`.
        chance: probability of being drawn next.
    """

    name: str
    episodes: int
    win_share: float
    rating: float
    chance: float


@dataclass
class _Results:
    rating: float
    episodes: int = 0
    weight: float = 0.0  # of the episodes
    won: float = 0.0  # weight of those that the learner won

    @property
    def win_share(self) -> float:
        return (self.won + 0.5) / (self.weight + 1)


class OpponentPool:
    """Snapshots of a learner and rivals, one of which is drawn for each episode.

    `SingleSeatEnv` and `VectorSeatEnv` take a pool in place of an opponent, draw a member for each episode (the same
    one for all seats that the pool plays), and report the results. Elsewhere, call `draw` and `report` yourself. The
    same seeds and calls give the same draws. Environments in other processes would have copies of the pool; keep them
    in the process of the trainer. A pool can be pickled if its members can.

    Ratings are Elo's: both change after each episode, a difference of 400 points means odds of ten to one, and a
    snapshot begins with the learner's. Only differences count. They are rough, since every episode moves them by up to
    16 points, and gains over past selves need not hold against others: `card_envs.compare` measures strength.

    Attributes:
        game: the game.
        size: most snapshots that are kept.
        rating: the learner's, 1000 at first.
    """

    def __init__(
        self,
        game: str | Game,
        rivals: Sequence[str | PolicyLike] = (),
        size: int = 16,
        draw_by: DrawBy = "uniform",
        power: float = 2.0,
        seed: int = 0,
    ) -> None:
        """Create a pool without snapshots.

        Args:
            game: a game or its name.
            rivals: names for `load_opponent` or policies, in the pool for good; policies are not copied.
            size: most snapshots to keep; 1: the latest.
            draw_by: how members are drawn. "uniform": all alike. "recent": uniformly from the rivals and the newer half
                of the snapshots (Bansal et al. 2018, "Emergent complexity via multi-agent competition"). By the
                learner's win share p (prioritized fictitious self-play, Vinyals et al. 2019): "hard": in proportion to
                (1 - p) ** power; "close": in proportion to p * (1 - p).
            power: exponent of "hard".
            seed: seed of the draws.

        Raises:
            ValueError: an argument that does not fit, an unknown rival, or two of the same name.
        """
        self.game = get_game(game) if isinstance(game, str) else game
        check_game(self.game)
        self.size = check_int(size, 1, None, "size")
        check_choice(draw_by, get_args(DrawBy), "draw_by")
        power = check_within(power, 0, 100, "power")
        if isinstance(rivals, str) or not isinstance(rivals, Sequence):
            raise ValueError(f"rivals: expected a list of names and policies, got {short_repr(rivals)}")
        self.draw_by = draw_by
        self.power = power
        self.rating = FIRST_RATING
        self._rng = np.random.default_rng(check_int(seed, 0, None, "seed"))
        self._rivals: list[Opponent] = []
        self._snapshots: list[tuple[int, Opponent]] = []  # with their numbers, oldest first
        self._num_added = 0
        self._results: dict[str, _Results] = {}  # of former members as well: episodes may still be running
        for rival in rivals:
            self._rivals.append(self._member(load_policy(rival, "pool", self.game)))

    def __len__(self) -> int:
        return len(self._rivals) + len(self._snapshots)

    @property
    def members(self) -> list[Opponent]:
        """The rivals, then the snapshots, oldest first."""
        return [*self._rivals, *(snapshot for _, snapshot in self._snapshots)]

    def add(self, snapshot: Any, name: str | None = None) -> str:
        """Add a snapshot. If there are too many, drop one, so that those left are spread evenly over time.

        The first and the latest stay, and neighbours are at most twice as far from each other as if they were spread
        exactly: the numbers of those between, counted from 0, are multiples of a power of two that grows with the run.

        Args:
            snapshot: a policy or what `TorchPolicy` takes, such as a torch module or a model of sb3-contrib's
                MaskablePPO, which are copied (torch modules in `eval()` mode); or a name for `load_opponent`.
            name: the member's name; default: `snapshot-1`, `snapshot-2`, ...

        Returns:
            Its name.

        Raises:
            ValueError: it can't play the game, or there was a member of this name.
        """
        policy = load_policy(snapshot, "pool", self.game)
        if not isinstance(snapshot, str):
            policy = copy.deepcopy(policy)
        if isinstance(policy, TorchPolicy):
            policy.module.eval()
        member = self._member(policy, f"snapshot-{self._num_added + 1}" if name is None else name)
        self._num_added += 1
        self._snapshots.append((self._num_added, member))
        if len(self._snapshots) > self.size:
            # The first and the latest stay; dropped is the number that the smallest power of two divides.
            between = {i: self._snapshots[i][0] - 1 for i in range(1, len(self._snapshots) - 1)}
            del self._snapshots[min(between, key=lambda i: between[i] & -between[i]) if self.size > 1 else 0]
        return member.name

    def _member(self, policy: Policy, name: str | None = None) -> Opponent:
        """Return a policy as a member that begins with the learner's rating. Raises ValueError for a name in use."""
        name = policy.name if name is None else name
        if not isinstance(name, str) or not name:
            raise ValueError(f"name: expected a text, got {short_repr(name)}")
        if name in self._results:
            raise ValueError(f"pool: expected members with different names, got {short_repr(name)} again")
        self._results[name] = _Results(self.rating)
        return Opponent(name, self.game, policy)

    def chances(self) -> NDArray[np.float64]:
        """Return float64 [len(pool)], the probability of each of `members` of being drawn next."""
        weights = np.ones(len(self))
        shares = np.array([self._results[member.name].win_share for member in self.members])
        if self.draw_by == "recent":
            weights[len(self._rivals) :][: len(self._snapshots) // 2] = 0
        elif self.draw_by == "hard":
            losses = 1 - shares
            weights = (losses / losses.max(initial=0)) ** self.power
        elif self.draw_by == "close":
            weights = shares * (1 - shares)
        return weights / weights.sum()

    def draw(self) -> Opponent:
        """Return a member at random. Raises ValueError if there is none."""
        if not len(self):
            raise ValueError("pool: nobody to draw: add a snapshot or a rival first")
        return self.members[self._rng.choice(len(self), p=self.chances())]

    def report(self, opponent: Opponent | str, won: float) -> None:
        """Take the result of an episode into account.

        Args:
            opponent: a present or former member, or its name.
            won: 1 or True if the learner won, 0 or False if it lost, 0.5 for a draw.

        Raises:
            ValueError: it was never in the pool, or the result is not from 0 to 1.
        """
        name = opponent.name if isinstance(opponent, Opponent) else opponent
        results = self._results.get(name) if isinstance(name, str) else None
        if results is None:
            raise ValueError(f"report: expected a member of the pool, got {short_repr(name)}")
        won = check_within(float(won) if isinstance(won, (bool, np.bool_)) else won, 0, 1, "won")
        results.episodes += 1
        results.weight = MEMORY * results.weight + 1
        results.won = MEMORY * results.won + won
        expected = 1 / (1 + 10 ** ((results.rating - self.rating) / 400))
        self.rating += ELO_STEP * (won - expected)
        results.rating -= ELO_STEP * (won - expected)

    def figures(self) -> list[MemberFigures]:
        """Return the results against each of `members`."""
        members = []
        for member, chance in zip(self.members, self.chances().tolist()):
            results = self._results[member.name]
            figures = MemberFigures(member.name, results.episodes, results.win_share, results.rating, chance)
            members.append(figures)
        return members
