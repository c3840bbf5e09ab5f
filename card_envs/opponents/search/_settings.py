"""The settings of a search, checked and frozen."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from card_envs.engine.buffers import check_choice, check_game, check_int
from card_envs.game import GREEDY, Game
from card_envs.opponents.networks.ntuple_policy import MOST_POSITIONS, NTuplePolicy
from card_envs.opponents.policy import Policy, as_policy
from card_envs.opponents.search._budget import MAX_STEPS, UNLIMITED
from card_envs.system.processes import cores

Moves: TypeAlias = Literal["single", "turn"]

MAX_MACROS = 8192  # that a search finds at a decision
PARTS = ("prior", "rollout", "leaf")


@dataclass(frozen=True, eq=False, repr=False)
class SearchSettings:
    """The settings of a search; see `SearchPolicy`."""

    game: Game
    worlds: int = UNLIMITED
    _: KW_ONLY
    seconds: float | None = None
    moves: Moves = "single"
    prior: Policy | None = None
    rollout: Policy | None = None
    leaf: Policy | None = None
    leaf_after: int = 2
    leaf_playout: float = 0.0
    arms: int = 256
    threads: int | None = None
    refine_steps: int | None = None
    rollout_positions: int = 64

    def __post_init__(self) -> None:
        check_game(self.game)
        check_int(self.worlds, 1, UNLIMITED, "worlds")
        changes: dict[str, Any] = {"threads": cores() if self.threads is None else self.threads}
        check_int(changes["threads"], 1, None, "threads")
        if self.seconds is None and self.worlds == UNLIMITED:
            raise ValueError("search: expected a number of worlds, or seconds")
        if self.seconds is not None and not (type(self.seconds) in (int, float) and 0 < self.seconds < float("inf")):
            raise ValueError(f"seconds: expected a number above 0, got {self.seconds!r:.80}")
        check_choice(self.moves, get_args(Moves), "moves")
        check_int(self.leaf_after, 1, 1 << 20, "leaf_after")
        if type(self.leaf_playout) not in (int, float) or not 0 <= self.leaf_playout <= 1:
            raise ValueError(f"leaf_playout: expected a number from 0 to 1, got {self.leaf_playout!r:.80}")
        check_int(self.arms, 2, MAX_MACROS, "arms")
        if self.refine_steps is not None:
            check_int(self.refine_steps, 0, MAX_STEPS, "refine_steps")
        check_int(self.rollout_positions, 1, MOST_POSITIONS, "rollout_positions")
        changes |= {name: as_policy(part, name, self.game) for name, part in self.named_parts().items()}
        for name, value in changes.items():
            object.__setattr__(self, name, value)
        rollout = self.rollout
        if rollout is not None and not rollout.is_compiled and rollout.bot_name != GREEDY:
            raise ValueError(
                f"rollout: expected {GREEDY}, an n-tuple network, or one of moves with two hidden layers, that plays "
                f"the likeliest; got {rollout.name}"
            )
        if self.leaf is None:
            if (self.leaf_after, self.leaf_playout) != (2, 0.0):
                raise ValueError("leaf_after and leaf_playout: expected a leaf as well")
        elif not isinstance(self.leaf, NTuplePolicy):
            raise ValueError(f"leaf: expected an n-tuple network, got {self.leaf.name}")

    def named_parts(self) -> dict[str, Policy]:
        """Return the policies that are parts of the search, by name."""
        return {name: part for name in PARTS if (part := getattr(self, name)) is not None}

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the search was made with but for the game, by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)[1:]}
