"""What the differential test needs to know of Russian Bank: options, packs, ways to play, public facts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from random import Random
from typing import Any

from tests.games.russian_bank.referee import FULL_PACK, Referee

OPTIONS: list[dict[str, Any]] = [
    {}, {"reward": "win"}, {"reserve": 12, "fill_houses": "reserve"}, {"start": "high_reserve"}, {"start": "random"},
    {"start": "player_0", "reward": "win"}, {"start": "player_1"}, {"match": True},
    {"reserve": 11, "fill_houses": "reserve", "match": True, "match_target": 60},
    {"reward": "win", "start": "random"}, {"reward": "penalty", "start": "random"}, {"start": "high_reserve"},
    {}, {"reward": "win"}, {"reward": "penalty"}, {"start": "high_reserve"}, {"start": "random"},
    {"start": "player_0"}, {"start": "player_1", "reward": "penalty"}, {"match": True, "reward": "win"},
    {}, {"reward": "win", "start": "random"}, {"reward": "penalty", "start": "random"},
    {"start": "high_reserve", "reward": "penalty"}, {}, {"reward": "win"}, {"reward": "penalty"}, {"start": "random"},
    {}, {"match": True, "reward": "penalty", "start": "high_reserve"}, {}, {},
]  # fmt: skip
RARE = {"match_target", "reserve", "fill_houses"}
EPISODES = {"random": 256, "greedy": 256}  # some are matches
SHORT_EPISODES = {"random": 10, "greedy": 7}
GOLDEN = {0: "c5364f134787a4f5"}
FROZEN_PRIORS = ("greedy", "ntuple")
COUNTING: set[str] = set()

STACKS = {f"RB-17 stack k={k} size={size}" for k in range(1, 8) for size in range(2, min(2**k, 12) + 1)}
BRANCHES = {
    *(f"RB-{number}" for number in range(1, 24)),
    "RB-4 low_reserve", "RB-4 high_reserve", "RB-4 random", "RB-4 player_0", "RB-4 player_1",
    "RB-4 reserve", "RB-4 house 1", "RB-4 house 2", "RB-4 house 3", "RB-4 house 4", "RB-4 coin", "RB-4 custom deal",
    "RB-5 by reserve", "RB-5 by hand", "RB-5 by foundation", "RB-5 by house", "RB-5 by load",
    "RB-6 reserve", "RB-6 hand", "RB-6 house",
    "RB-7 first pile", "RB-7 second pile",
    "RB-8 onto a card", "RB-8 empty house", "RB-8 higher empty house barred", "RB-8 lone card barred",
    "RB-8 only the reserve fills",
    "RB-9 reserve", "RB-9 waste",
    "RB-10a", "RB-10a before RB-10b", "RB-10b", "RB-10b choice",
    "RB-11 gate", "RB-11 empty house, empty reserve",
    "RB-12 another card played", "RB-12 another turned",
    "RB-13 gate ignored",
    "RB-15 barred by an empty house",
    "RB-16 new card", "RB-16 known card", "RB-16 emptied",
    "RB-17 barred by size", "RB-17 barred by a foundation card", "RB-17 empty houses closed", *STACKS,
    "RB-18 cap",
    "RB-19 back to zero", "RB-19 and RB-20",
    "RB-21 win", "RB-21 difference", "RB-21 equal",
    "RB-22 next game", "RB-22 enough points", "RB-22 50 games", "RB-22 draw",
}  # fmt: skip
# What takes hand-made positions: see test_rules.py. RB-23 is what the views show.
SMALL_STACKS = {f"RB-17 stack k={k} size={size}" for k, size in ((1, 2), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3))}
ELSEWHERE = {"RB-5 by reserve", "RB-15 barred by an empty house", "RB-19 and RB-20", "RB-23", *STACKS - SMALL_STACKS}


def _is_between_houses(move: str) -> bool:
    return move[0] == "H" and "-H" in move


def _settled(referee: Referee, move: str) -> float:
    return 0.03 if _is_between_houses(move) else 1


def _shuffling(referee: Referee, move: str) -> float:
    return 0.3 if _is_between_houses(move) else 3 if move[0] in "RD" else 1


def _loading(referee: Referee, move: str) -> float:
    return 20 if move[-3:] in ("-OR", "-OW") else _settled(referee, move)


def _playing(referee: Referee, move: str) -> float:
    return 0.01 if move == "discard" else 20 if move[0] in "RD" else _settled(referee, move)


def _hoarding(referee: Referee, move: str) -> float:
    return 1e6 if move in ("turn", "discard") else 1


def _dawdling(referee: Referee, move: str) -> float:
    return 1 if move in ("turn", "discard") else 0.5 if move in ("D-OR", "D-OW") else 1e-4


def _emptying(referee: Referee, move: str) -> float:
    """The hand first, the reserve last: RB-15 needs an empty hand and waste beside a reserve."""
    return 0.01 if move == "discard" else 50 if move[0] == "D" or move == "turn" else 0.02 if move[0] == "R" else 0.05


# How likely a random player is to choose a move, compared with others.
STYLES: dict[str, Callable[[Referee, str], float]] = {
    "settled": _settled,
    "shuffling": _shuffling,
    "loading": _loading,
    "playing": _playing,
    "hoarding": _hoarding,
    "dawdling": _dawdling,
    "emptying": _emptying,
    "hoarding still": _hoarding,  # eight styles: every 128 episodes each of them meets a match
}
STEADY = {"hoarding", "hoarding still"}  # styles that last a whole episode
IDLE = {"hoarding", "hoarding still", "dawdling"}  # they keep their reserves, at the bottom of which the aces lie


def rig(rng: Random, referee: Referee, style: str) -> dict[str, Any]:
    """A custom deal: aces buried, equal cards face up, or just shuffled; empty: the table deals itself."""
    kind = rng.random()
    if kind < 0.4 and style not in IDLE:
        return {}
    packs = [rng.sample(sorted(FULL_PACK), 52) for _ in (0, 1)]
    if kind < 0.6 or style in IDLE:  # at the bottom of the reserve, or of the hand
        for pack in packs:
            pack.sort(key=lambda card: card[0] != "A")
            if style not in IDLE and rng.random() < 0.5:
                pack.reverse()
    elif kind < 0.8:  # RB-4: ties, often up to the last house
        for place in range(12, 17)[: rng.choice([1, 2, 3, 4, 5, 5])]:
            rank = packs[0][place][0]
            other = next(i for i, card in enumerate(packs[1]) if card[0] == rank and not 12 <= i < place)
            packs[1][place], packs[1][other] = packs[1][other], packs[1][place]
    given: dict[str, Any] = {"packs": packs}
    if rng.random() < 0.2:
        given["starts"] = rng.randrange(2)
    return given


def expected_view(referee: Referee, seat: int) -> dict[str, Any]:
    """What a seat should see at a decision and at the end (RB-23), in the form of `seen`."""
    turned = referee.hands[referee.seat][0] if referee.turned else None
    heights = [len(pile) for pile in referee.foundations]
    return {
        "game": "russian_bank",
        "seat": seat,
        "game_number": referee.game_number - 1,
        "scores": referee.scores,
        "to_move": None if referee.over else referee.seat,
        "turned": turned,
        "players": [_player(referee, player, turned) for player in (0, 1)],
        "houses": referee.houses,
        "foundations": {suit: sorted(heights[2 * i : 2 * i + 2], reverse=True) for i, suit in enumerate("CDHS")},
        "house_moves": referee.house_moves,
        "idle_turns": referee.idle,
        "progress": referee._progress,
        "legal": sorted(referee.legal()) if seat == referee.seat else [],
    }


def _player(referee: Referee, player: int, turned: str | None) -> dict[str, Any]:
    cards, places = referee.hidden(player)
    face_down = sum(pile == "reserve" for pile, _, _ in places)
    hand = referee.hands[player]
    known = [turned] if turned and referee.seat == player else []
    return {
        "reserve": {
            "face_down": face_down,
            "cards": referee.reserves[player][face_down:],
            "lowest": referee._lowest[player],
        },
        "hand": {"size": len(hand), "cards": known if len(places) > face_down else hand},
        "waste": referee.wastes[player],
        "unseen": sorted(cards),
        "stale": referee.stale[player],
        "penalty_points": referee.penalty(player),
    }


def seen(view: dict[str, Any]) -> dict[str, Any]:
    """A view in a form that does not depend on choices of the view: sorted sets, and the known cards of each hand."""
    for number, player in enumerate(view["players"]):
        player["unseen"].sort()
        if player["hand"]["cards"] is None:
            turned = view["turned"] if view["to_move"] == number else None
            player["hand"]["cards"] = [turned] if turned else []
    view["legal"].sort()
    return view


def recount(view: dict[str, Any], reason: str, movers: list[int], seat: int) -> dict[tuple[str, str], tuple[int, int]]:
    """The figures of a finished game for a seat, as count and what it is divided by, from its last view."""
    player = view["players"][seat]
    reserve = player["reserve"]["face_down"] + len(player["reserve"]["cards"])
    ends = {"win": "end: win", "stalemate": "end: stalemate (RB-19)", "no_progress": "end: no progress (RB-20)"}
    found = {
        "own turns": [mover for mover, _ in groupby(movers)].count(seat),
        **{row: int(how == reason) for how, row in ends.items()},
        "own cards left": reserve + player["hand"]["size"] + len(player["waste"]),
        "of these in the reserve": reserve,
    }
    return {(row, "a game"): (count, 1) for row, count in found.items()}
