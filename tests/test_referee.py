"""Every game's compiled rules against its referee, which was written from the rules page alone, move for move.

`tests/games/<game>/facts.py` has what a game needs here: options, packs and ways to play that reach every rule, and
what its referee knows of a seat's view. The long version: `pytest -m slow -s -n auto tests/test_referee.py`.
"""

from __future__ import annotations

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

    def __init__(self, game: Game, options: dict[str, Any], rng: Random) -> None:
        self.game = game
        self.rng = rng
        self.trivial = import_module(f"tests.games.{game.name}.referee").trivial
        self.deal_from = import_module(f"tests.games.{game.name}.referee").deal_from
        self.facts: Any = import_module(f"tests.games.{game.name}.facts")
        self.referee: Any = import_module(f"tests.games.{game.name}.referee").Referee(options)
        self.table = Table(game, game.rules.new_state(game.options(**options)))
        self.table.seed(rng.getrandbits(64))
        self.packs: list[Any] = []
        self.moves: list[str] = []

    def deal(self) -> None:
        view, table = self.game.view, self.table
        assert table.needs_deal
        given = self.facts.rig(self.rng, self.referee)
        if given:
            table.arrange(view.parse_deal(table.state, given)[0])
        else:
            table.deal()
        assert not table.needs_deal
        self.packs.append(view.dealt_pack(table.state))
        self.deal_from(self.referee, view.deal_text(self.packs[-1:]), given, table.seat)

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
        assert table.bot_move("trivial") == legal[self.trivial(referee)]
        if self.rng.random() < LOOKS:
            self.compare_view(self.rng.randrange(self.game.rules.NUM_SEATS))
        return legal

    def compare_view(self, seat: int) -> None:
        seen = self.game.view.view(self.table.state, seat)
        expected = self.facts.expected_view(self.referee, seat)
        assert {key: seen[key] for key in expected} == expected
        on_turn = not self.referee.over and seat == self.referee.seat
        assert sorted(seen["legal"]) == (sorted(self.referee.legal()) if on_turn else [])

    def play(self, move: str, action: int) -> None:
        assert self.game.view.parse_move(self.table.state, move) == action
        self.moves.append(move)
        self.table.play(action)
        self.referee.play(move)
        assert self.table.rewards == [float(np.float32(reward)) for reward in self.referee.rewards]

    def run(self, player: str) -> None:
        """Play to the end: with a scripted player of the game, or at random in changing styles."""
        style = self.rng.choice(list(self.facts.STYLES))
        while not self.referee.over:
            if self.referee.needs_deal:
                self.deal()
                if self.rng.random() < 0.1:
                    style = self.rng.choice(list(self.facts.STYLES))
            legal = self.compare()
            while legal:
                self.play(*self.choose(player, style, legal))
                legal = self.compare()

    def choose(self, player: str, style: str, legal: dict[str, int]) -> tuple[str, int]:
        moves = list(legal)
        if player != "random":
            action = self.table.bot_move(player)
            move = next((move for move in moves if legal[move] == action), "")
            assert move, f"{player} chose {action}, which is illegal"
        elif len(moves) == 1:
            move = moves[0]
        else:
            weight = self.facts.STYLES[style]
            move = self.rng.choices(moves, [weight(self.referee, move) for move in moves])[0]
        return move, legal[move]


def play_episode(game: Game, player: str, number: int) -> Episode:
    """The episode of that number; its seed and options follow from the arguments."""
    options: list[dict[str, Any]] = import_module(f"tests.games.{game.name}.facts").OPTIONS
    episode = Episode(game, options[number % len(options)], Random(f"{game.name} {player} {number}"))
    try:
        episode.run(player)
    except AssertionError as error:
        error.add_note(f"{game.name}, {player} episode {number}, {episode.game.view.options_of(episode.table.state)}")
        error.add_note(f"deal {len(episode.packs)}; the last moves: {' '.join(episode.moves[-60:])}")
        raise
    return episode


def report(title: str, fired: Counter[str]) -> None:
    print(f"\n{title}: how often each rule applied")
    for name in sorted(fired, key=lambda name: (name.split("-")[0], [int(n) for n in name.split()[0].split("-")[1:]])):
        print(f"{fired[name]:10}  {name}")


@pytest.mark.parametrize("player", ["random", "greedy", "trivial"])
@pytest.mark.parametrize("game", REFEREED, ids=lambda game: game.name)
def test_rules_agree_with_the_referee(game: Game, player: str) -> None:
    facts = import_module(f"tests.games.{game.name}.facts")
    for number in range(facts.SHORT_EPISODES.get(player, 4)):
        play_episode(game, player, number)


@pytest.mark.parametrize("game", REFEREED, ids=lambda game: game.name)
def test_environment_agrees_with_the_referee(game: Game) -> None:
    """The same through the public environment: seats, legal moves, rewards, outcome."""
    facts = import_module(f"tests.games.{game.name}.facts")
    for number in range(min(len(facts.OPTIONS), facts.SHORT_EPISODES["random"])):
        options = facts.OPTIONS[number % len(facts.OPTIONS)]
        played = play_episode(game, "random", number)
        env = CardEnv(game, illegal_move="raise", **options)
        env.reset(seed=number, options={"deal": game.view.deal_text(played.packs)})
        totals = [0.0] * game.rules.NUM_SEATS
        for move in played.moves:
            assert move in env.legal_moves()
            env.step(env.parse_move(move))
            for seat, agent in enumerate(env.possible_agents):
                totals[seat] += env.rewards[agent]
        assert env.outcome() == {"over": True, "reason": played.referee.reason, "scores": played.referee.scores}
        if options.get("reward") == "points":
            assert totals == pytest.approx([score - sum(played.referee.scores) / 2 for score in played.referee.scores])


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("player", ["random", "greedy"])
@pytest.mark.parametrize("game", REFEREED, ids=lambda game: game.name)
def test_rules_agree_with_the_referee_at_length(game: Game, player: str, chunk: int) -> None:
    """Thousands of episodes; each chunk of the random ones must reach every rule and branch that the referee counts."""
    facts = import_module(f"tests.games.{game.name}.facts")
    fired: Counter[str] = Counter()
    first = 1_000_000  # not the episodes of the short version
    for number in range(first + chunk, first + facts.EPISODES[player], CHUNKS):
        fired.update(play_episode(game, player, number).referee.fired)
    report(f"{game.name}, {player}, chunk {chunk}", fired)
    assert set(fired) <= facts.BRANCHES  # or the list in facts.py is out of date
    if player == "random":
        assert facts.BRANCHES - facts.ELSEWHERE <= set(fired)
