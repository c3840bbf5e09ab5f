"""Episodes under way are played again from their keys and moves."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int64s
from tests.conftest import short_options
from training.tables import EpisodeLog, HostTables

TABLES = 24


class Episodes:
    """A log, and the batch whose moves it records."""

    def __init__(self, game: Game, skip_forced: bool, short: bool) -> None:
        tables = HostTables(game, TABLES, 5, options=short_options(game) if short else {}, skip_forced=skip_forced)
        self.env = tables.env
        self.log = EpisodeLog(tables, table_keys(5, np.arange(TABLES)))

    def play(self, actions: Int64s) -> None:
        self.log.make_room(1)
        self.env.step(actions)
        self.log.record(torch.from_numpy(actions), torch.from_numpy(self.env.done))


def played(game: Game, steps: int, skip_forced: bool, short: bool) -> Episodes:
    episodes = Episodes(game, skip_forced, short)
    streams, actions = np.arange(TABLES, dtype=np.uint64), np.zeros(TABLES, np.int64)
    for _ in range(steps):
        episodes.env.random_actions(streams, actions)
        episodes.play(actions)
    return episodes


def shown(episodes: Episodes) -> list[bytes]:
    """All that there is to see. The bytes of a State may differ where nothing lies any more."""
    env, rules = episodes.env, episodes.env.game.rules
    full = np.zeros((TABLES, rules.FULL_SIZE), np.int8)
    env.observe_all(full)
    views = [env.game.view.view(state, seat) for state in env.states for seat in range(rules.NUM_SEATS)]
    seen = [env.obs, env.mask, env.seat, full, *episodes.log.memory().values()]
    return [array.tobytes() for array in seen] + [json.dumps(view).encode() for view in views]


@pytest.mark.mechanics
@pytest.mark.parametrize(
    ("steps", "skip_forced", "short"), [(0, True, True), (1, False, True), (65, False, False), (400, True, True)]
)
def test_tables_come_out_the_same(game: Game, steps: int, skip_forced: bool, short: bool) -> None:
    one, other = played(game, steps, skip_forced, short), played(game, 3, skip_forced, short)
    other.log.restore(one.log.memory())
    assert shown(one) == shown(other)
    streams, actions = np.arange(TABLES, dtype=np.uint64), np.zeros(TABLES, np.int64)
    for _ in range(100):  # and go on together, through further deals
        one.env.random_actions(streams, actions)
        for episodes in (one, other):
            episodes.play(actions)
        assert np.array_equal(one.env.rewards, other.env.rewards)
    assert shown(one) == shown(other)


@pytest.mark.mechanics
def test_what_cannot_be_played_is_refused_and_changes_nothing(game: Game) -> None:
    episodes = played(game, 22, True, True)
    before = shown(episodes)
    good = episodes.log.memory()
    table = int(good["lengths"].argmax())
    last = int(good["lengths"][: table + 1].sum()) - 1
    for action in (game.rules.NUM_ACTIONS, 255):
        moves = good["moves"].copy()
        moves[last] = action
        with pytest.raises(ValueError, match=rf"moves: number \d+ at table {table} is illegal"):
            episodes.log.restore({**good, "moves": moves})
        assert shown(episodes) == before
    with pytest.raises(ValueError, match=r"episodes: expected arrays .*lengths, moves; got moves"):
        episodes.log.restore({"moves": good["moves"]})
    assert shown(episodes) == before
