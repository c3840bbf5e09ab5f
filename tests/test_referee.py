"""Every game's compiled rules against its referee, which was written from the rules page alone, move for move.

`tests/games/<game>/facts.py` has what a game needs here: options, packs and ways to play that reach every rule, and
what its referee knows of a seat's view. The long version, with how often each rule applied:
`pytest tests/test_referee.py -m slow -n auto -rP`.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from card_envs import GAMES
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.game import Game

FOLDER = Path(__file__).parent / "games"
REFEREED = [game for game in GAMES.values() if (FOLDER / game.name / "referee.py").exists()]
CHUNKS = 8  # of the long version, for pytest-xdist
LOOKS = 0.1  # how often a random seat's view is compared; when an episode ends all are


class Episode:
    """One episode at a table and before the referee, for as long as they agree."""

    def __init__(self, game: Game, player: str, number: int, rigged: bool = True) -> None:
        """All about the episode follows from its number: options, the style of a random player, the seed.

        `rigged`: some packs come from `facts.rig`; else all from the table.
        """
        self.game = game
        self.player = player
        self.rigged = rigged
        self.rng = Random(f"{game.name} {player} {number}")
        self.rules: Any = import_module(f"tests.games.{game.name}.referee")
        self.facts: Any = import_module(f"tests.games.{game.name}.facts")
        self.options: dict[str, Any] = self.facts.OPTIONS[number % len(self.facts.OPTIONS)]
        self.styles = list(self.facts.STYLES)
        self.style = self.styles[(number + number // len(self.facts.OPTIONS)) % len(self.styles)]
        self.referee = self.rules.Referee(self.options)
        self.table = Table(game, game.rules.new_state(game.options(**self.options)))
        self.seed = self.rng.getrandbits(64)
        self.table.seed(self.seed)
        self.num_deals = 0
        self.moves: list[tuple[int, str]] = []
        self.returns = [0.0] * game.rules.NUM_SEATS

    def deal(self) -> None:
        view, table = self.game.view, self.table
        assert table.needs_deal
        given = self.facts.rig(self.rng, self.referee, self.style) if self.rigged else {}
        if given:
            table.arrange(view.parse_deal(table.state, given)[0])
        else:
            table.deal()
        assert not table.needs_deal
        self.num_deals += 1
        dealt = view.deal_text([view.dealt_pack(table.state)])
        self.rules.deal_from(self.referee, dealt, given, table.seat)

    def compare(self) -> dict[str, int]:
        """Compare everything at this point; returns the legal moves with their actions."""
        table, referee = self.table, self.referee
        assert table.over == referee.over
        assert self.game.view.outcome(table.state) == (referee.reason, referee.scores)
        if referee.over:
            for seat in range(self.game.rules.NUM_SEATS):
                self.compare_view(seat)
        if referee.over or referee.needs_deal:
            assert table.needs_deal == (table.over or referee.needs_deal)
            assert not table.legal().any() and not referee.legal()
            return {}
        assert not table.needs_deal
        assert table.seat == referee.seat
        actions = np.flatnonzero(table.legal()).tolist()
        legal = {self.game.view.move_text(table.state, action): action for action in actions}
        moves = referee.legal()
        assert len(legal) == len(actions) and len(set(moves)) == len(moves)
        assert legal.keys() == set(moves)
        referee.legal = lambda: moves  # until the next move: working it out takes most of the time
        assert table.bot_move("trivial") == legal[self.rules.trivial(referee)]
        if self.rng.random() < LOOKS:
            self.compare_view(self.rng.randrange(self.game.rules.NUM_SEATS))
        return legal

    def compare_view(self, seat: int) -> None:
        seen = self.facts.seen(self.game.view.view(self.table.state, seat))
        expected = self.facts.expected_view(self.referee, seat)
        assert {key: seen[key] for key in expected} == expected

    def play(self, move: str, action: int) -> None:
        assert self.game.view.parse_move(self.table.state, move) == action
        self.moves.append((self.table.seat, move))
        self.table.play(action)
        del self.referee.legal
        self.referee.play(move)
        assert self.table.rewards == [float(np.float32(reward)) for reward in self.referee.rewards]
        self.returns = [total + reward for total, reward in zip(self.returns, self.referee.rewards)]

    def run(self) -> None:
        """Play to the end."""
        while not self.referee.over:
            if self.referee.needs_deal:
                if self.num_deals and self.style not in self.facts.STEADY and self.rng.random() < 0.1:
                    self.style = self.rng.choice(self.styles)
                self.deal()
            legal = self.compare()
            while legal:
                self.play(*self.choose(legal))
                legal = self.compare()

    def choose(self, legal: dict[str, int]) -> tuple[str, int]:
        """A move of the game's scripted player, or a random one in the style of the moment."""
        moves = list(legal)
        if self.player != "random":
            action = self.table.bot_move(self.player)
            move = next((move for move in moves if legal[move] == action), "")
            assert move, f"{self.player} chose {action}, which is illegal"
        elif len(moves) == 1:
            move = moves[0]
        else:
            weight = self.facts.STYLES[self.style]
            move = self.rng.choices(moves, [weight(self.referee, move) for move in moves])[0]
        return move, legal[move]


def play_episode(game: Game, player: str, number: int, rigged: bool = True) -> Episode:
    episode = Episode(game, player, number, rigged)
    try:
        episode.run()
    except Exception as error:
        error.add_note(f"{game.name}, {player} episode {number}, options {episode.options}, style {episode.style}")
        moves = " ".join(move for _, move in episode.moves[-60:])
        error.add_note(f"deal {episode.num_deals}; the last moves: {moves}")
        raise
    return episode


def report(title: str, fired: Counter[str]) -> None:
    print(f"\n{title}: how often each rule applied")
    for name in sorted(fired, key=lambda name: [part.zfill(3) for part in re.split(r"(\d+)", name)]):
        print(f"{fired[name]:10}  {name}")


@pytest.mark.parametrize("player", ["random", "greedy", "trivial"])
@pytest.mark.parametrize("game", REFEREED, ids=lambda game: game.name)
def test_rules_agree_with_the_referee(game: Game, player: str) -> None:
    facts = import_module(f"tests.games.{game.name}.facts")
    for number in range(facts.SHORT_EPISODES.get(player, 4)):
        play_episode(game, player, number)


@pytest.mark.parametrize("game", REFEREED, ids=lambda game: game.name)
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
@pytest.mark.parametrize("game", REFEREED, ids=lambda game: game.name)
def test_rules_agree_with_the_referee_at_length(game: Game, player: str, chunk: int) -> None:
    """Thousands of episodes; each chunk of the random ones must reach every rule and branch that the referee counts."""
    facts = import_module(f"tests.games.{game.name}.facts")
    fired: Counter[str] = Counter()
    length = facts.EPISODES[player] // CHUNKS
    first = 1_000_000 + chunk * length  # none of the short version
    for number in range(first, first + length):
        fired.update(play_episode(game, player, number).referee.fired)
    report(f"{game.name}, {player}, chunk {chunk}", fired)
    assert set(fired) <= facts.BRANCHES  # or the list in facts.py is out of date
    if player == "random":
        assert set(fired) >= facts.BRANCHES - facts.ELSEWHERE
