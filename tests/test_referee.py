"""Every game's compiled rules against its referee, which was written from the rules page alone, move for move.

What a game brings for this is told in `card_envs/testing/referee.py`. The long version, with how often each rule
applied: `pytest tests/test_referee.py -m slow -n auto -rP`.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.testing.referee import facts_of, play_episode

CHUNKS = 8  # of the long version, for pytest-xdist


def report(title: str, fired: Counter[str]) -> None:
    print(f"\n{title}: how often each rule applied")
    for name in sorted(fired, key=lambda name: [part.zfill(3) for part in re.split(r"(\d+)", name)]):
        print(f"{fired[name]:10}  {name}")


@pytest.mark.parametrize("player", ["random", "greedy", "trivial"])
def test_rules_agree_with_the_referee(game: Game, player: str) -> None:
    facts = facts_of(game)
    for number in range(facts.SHORT_EPISODES.get(player, 4)):
        play_episode(game, player, number)


def test_environment_agrees_with_the_referee(game: Game) -> None:
    """The same through the public environment, which deals by itself: seats, legal moves, rewards, outcome."""
    for number in range(8):
        played = play_episode(game, "random", number, rigged=False)
        env = CardEnv(game, illegal_move="raise", **played.options)
        env.reset(seed=played.seed)
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
    """Thousands of episodes; each chunk of the random ones must reach every rule and branch that the referee counts."""
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
