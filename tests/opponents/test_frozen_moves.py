"""The moves of every shipped opponent, and of some searches, frozen: hashes of its moves at 300 positions of each game.

A change of how an opponent decides writes them again, `python -m tests.opponents.test_frozen_moves`, and says why. What
networks give is frozen by the golden rows in their folders.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents.policy import decisions_at
from card_envs.scaffold.high_card import GAME as TINY
from card_envs.testing.referee import facts_of
from tests.conftest import quick_opponents, some, usual_positions

FILE = Path(__file__).parents[1] / "frozen_moves.json"
NUMBER = 300


def frozen_names(game: Game) -> list[str]:
    priors = getattr(facts_of(game), "FROZEN_PRIORS", ())
    return [*opponent_names(game), *(f"search:64,prior={prior}" for prior in priors)]


def digest(game: Game, name: str) -> str:
    """Return a hash of an opponent's moves at the positions, decided as one batch."""
    decisions = decisions_at(game, some(usual_positions(game), NUMBER))
    moves = load_opponent(name, game).act(decisions, np.random.default_rng(1))
    return hashlib.sha256(moves.astype(np.int16).tobytes()).hexdigest()[:16]


def check(game: Game, names: list[str]) -> None:
    if not game.package.startswith("card_envs."):
        pytest.skip("a game whose opponents are not frozen")
    frozen = json.loads(FILE.read_text(encoding="utf-8"))
    if game.name not in frozen:
        pytest.skip(
            "once the game's players are settled, python -m tests.opponents.test_frozen_moves writes their moves"
        )
    stored = frozen[game.name]
    assert sorted(stored) == sorted(frozen_names(game))
    assert {name: digest(game, name) for name in names} == {name: stored[name] for name in names}


def test_quick_opponents_play_as_they_did(game: Game) -> None:
    check(game, frozen_names(game) if game == TINY else quick_opponents(game))


@pytest.mark.slow
def test_all_opponents_play_as_they_did(game: Game) -> None:
    check(game, frozen_names(game))


if __name__ == "__main__":
    found = {game.name: {name: digest(game, name) for name in frozen_names(game)} for game in GAMES.values()}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
