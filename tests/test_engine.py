"""The engine: batches, threads, processes, the cache of machine code, and what the compiler made of the rules."""

from __future__ import annotations

import hashlib
import json
import operator
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import ir
from numpy.typing import NDArray

from card_envs.compiling import _instructions, rule, specialize
from card_envs.compiling._rules import INTERPRETED
from card_envs.engine import batch, kernels, sets, sums
from card_envs.engine.batch import BatchEnv
from card_envs.engine.legality import IllegalMove, num_words, pack_mask, unpack_mask
from card_envs.engine.rng import advance, below, derive, shuffle, table_keys
from card_envs.engine.seen import Seen, forget, is_new, new_seen
from card_envs.engine.table import Table
from card_envs.game import Game, State, greedy, legal, observe, observe_all
from card_envs.games import get_game
from card_envs.opponents.policy import decisions_at
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.testing.referee import facts_of
from tests.conftest import (
    bots_moves,
    differing_fields,
    field_bytes,
    mixed_batch,
    observed_in_full,
    positions,
    random_moves,
    redealt,
    short_options,
    some,
    walk,
)

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "card_envs" / "scaffold" / "high_card"
BUFFERS = ("obs", "mask", "seat", "rewards", "done")


def batch_of(game: Game, num_tables: int = 8, seed: int = 0, **arguments: Any) -> BatchEnv:
    return BatchEnv(game, num_tables, seed, **arguments)


def random_steps(env: BatchEnv, steps: int, check: Callable[[NDArray[np.int64]], None] | None = None) -> BatchEnv:
    """What `random_move` draws, from streams that depend on the tables' numbers alone; `check` sees it before each."""
    streams = table_keys(99, np.arange(env.num_tables))
    for _ in range(steps):
        actions = random_moves(env.game, env.states, streams).astype(np.int64)
        if check is not None:
            check(actions)
        env.step(actions)
    return env


def everything(env: BatchEnv) -> dict[str, bytes]:
    """All that a batch shows and holds."""
    return {name: getattr(env, name).tobytes() for name in BUFFERS} | {"states": field_bytes(env.states)}


def import_path(*folders: Path) -> str:
    """These folders, the checkout, and what this process imports from beyond them."""
    return os.pathsep.join(map(str, filter(None, (*folders, ROOT, os.environ.get("PYTHONPATH")))))


def run_python(code: str, *paths: Path, **environment: str) -> str:
    """What a fresh process prints, with these folders and the checkout to import from."""
    path = import_path(*paths)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd=paths[0] if paths else ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


# One source, many tables


@pytest.mark.parametrize("skip_forced", [False, True])
def test_batch_equals_single_tables(game: Game, skip_forced: bool) -> None:
    """Bit for bit, against tables that are stepped one at a time."""
    env = batch_of(game, 6, seed=3, skip_forced=skip_forced)
    tables = [Table(game, game.rules.new_state(game.validated({}))) for _ in range(6)]
    for i, table in enumerate(tables):
        table.seed(3, i)
        table.deal()

    def step_alone(table: Table, action: int) -> tuple[list[float], bool]:
        table.play(action)
        rewards, done = np.array(table.rewards, np.float32), table.over
        while True:
            while table.needs_deal:
                table.deal()
            legal = np.flatnonzero(table.legal())
            if len(legal) > 1 or not skip_forced or done:
                return rewards.tolist(), done
            table.play(int(legal[0]))
            rewards += np.array(table.rewards, np.float32)
            done = table.over

    expected: list[tuple[list[float], bool]] = []

    def step_all(actions: NDArray[np.int64]) -> None:
        compare()
        expected[:] = [step_alone(table, action) for table, action in zip(tables, actions.tolist())]

    def compare() -> None:
        for i, table in enumerate(tables):
            assert field_bytes(table.states) == field_bytes(env.states[i : i + 1])
            assert np.array_equal(table.legal(), env.mask[i])
            assert np.array_equal(table.observe(table.seat), env.obs[i])
            assert table.seat == env.seat[i]
            if expected:
                assert (env.rewards[i].tolist(), bool(env.done[i])) == expected[i]

    random_steps(env, 400, step_all)
    compare()


