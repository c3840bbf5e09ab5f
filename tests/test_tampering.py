"""What is handed out decides nothing: masks may be written into, and illegal actions stay illegal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare.pairs import play_pairs
from card_envs.compiling import specialize
from card_envs.engine._legality import IllegalMove, note_legal, unpacked, words
from card_envs.engine.batch import BatchEnv
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Decisions
from tests.conftest import mixed_batch, short_options, walk

OTHERS = [game for game in GAMES.values() if game.rules.NUM_SEATS > 1]


class Forger:
    """Allows itself everything, and plays what was forbidden."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        forbidden = decisions.mask.argmin(axis=1)
        decisions.mask[:] = 1
        return forbidden

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        return np.full(decisions.mask.shape, 1 / decisions.mask.shape[1], np.float32)


class Answers(Forger):
    """Gives an answer of any kind."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        answer: NDArray[np.int64] = self.answer(decisions)
        return answer


@pytest.mark.parametrize("size", [1, 12, 63, 64, 65, 103, 128, 130, 200])
def test_packed_masks(size: int) -> None:
    rng = np.random.default_rng(size)
    masks = (rng.random((50, size)) < 0.4).astype(np.int8)
    for mask in masks:
        legal = np.zeros(words(size), np.uint64)
        specialize(note_legal)(mask, legal)
        assert np.array_equal(unpacked(legal, size), mask)


def test_batches_do_not_believe_their_masks(game: Game) -> None:
    env = mixed_batch(game, 64, seed=1)
    for number, actions in enumerate(walk(env, 200)):
        if number % 20:
            continue
        true = env.mask.copy()
        env.mask[:] = 1
        before = env.states.tobytes()
        every = np.arange(game.rules.NUM_ACTIONS)
        for action in every:
            assert np.array_equal(env.are_legal(np.full(64, action)), true[:, action] == 1)
        table = int(true.min(axis=1).argmin())
        wrong = actions.copy()
        wrong[table] = true[table].argmin()
        with pytest.raises(IllegalMove, match=f"action {wrong[table]} of seat . at table {table} is illegal; legal: "):
            env.step(wrong)
        assert env.states.tobytes() == before
        assert not env.are_legal(np.full(64, -1)).any() and not env.are_legal(np.full(64, len(every))).any()


def test_threads_do_not_believe_the_masks_either(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("card_envs.engine.batch.MIN_TABLES_A_THREAD", 1)
    env = BatchEnv(game, 8, num_threads=2)
    wrong = env.mask.argmax(axis=1)
    wrong[6] = env.mask[6].argmin()
    env.mask[:] = 1
    before = env.states.tobytes()
    with pytest.raises(IllegalMove, match="at table 6"):
        env.step(wrong)
    assert env.states.tobytes() == before


def test_environments_do_not_believe_their_masks(game: Game) -> None:
    env = CardEnv(game, illegal_move="raise")
    env.reset(seed=1)
    agent = env.agent_selection
    forbidden = int(env.observe(agent)["action_mask"].argmin())
    for mask in (env.observe(agent)["action_mask"], env.infos[agent]["action_mask"], env.last()[0]["action_mask"]):
        mask[:] = 1
        with pytest.raises(IllegalMove):
            env.step(forbidden)
    vector = VectorSeatEnv(game.name, 3, opponents="greedy", illegal_move="raise")
    _, info = vector.reset(seed=1)
    forbidden = info["action_mask"].argmin(axis=1)
    info["action_mask"][:] = 1
    vector._tables.mask[:] = 1
    with pytest.raises(IllegalMove):
        vector.step(forbidden)


def play_alone(env: SingleSeatEnv) -> None:
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, over, _, info = env.step(int(info["action_mask"].argmax()))


@pytest.mark.parametrize("game", OTHERS, ids=lambda game: game.name)
def test_opponents_that_play_illegally_are_errors(game: Game) -> None:
    """In every environment; a learner's episode does not end by an opponent's fault."""
    with pytest.raises(IllegalMove, match="policy Forger"):
        play_alone(SingleSeatEnv(game.name, opponents=Forger(game), seat=0))
    many = VectorSeatEnv(game.name, 64, opponents=Forger(game), seat="random")
    with pytest.raises(IllegalMove, match="policy Forger"):
        many.reset(seed=0)


def test_comparisons_name_policy_position_and_move(game: Game) -> None:
    with pytest.raises(IllegalMove) as caught:
        play_pairs(game, Forger(game), load_opponent("random", game), 4, options=short_options(game))
    message = str(caught.value)
    assert message.startswith(f"{game.name}: action ") and "policy Forger at {" in message and '"seat"' in message
    assert "is illegal; legal: " in message


ANSWERS: dict[str, Callable[[Decisions], Any]] = {
    "too few": lambda decisions: decisions.mask.argmax(axis=1)[:-1],
    "too many": lambda decisions: np.zeros(len(decisions) + 1, np.int64),
    "floats": lambda decisions: decisions.mask.argmax(axis=1) + 0.5,
    "a number": lambda decisions: 3,
    "nothing": lambda decisions: None,
    "a mask": lambda decisions: decisions.mask,
    "texts": lambda decisions: ["a"] * len(decisions),
}


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("game", OTHERS[:1], ids=lambda game: game.name)
def test_answers_of_another_kind_are_errors(game: Game, kind: str) -> None:
    env = VectorSeatEnv(game.name, 64, opponents=Answers(ANSWERS[kind]), seat="random")
    with pytest.raises(ValueError, match=r"policy Answers: actions: expected \d+ whole numbers, got "):
        env.reset(seed=0)


def test_compare_ends_with_an_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from card_envs.__main__ import main

    monkeypatch.setattr(
        sys, "argv", ["card_envs", "compare", "high_card", "greedy", f"{__name__}:Forger", "--pairs", "4"]
    )
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "policy" in capsys.readouterr().err


def test_environments_hand_out_their_own_arrays_only_once(game: Game) -> None:
    """Turn by turn what a table by itself shows, whatever is written into all that was handed out."""
    env = CardEnv(game)
    env.reset(seed=2)
    table = Table(game, game.rules.new_state(game.validated({})))
    table.seed(2)
    table.deal()
    for decisions in range(400):
        seat = table.seat
        assert env.agent_selection == env.possible_agents[seat]
        asked = [env.last()[0], env.observe(env.agent_selection), env.last()[0]][decisions % 3 :]
        if decisions % 7 == 0:
            env.states[0].rewards[0] += 0  # may have been written into: looked at afresh
        asked.append(env.observe(env.agent_selection))
        for seen in asked:
            assert np.array_equal(seen["observation"], table.observe(seat))
            assert np.array_equal(seen["action_mask"], table.legal())
        asked.append(env.infos[env.agent_selection])
        assert np.array_equal(asked[-1]["action_mask"], table.legal())
        legal = np.flatnonzero(table.legal())
        for array in (array for seen in asked for array in seen.values()):
            array[:] = 77
        action = int(legal[decisions * 7919 % len(legal)])
        env.step(action)
        table.play(action)
        assert [env.rewards[agent] for agent in env.possible_agents] == table.rewards
        if table.over:
            break
        while table.needs_deal:
            table.deal()
    assert decisions >= 5  # the shortest game
