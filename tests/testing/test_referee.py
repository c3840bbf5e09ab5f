"""Every game's compiled rules against its referee, which was written from the rules page alone, move for move.

What a game brings for this is told in `card_envs/testing/referee.py`. The long version, with how often each rule
applied: `pytest tests/testing/test_referee.py -m slow -n auto -rP`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter

import pytest

from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as TEMPLATE
from card_envs.testing.referee import facts_of, play_episode, referee_of
from tests.conftest import new_env

CHUNKS = 2  # of the long version, for pytest-xdist


def report(title: str, fired: Counter[str]) -> None:
    print(f"\n{title}: how often each rule applied")
    for name in sorted(fired, key=lambda name: [part.zfill(3) for part in re.split(r"(\d+)", name)]):
        print(f"{fired[name]:10}  {name}")


def code_of(game: Game) -> str:
    """The code of a game's referee, without docstrings, comments and the letters of rule numbers."""
    source = inspect.getsource(sys.modules[referee_of(game).Referee.__module__])
    tree = ast.parse(re.sub(r"\b[A-Z]{2}-(?=\d)", "", source))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def test_the_referee_is_the_games_own(game: Game) -> None:
    if TEMPLATE.name in game.name:
        pytest.skip("the template or a mutant of it, whose referee others replace")
    how = "write it from RULES.md alone, as card_envs/testing/referee.py says"
    assert code_of(game) != code_of(TEMPLATE), f"this is still the template's referee: {how}"


@pytest.mark.parametrize("player", ["random", "greedy", "trivial"])
def test_rules_agree_with_the_referee(game: Game, player: str) -> None:
    facts = facts_of(game)
    for number in range(facts.SHORT_EPISODES.get(player, 4)):
        play_episode(game, player, number)


def test_environment_agrees_with_the_referee(game: Game) -> None:
    """The same through the public environment, which deals by itself: seats, legal moves, rewards, outcome."""
    for number in range(4):
        played = play_episode(game, "random", number, rigged=False)
        env = new_env(game, played.seed, illegal_move="raise", **played.options)
        returns = dict.fromkeys(env.possible_agents, 0.0)
        for seat, move in played.moves:
            assert env.agent_selection == env.possible_agents[seat]
            assert move in env.legal_moves()
            env.step(env.parse_move(move))
            for agent, reward in env.rewards.items():
                returns[agent] += reward
        assert list(returns.values()) == pytest.approx(played.returns)
        assert env.outcome() == {"over": True, "reason": played.referee.reason, "scores": played.referee.scores}
        assert env.legal_moves() == []


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("player", ["random", "greedy"])
def test_rules_agree_with_the_referee_at_length(game: Game, player: str, chunk: int) -> None:
    """Hundreds of episodes; each chunk of the random ones must reach every rule and branch that the referee counts."""
    facts = facts_of(game)
    fired: Counter[str] = Counter()
    length = facts.EPISODES[player] // CHUNKS
    first = 1_000_000 + chunk * length  # none of the short version
    for number in range(first, first + length):
        fired.update(play_episode(game, player, number).referee.fired)
    report(f"{game.name}, {player}, chunk {chunk}", fired)
    assert set(fired) <= facts.BRANCHES  # or the list in facts.py is out of date
    if player == "random":
        assert set(fired) >= facts.BRANCHES - facts.ELSEWHERE