@pytest.mark.mechanics
def test_threads_change_nothing(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MIN_TABLES_A_THREAD", 2)
    found = [
        everything(random_steps(batch_of(game, 37, seed=5, num_threads=threads, skip_forced=True), 200))
        for threads in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]
    streams = [np.arange(37, dtype=np.uint64) for _ in range(2)]
    one, two = (batch_of(game, 37, seed=5, num_threads=threads) for threads in (1, 2))
    assert one.random_playout(streams[0], 100) == two.random_playout(streams[1], 100)
    assert one.bot_playout("greedy", 100) == two.bot_playout("greedy", 100)
    assert differing_fields(one.states, two.states) == []
    assert np.array_equal(streams[0], streams[1])


@pytest.mark.mechanics
def test_an_illegal_action_is_found_on_any_thread(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MIN_TABLES_A_THREAD", 2)
    env = batch_of(game, 8, num_threads=4)
    actions = env.mask.argmax(axis=1)
    actions[5] = env.mask[5].argmin()
    env.mask[:] = 1  # which is not believed
    before = field_bytes(env.states)
    with pytest.raises(IllegalMove, match="table 5"):
        env.step(actions)
    assert field_bytes(env.states) == before


def test_a_table_depends_on_seed_and_number_alone(game: Game) -> None:
    whole = batch_of(game, 40, seed=11)
    part = batch_of(game, 3, seed=11, tables=[39, 4, 4])
    other = batch_of(game, 3, seed=12, tables=[39, 4, 4])
    for name in ("obs", "mask", "seat"):
        assert np.array_equal(getattr(whole, name)[[39, 4, 4]], getattr(part, name))
    assert differing_fields(part.states, whole.states[[39, 4, 4]]) == []
    assert "rng" in differing_fields(other.states, part.states)
    full = observed_in_full(game, whole.states, np.zeros(40, np.int8))
    assert len(np.unique(full, axis=0)) == 40  # no two tables are dealt alike

    def same_moves(actions: NDArray[np.int64]) -> None:
        part.step(actions[[39, 4, 4]])

    random_steps(whole, 200, same_moves)
    assert differing_fields(part.states, whole.states[[39, 4, 4]]) == []


def test_options_are_keyword_arguments_as_everywhere(game: Game) -> None:
    chosen = short_options(game)
    one, other = BatchEnv(game, 4, options=chosen), BatchEnv(game, 4, **chosen)
    assert field_bytes(one.states) == field_bytes(other.states)
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'num_thread'"):
        BatchEnv(game, 4, num_thread=2)
    if chosen:
        with pytest.raises(TypeError, match="multiple values for keyword argument"):
            BatchEnv(game, 4, options=chosen, **chosen)


def test_episodes_are_dealt_anew(game: Game) -> None:
    """`done` marks the step that ends an episode; the next one has other cards."""
    env = batch_of(game, 32, seed=13)
    first = observed_in_full(game, env.states, np.zeros(32, np.int8))
    second: dict[int, Any] = {}

    for _ in walk(env, 20_000, seed=1):
        for i in np.flatnonzero(env.done):
            second.setdefault(int(i), observed_in_full(game, env.states[i : i + 1], np.zeros(1, np.int8))[0])
        if len(second) == 32:
            break
    assert len(second) == 32
    assert all((second[i] != first[i]).any() for i in range(32))
    assert not env.states["over"].any() and not env.states["needs_deal"].any()


def test_skipping_forced_moves_is_playing_them(game: Game) -> None:
    """Rewards are summed up to the next decision, no step ends two episodes, nothing is asked that is forced."""
    asked = batch_of(game, 24, seed=17)
    skipped = batch_of(game, 24, seed=17, skip_forced=True)
    random_order = np.random.default_rng(0)
    forced = 0
    for _ in range(300):
        choices = skipped.mask.sum(axis=1)
        assert ((choices > 1) | skipped.done | (asked.mask.sum(axis=1) == 1)).all()
        actions = np.array([random_order.choice(np.flatnonzero(row)) for row in skipped.mask])
        skipped.step(actions)
        rewards = np.zeros_like(skipped.rewards)
        done = np.zeros_like(skipped.done)
        waiting = np.ones(24, np.bool_)
        states = np.zeros_like(asked.states)
        while waiting.any():  # the others go on with any move, and are set back afterwards
            moves = np.where(waiting, actions, asked.mask.argmax(axis=1))
            asked.step(moves)
            rewards[waiting] += asked.rewards[waiting]
            done[waiting] |= asked.done[waiting]
            single = asked.mask.sum(axis=1) == 1
            stop = waiting & (~single | done)
            states[stop] = asked.states[stop]
            waiting &= ~stop
            forced += int(waiting.sum())
            actions = asked.mask.argmax(axis=1)
        asked.states[:] = states
        asked.observe()
        assert differing_fields(states, skipped.states) == []
        assert np.array_equal(rewards, skipped.rewards) and np.array_equal(done, skipped.done)
        assert np.array_equal(asked.obs, skipped.obs) and np.array_equal(asked.mask, skipped.mask)
    assert forced > 0 or (decisions_at(game, positions(game)).mask.sum(axis=1, dtype=int) > 1).all()


def test_tables_can_be_set_and_copied(game: Game) -> None:
    one = random_steps(batch_of(game, 8, seed=19), 50)
    two = batch_of(game, 8, seed=20)
    two.states[:] = one.states
    two.observe()
    for name in ("obs", "mask", "seat"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert everything(random_steps(one, 100)) == everything(random_steps(two, 100))
    full = np.zeros((8, game.rules.FULL_SIZE), np.int8)
    one.observe_all(full)
    assert np.array_equal(full, observed_in_full(game, one.states, one.seat))


def test_playouts_are_steps(game: Game) -> None:
    """The fused loops play the moves that the policies choose one by one."""
    streams = np.arange(16, dtype=np.uint64), np.arange(16, dtype=np.uint64)
    fused, stepped = batch_of(game, 16, seed=23), batch_of(game, 16, seed=23)
    actions = np.zeros(16, np.int64)
    ended = 0
    for _ in range(300):
        stepped.step(random_moves(game, stepped.states, streams[1]))
        ended += int(stepped.done.sum())
    assert fused.random_playout(streams[0], 300) == ended
    assert differing_fields(fused.states, stepped.states) == [] and np.array_equal(*streams)
    for bot in ("trivial", "greedy"):
        ended = 0
        for _ in range(300):
            stepped.bot_actions(bot, actions)
            stepped.step(actions)
            ended += int(stepped.done.sum())
        assert fused.bot_playout(bot, 300) == ended
        assert differing_fields(fused.states, stepped.states) == []


def test_random_actions_are_uniform_over_what_is_legal(game: Game) -> None:
    """And drawn from what is known privately: writing into `mask` changes nothing."""
    draws = 4000
    few = random_steps(batch_of(game, 6, seed=29), 25)
    env = BatchEnv(game, 6 * draws)
    env.states[:] = np.repeat(few.states, draws)
    env.observe()
    env.mask[:] = 1
    actions = np.full(6 * draws, -1)
    env.random_actions(table_keys(3, np.arange(6 * draws)), actions)
    for drawn, mask in zip(actions.reshape(6, draws), few.mask):
        expected = draws / mask.sum(dtype=int) * mask
        times = np.bincount(drawn, minlength=len(mask))
        assert (np.abs(times - expected) <= 5 * np.sqrt(expected)).all()
    streams = np.arange(6, dtype=np.uint64)
    one = few.mask.sum(axis=1) == 1
    few.random_actions(streams, actions[:6].copy())
    assert np.array_equal(streams == np.arange(6), one)  # where there is a choice, and only there
    few.random_playout(streams, 3)
    with pytest.raises(IllegalMove, match=r"at table 0 is known to be legal: call observe\(\) first"):
        few.random_actions(streams, actions[:6].copy())


def test_likelihood_is_a_share_and_changes_nothing(game: Game) -> None:
    states = some(positions(game), 300)
    before = states.copy()
    likelihood = game.bot.likelihood
    shares = [likelihood(state, state.seat) for state in states]
    assert min(shares) > 0 and max(shares) == 1
    assert differing_fields(states, before) == []


def test_torch_shares_the_memory(game: Game) -> None:
    torch = pytest.importorskip("torch")
    env = batch_of(game, 4)
    shared = {name: torch.from_numpy(getattr(env, name)) for name in BUFFERS}
    random_steps(env, 20)
    for name, tensor in shared.items():
        assert np.array_equal(tensor.numpy(), getattr(env, name))


# Wrong input


def test_illegal_actions_move_nothing(game: Game) -> None:
    env = random_steps(batch_of(game, 8), 5)
    before = everything(env)
    good = env.mask.argmax(axis=1)
    for bad in (-1, game.rules.NUM_ACTIONS, (1 << 32) + int(good[3]), *np.flatnonzero(env.mask[3] == 0)[:3].tolist()):
        actions = good.copy()
        actions[3] = bad
        with pytest.raises(
            IllegalMove, match=rf"^{game.name}: action {bad} of seat {env.seat[3]} at table 3 .*legal: "
        ):
            env.step(actions)
    for shape in (good[:7], good[:, None], good.astype(np.float64), good.tolist()[:3], 0):
        with pytest.raises(ValueError, match="actions: expected 8 whole numbers"):
            env.step(shape)  # type: ignore[arg-type]
    assert everything(env) == before
    env.step(good.tolist())  # a list of the right length will do
    assert everything(env) != before


# Processes


@pytest.mark.mechanics
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of what this tests
def test_a_forked_child_works(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MIN_TABLES_A_THREAD", 1)
    env = random_steps(batch_of(game, 8, num_threads=2), 10)  # the threads are at work before the fork
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, hashlib.sha256(field_bytes(random_steps(env, 50).states)).digest())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert found == hashlib.sha256(field_bytes(random_steps(env, 50).states)).digest()


@pytest.mark.mechanics
def test_batches_and_tables_survive_pickling(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MIN_TABLES_A_THREAD", 1)
    env = random_steps(batch_of(game, 4, num_threads=2, skip_forced=True), 20)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.game == game
    assert everything(twin) == everything(env)
    assert everything(random_steps(twin, 60)) == everything(random_steps(env, 60))
    table = Table(game, env.states[0])
    again = pickle.loads(pickle.dumps(table))
    copied = table.copy()
    action = int(np.flatnonzero(table.legal())[0])
    kept = field_bytes(table.states)
    for other in (again, copied):
        other.play(action)
        assert field_bytes(table.states) == kept
    table.play(action)
    assert field_bytes(table.states) == field_bytes(again.states) == field_bytes(copied.states)


def trajectory(game: Game, num_tables: int = 64, moves: int = 300, seed: int = 0) -> str:
    """Hash of all that random play shows."""
    env = batch_of(game, num_tables, seed)
    digest = hashlib.sha256()

    def observe(actions: NDArray[np.int64]) -> None:
        for name in BUFFERS:
            digest.update(getattr(env, name).tobytes())
        digest.update(actions.tobytes())

    random_steps(env, moves, observe)
    return digest.hexdigest()[:16]


def test_golden_trajectories(game: Game) -> None:
    """They change with the rules and the observation layout, and so must the game's version."""
    found, golden = trajectory(game), facts_of(game).GOLDEN
    if not golden:
        pytest.skip(f"once the rules are settled, write to the game's facts: GOLDEN = {{{game.version}: {found!r}}}")
    assert game.version in golden, f"add to GOLDEN of the game's facts: {game.version}: {found!r}"
    changed = f"rules or observations changed: raise the game's version; before its first release, write {found!r}"
    assert found == golden[game.version], changed


def played(game_name: str) -> str:
    """Hash of states, hidden worlds and bots' moves in play of all kinds; the same in every process."""
    game = get_game(game_name)
    digest = hashlib.sha256()
    with np.errstate(over="ignore"):  # NumPy warns where machine code wraps around
        env = mixed_batch(game, 6, seed=29)
        for step, actions in enumerate(walk(env, 120, seed=31)):
            digest.update(field_bytes(env.states) + env.obs.tobytes() + env.mask.tobytes() + actions.tobytes())
            if step % 10 == 0:
                worlds = redealt(game, env.states, env.seat, step)
                digest.update(field_bytes(worlds) + bots_moves(game, worlds).tobytes())
                digest.update(observed_in_full(game, worlds, env.seat).tobytes())
    return digest.hexdigest()


PRINT_PLAYED = "import sys; from tests.test_engine import played; print(*map(played, {names}))"


def test_other_processes_get_the_same_bytes(games: list[Game]) -> None:
    """Compiled in a fresh process with another hash seed."""
    here = [played(game.name) for game in games]
    code = PRINT_PLAYED.format(names=[game.name for game in games])
    assert run_python(code, PYTHONHASHSEED="random").split() == here


@pytest.mark.processes
def test_interpreted_rules_get_the_same_bytes(games: list[Game]) -> None:
    """The rules as plain Python, for debugging and coverage."""
    code = PRINT_PLAYED.format(names=[game.name for game in games])
    assert run_python(code, NUMBA_DISABLE_JIT="1").split() == [played(game.name) for game in games]


# The cache


PLAY_SOMEONES_GAME = """
import hashlib, json
import numpy as np
from card_envs.engine import kernels
from card_envs.compiling import specialize
from someones_game import GAME

options = GAME.options()
states = np.array([GAME.rules.new_state(options)] * 16, GAME.rules.STATE)
deal, playout = specialize(kernels.deal_table, GAME), specialize(kernels.random_playout, GAME)
for i in range(16):
    states[i].rng = i
    deal(states, i)
playout(0, 16, states, np.arange(16, dtype=np.uint64), 100)
scores = states["scores"].tobytes() + states["hands"].tobytes() + states["history"].tobytes()
hits = sum(sum(loop.stats.cache_hits.values()) for loop in (deal, playout))
misses = sum(sum(loop.stats.cache_misses.values()) for loop in (deal, playout))
print(json.dumps([hashlib.sha256(scores).hexdigest(), hits, misses]))
"""


def play_someones_game(folder: Path) -> subprocess.Popen[str]:
    """A process that prints a hash of the states played to, the kernels found in the cache, and those not found."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache")}
    return subprocess.Popen(
        [sys.executable, "-c", PLAY_SOMEONES_GAME], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.processes
def test_the_cache_notices_edits(tmp_path: Path) -> None:
    """Three processes start cold at once, a fourth finds everything compiled, an edited rule is compiled again.

    The game is somebody else's, outside the package.
    """
    package, cache = tmp_path / "someones_game", tmp_path / "cache"
    shutil.copytree(
        ROOT / "card_envs" / "scaffold" / "high_card", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for file in package.glob("*.py"):
        file.write_text(file.read_text().replace("card_envs.scaffold.high_card", "someones_game"))
    started = [play_someones_game(tmp_path) for _ in range(3)]
    found = [json.loads(process.communicate()[0]) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    state, hits, misses = json.loads(play_someones_game(tmp_path).communicate()[0])
    assert [other[0] for other in found] == [state] * 3
    assert (hits, misses) == (2, 0)
    before = {file.name for file in cache.rglob("*.nb?")}
    assert len(before) == 4

    rules = package / "rules.py"
    higher_wins = "seat if action > state.history"
    assert rules.read_text().count(higher_wins) == 1
    rules.write_text(rules.read_text().replace(higher_wins, "seat if action < state.history"))
    edited, hits, misses = json.loads(play_someones_game(tmp_path).communicate()[0])
    after = {file.name for file in cache.rglob("*.nb?")}
    assert edited != state and (hits, misses) == (0, 2)
    assert len(after) == 4 and not after & before  # what was outdated is gone


DIGEST_OF_SOMEONES_GAME = """
from card_envs.compiling._specialize import Specialization, rebuild
from card_envs.engine import kernels
from card_envs.engine.legality import find_illegal
from someones_game import GAME

loops = Specialization(kernels.step_tables, GAME), Specialization(kernels.bot_actions, GAME, "greedy")
print(*(rebuild(loop).function.__name__ for loop in (*loops, Specialization(find_illegal))))
"""


def test_the_digest_covers_what_a_loop_uses(tmp_path: Path) -> None:
    """An edit makes another name of the loops that use the file, and of no others."""
    shutil.copytree(ROOT / "card_envs", tmp_path / "card_envs", ignore=shutil.ignore_patterns("__pycache__", "models"))
    shutil.copytree(TEMPLATE, tmp_path / "someones_game")
    for file in (tmp_path / "someones_game").glob("*.py"):
        file.write_text(file.read_text().replace("card_envs.scaffold.high_card", "someones_game"))
    expected = {  # step_tables, bot_actions, find_illegal
        "someones_game/rules.py": "True False False",
        "someones_game/bot.py": "False True False",
        "someones_game/view.py": "False False False",
        "card_envs/engine/rng.py": "True False False",
        "card_envs/engine/sets.py": "True True False",
        "card_envs/engine/dealing.py": "True False False",
        "card_envs/engine/kernels.py": "True True False",
        "card_envs/engine/legality.py": "True False True",
        "card_envs/compiling/_rules.py": "True True True",
        "card_envs/compiling/_specialize.py": "True True True",
    }
    before, changes = run_python(DIGEST_OF_SOMEONES_GAME, tmp_path).split(), {}
    for name in expected:
        with (tmp_path / name).open("a") as source:
            source.write("# edited\n")
        after = run_python(DIGEST_OF_SOMEONES_GAME, tmp_path).split()
        changes[name] = " ".join(str(one != other) for one, other in zip(before, after, strict=True))
        before = after
    assert changes == expected


def sum_of_moves(states: Any) -> int:
    return next_move(states[0])


@rule
def next_move(state: State) -> int:
    return greedy(state)


def test_wrong_loops_are_refused() -> None:
    with pytest.raises(TypeError, match="step_table calls play: specialize it for a game"):
        specialize(kernels.step_tables)
    with pytest.raises(TypeError, match="bot_actions calls bot_move: specialize it for a bot"):
        specialize(kernels.bot_actions, HIGH_CARD)
    with pytest.raises(TypeError, match="high_card has no function nobody"):
        specialize(kernels.bot_actions, HIGH_CARD, "nobody")
    if not INTERPRETED:
        with pytest.raises(TypeError, match="next_move calls the stub greedy"):
            specialize(sum_of_moves, HIGH_CARD)


# What the compiler made of the rules


def bounds_and_types(game_name: str) -> None:
    """For a fresh process with NUMBA_BOUNDSCHECK: play everything, and print where types are wrong."""
    from card_envs.compiling import rule
    from card_envs.compiling._rules import loop
    from card_envs.engine import rng

    @rule
    def outside(state: State) -> float:
        return state.rewards[99]  # type: ignore[no-any-return]

    game = get_game(game_name)
    reach: Any = loop(lambda states: outside(states[0]))
    checked = False
    try:
        reach(np.zeros(1, game.rules.STATE))
    except IndexError:
        checked = True
    assert checked, "bounds are not checked"
    error: Exception | None = None
    try:
        play_everything(game)
    except Exception as raised:  # of which wrong types may be the reason
        error = raised
    found: dict[str, None] = {}  # each once, in order
    for module in (game.rules, game.bot, sets, rng):
        for name, function in vars(module).items():
            linked = getattr(getattr(function, "compiled", None), "linked", None)  # the rule as loops call it
            for compiled in linked.overloads.values() if linked is not None else ():
                found.update(dict.fromkeys(wrong_types(compiled, name in facts_of(game).COUNTING)))
    play: Any = game.rules.play
    if error is not None and not play.compiled.linked.overloads:
        raise error
    assert play.compiled.linked.overloads, "the rules came from a cache, where no types are left"
    if error and not found:
        raise error
    print("\n".join(found))


def play_everything(game: Game) -> None:
    """Call each rule and bot at many positions."""
    env = mixed_batch(game, 48, seed=37)
    for step, _ in enumerate(walk(env, 600, seed=41)):
        if step % 4 == 0:
            worlds = redealt(game, env.states, env.seat, step)
            for seat in range(game.rules.NUM_SEATS):
                observed_in_full(game, worlds, np.full(48, seat, np.int8))
    set_deal = specialize(kernels.set_deal_table, game)
    fresh = mixed_batch(game, 48, seed=38)
    again = fresh.states.copy()
    again["over"] = again["needs_deal"] = True
    for i in range(48):
        set_deal(again, i, game.view.dealt_pack(fresh.states[i]))


COMPARISONS = {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}


def wrong_types(compiled: Any, may_count: bool) -> Iterator[str]:
    """Floating point in a rule that may not use it, and where a uint64 meets a signed number: it is no longer a set."""
    annotation, name = compiled.type_annotation, compiled.type_annotation.func_id.func_name
    place = f"{annotation.func_id.filename}:{annotation.func_id.firstlineno + 1}: {name}:"  # below the decorator
    for statement in (statement for block in annotation.blocks.values() for statement in block.body):
        value = getattr(statement, "value", None)
        meeting: list[Any] = []
        if isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop"):
            meeting = [value.lhs, value.rhs] if value.fn not in COMPARISONS else []
        elif isinstance(value, ir.Expr) and value.op == "phi":
            meeting = [part for part in value.incoming_values if isinstance(part, ir.Var)]
        met = [annotation.typemap.get(variable.name) for variable in meeting]
        signed = [getattr(kind, "literal_type", kind) for kind in met if getattr(kind, "signed", False)]
        if numba.uint64 in met and signed:
            where = f"{statement.loc.filename}:{statement.loc.line}: {name}: a uint64 meets an {signed[0]}"
            result = annotation.typemap.get(statement.target.name)
            yield f"{where} and becomes {result}: convert one, by np.uint64() or int()"
    floats = {variable.split(".")[0] for variable, kind in annotation.typemap.items() if kind == numba.float64}
    if floats and not may_count:
        yield f"{place} {', '.join(sorted(floats))} became float64"
    if isinstance(compiled.signature.return_type, numba.types.Optional):
        yield f"{place} returns nothing on some path"


@pytest.mark.processes
def test_bounds_and_types(game: Game, tmp_path: Path) -> None:
    """No read or write outside an array in play of all kinds; no set or whole number that became something else."""
    switches = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    found = run_python(f"from tests.test_engine import bounds_and_types; bounds_and_types({game.name!r})", **switches)
    assert not found, found


@pytest.mark.parametrize("card_type", [np.int8, np.int32, np.int64, np.uint64])
def test_sets_stay_unsigned(card_type: Any) -> None:
    for helper in (sets.bit, sets.below_card, sets.above_card):
        helper(card_type(63))
        for compiled in helper.compiled.overloads.values():  # type: ignore[attr-defined]
            assert compiled.signature.return_type == numba.uint64
    assert sets.bit(card_type(63)) == 1 << 63
    assert sets.below_card(card_type(63)) == (1 << 63) - 1
    assert sets.above_card(card_type(62)) == 1 << 63
    assert sets.above_card(card_type(63)) == 0
    assert sets.below_card(card_type(0)) == 0


def test_sets_are_what_they_say() -> None:
    from card_envs.compiling._rules import loop

    @loop
    def ask(cards: Any, found: Any) -> None:
        found[0] = sets.count(cards)
        found[1] = sets.lowest(cards)
        found[2] = sets.highest(cards)
        for index in range(found[0]):
            found[3 + index] = sets.nth(cards, index)

    for value in (1, 1 << 63, (1 << 64) - 1, 0b1011, 0x8000_0001_0000_0100):
        found = np.zeros(3 + 64, np.int64)
        ask(np.uint64(value), found)
        members = [card for card in range(64) if value >> card & 1]
        assert found[: 3 + len(members)].tolist() == [len(members), members[0], members[-1], *members]


SET = 0xF0F1_8000_2000_1A65
LENGTHS = 1, 3, 7, 14, 33, 52, 64


def writer(length: int) -> Any:
    """A loop that spreads a set and copies entries, `length` of each, in every row."""
    source = f"""
def write(rows, start, cards, entries):
    for i in range(len(rows)):
        spread(rows[i], start, cards, {length})
        copy(rows[i], start + {length}, entries, {length})
"""
    names: dict[str, Any] = {"spread": sets.spread, "copy": sets.copy}
    exec(source, names)
    return rule(names["write"])


@pytest.mark.parametrize("x86", [True, False])
@pytest.mark.parametrize("length", LENGTHS)
def test_spreading_writes_just_so_many_entries(length: int, x86: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At both ends of a row, in rows that lie in one piece or do not, and not a byte beside them."""
    monkeypatch.setattr(_instructions, "X86", x86)
    write = writer(length)
    entries = np.arange(1, 65, dtype=np.int8)
    expected = [SET >> card & 1 for card in range(length)] + entries[:length].tolist()
    for start in (0, 1, 5):
        size = start + 2 * length
        in_one_piece = np.full((3, size), 7, np.int8)
        guarded = np.full((3, size + 64), 7, np.int8)
        columns = np.full((size + 64, 3), 7, np.int8)
        every_other = np.full((3, 2 * size + 64), 7, np.int8)
        cases = (
            (in_one_piece, in_one_piece), (guarded[:, :size], guarded), (columns.T[:, :size], columns),
            (every_other[:, : 2 * size : 2], every_other),
        )  # fmt: skip
        for rows, whole in cases:
            write(rows, start, np.uint64(SET), entries)
            assert (rows[:, start:] == expected).all() and (rows[:, :start] == 7).all()
            rows[:] = 7
            assert (whole == 7).all()  # nothing else was written


def test_spreading_takes_a_constant_length() -> None:
    if INTERPRETED:
        pytest.skip("nothing is compiled")

    @numba.njit
    def write(row: Any, length: int) -> None:
        sets.spread(row, 0, sets.ONE, length)

    with pytest.raises(numba.core.errors.TypingError, match="length: expected a constant"):
        write(np.zeros(64, np.int8), 3)


def observe_rows(first: int, last: int, states: Any, seat: Any, obs: Any, full: Any, mask: Any) -> None:
    for i in range(first, last):
        observe(states[i], seat[i], obs[i])
        observe_all(states[i], seat[i], full[i])
        legal(states[i], mask[i])


@pytest.mark.mechanics
def test_rows_of_any_kind_are_written_alike(game: Game) -> None:
    """Whatever was in them, in one piece or not; bytes beside them stay as they were."""
    states = some(positions(game), 400)
    rules, write = game.rules, specialize(observe_rows, game)
    sizes = rules.OBS_SIZE, rules.FULL_SIZE, rules.NUM_ACTIONS
    plain = [np.full((len(states), size), 99, np.int8) for size in sizes]
    guarded = [np.full((len(states), size + 128), 99, np.int8) for size in sizes]
    columns = [np.full((size, len(states)), -99, np.int8) for size in sizes]
    write(0, len(states), states, states["seat"], *plain)
    write(0, len(states), states, states["seat"], *(rows[:, 64:-64] for rows in guarded))
    write(0, len(states), states, states["seat"], *(rows.T for rows in columns))
    for rows, between, turned in zip(plain, guarded, columns):
        assert np.array_equal(rows, between[:, 64:-64]) and np.array_equal(rows, turned.T)
        assert (between[:, :64] == 99).all() and (between[:, -64:] == 99).all()


@pytest.mark.parametrize("width", [1, 15, 16, 63, 64, 65, 80, 200])
def test_rows_are_added_up_in_order_whatever_the_width(width: int) -> None:
    """Bit for bit as one after the other, for weights in one piece or not; nothing beside the sums is written."""
    rng = np.random.default_rng(width)
    weights = rng.standard_normal((30, width), np.float32)
    entry, value = rng.integers(0, 30, 50).astype(np.int32), rng.standard_normal(50, np.float32)
    add = specialize(sums.add_rows)
    for first, last in ((0, 50), (3, 20), (7, 8), (9, 9)):
        expected = np.full(width, 0.1, np.float32)
        for k in range(first, last):
            expected += value[k] * weights[entry[k]]
        for table in (weights, np.asfortranarray(weights), np.repeat(weights, 2, axis=1)[:, ::2]):
            guarded = np.full(width + 128, 0.1, np.float32)
            add(table, entry, value, first, last, guarded[64:-64])
            assert np.array_equal(guarded[64:-64], expected)
            assert (guarded[:64] == np.float32(0.1)).all() and (guarded[-64:] == np.float32(0.1)).all()


def test_below_is_uniform_and_shuffles_are_permutations() -> None:
    from card_envs.compiling._rules import loop

    @loop
    def draw(stream: Any, bound: int, drawn: Any) -> None:
        for i in range(len(drawn)):
            drawn[i] = below(advance(stream), bound)

    @loop
    def shuffle_often(cards: Any, key: Any) -> None:
        for number in range(len(cards)):
            shuffle(cards[number], cards.shape[1], cards.shape[1], derive(key, number))

    stream = np.array([5], np.uint64)
    draws = 60_000
    for bound in (1, 2, 3, 7, 54):
        drawn = np.zeros(draws, np.int64)
        draw(stream, bound, drawn)
        counts = np.bincount(drawn, minlength=bound)
        assert len(counts) == bound
        assert (np.abs(counts - draws / bound) <= 5 * np.sqrt(draws / bound)).all()
    packs = np.tile(np.arange(10, dtype=np.int8), (20_000, 1))
    shuffle_often(packs, np.uint64(7))
    assert (np.sort(packs) == np.arange(10)).all()
    places = np.array([np.bincount(packs[:, place], minlength=10) for place in range(10)])
    assert (np.abs(places - 2000) < 5 * np.sqrt(2000 * 0.9)).all()


def test_table_keys_do_not_collide() -> None:
    keys = np.concatenate([table_keys(seed, np.arange(20_000)) for seed in (0, 1, 2, (1 << 64) - 1)])
    assert keys.dtype == np.uint64 and len(np.unique(keys)) == 80_000


def enter_keys(keys: NDArray[np.uint64], seen: Seen, new: NDArray[np.bool_]) -> None:
    for i in range(keys.shape[0]):
        new[i] = is_new(keys[i], seen)


def test_what_was_seen_is_not_new_until_it_is_forgotten() -> None:
    def entered(keys: list[int], seen: Seen) -> list[bool]:
        new = np.zeros(len(keys), np.bool_)
        specialize(enter_keys)(np.array(keys, np.uint64), seen, new)
        found: list[bool] = new.tolist()
        return found

    seen = new_seen(4)
    size = len(seen.keys)
    assert size >= 8
    assert entered([0, 5, 5, 5 + size, 0, 5 + size], seen) == [True, True, False, True, False, False]
    forget(seen)
    assert entered([5, 0, 5], seen) == [True, True, False]


@pytest.mark.parametrize("size", [1, 63, 64, 65, 130])
def test_packed_masks(size: int) -> None:
    rng = np.random.default_rng(size)
    masks = (rng.random((50, size)) < 0.4).astype(np.int8)
    for mask in masks:
        legal = np.zeros(num_words(size), np.uint64)
        specialize(pack_mask)(mask, legal)
        assert np.array_equal(unpack_mask(legal, size), mask)


def test_batches_do_not_believe_their_masks(game: Game) -> None:
    env = mixed_batch(game, 64, seed=1)
    for number, actions in enumerate(walk(env, 200)):
        if number % 20:
            continue
        true = env.mask.copy()
        env.mask[:] = 1
        before = env.states.tobytes()
        for action in range(game.rules.NUM_ACTIONS):
            assert np.array_equal(env.are_legal(np.full(64, action)), true[:, action] == 1)
        table = int(true.min(axis=1).argmin())
        wrong = actions.copy()
        wrong[table] = true[table].argmin()
        with pytest.raises(IllegalMove, match=f"action {wrong[table]} of seat . at table {table} is illegal; legal: "):
            env.step(wrong)
        assert env.states.tobytes() == before
        assert not env.are_legal(np.full(64, -1)).any() and not env.are_legal(np.full(64, true.shape[1])).any()
