"""`BatchEnv`: many tables beside one, threads, processes, wrong input, and what the compiler made of the rules."""

from __future__ import annotations

import hashlib
import operator
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import ir
from numpy.typing import NDArray

from card_envs.compiling import rule, specialize
from card_envs.engine import kernels, sets
from card_envs.engine.batch import MIN_TABLES_A_THREAD, BatchEnv
from card_envs.engine.legality import IllegalMove
from card_envs.engine.rng import table_keys
from card_envs.engine.table import Table
from card_envs.game import Game, State, legal, observe, observe_all
from card_envs.games import GAMES, get_game
from card_envs.opponents.policy import decisions_at
from card_envs.scaffold.high_card import GAME as TINY
from card_envs.testing.referee import facts_of
from tests.conftest import (
    BOTS,
    NUMBERS,
    assert_fixed,
    assert_refused,
    bots_moves,
    buffers_but,
    differing_fields,
    field_bytes,
    mixed_batch,
    observed_in_full,
    positions,
    random_moves,
    redealt,
    run_python,
    short_options,
    some,
    walk,
)

BUFFERS = ("obs", "mask", "seat", "rewards", "done")
B, MANY = 8, 3 * MIN_TABLES_A_THREAD


def random_steps(env: BatchEnv, steps: int, check: Callable[[NDArray[np.int64]], None] | None = None) -> BatchEnv:
    """Play random moves, from streams that depend on the tables' numbers alone; call `check` before each."""
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


# One source, many tables


@pytest.mark.parametrize("skip_forced", [False, True])
def test_batch_equals_single_tables(game: Game, skip_forced: bool) -> None:
    """Bit for bit, against tables that are stepped one at a time."""
    env = BatchEnv(game, 6, seed=3, skip_forced=skip_forced)
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
def test_threads_change_nothing(game: Game) -> None:
    batches = [BatchEnv(game, MANY, seed=5, num_threads=threads, skip_forced=True) for threads in (1, 2, 3)]
    shown = [everything(random_steps(env, 30)) for env in batches]
    assert shown[0] == shown[1] == shown[2]
    streams = [np.arange(MANY, dtype=np.uint64) for _ in batches]
    assert len({env.random_playout(stream, 40) for env, stream in zip(batches, streams)}) == 1
    assert len({env.bot_playout("greedy", 40) for env in batches}) == 1
    for env, stream in zip(batches, streams):
        assert differing_fields(batches[0].states, env.states) == [] and np.array_equal(streams[0], stream)


@pytest.mark.mechanics
def test_an_illegal_action_is_found_on_any_thread(game: Game) -> None:
    env = BatchEnv(game, MANY, num_threads=3)
    for table in (5, MANY // 2, MANY - 5):
        actions = env.mask.argmax(axis=1)
        actions[table] = env.mask[table].argmin()
        before = field_bytes(env.states)
        with pytest.raises(IllegalMove, match=f"table {table} "):
            env.step(actions)
        assert field_bytes(env.states) == before


@pytest.mark.mechanics
def test_a_table_depends_on_seed_and_number_alone(game: Game) -> None:
    whole = BatchEnv(game, 40, seed=11)
    part = BatchEnv(game, 3, seed=11, tables=[39, 4, 4])
    other = BatchEnv(game, 3, seed=12, tables=[39, 4, 4])
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


@pytest.mark.mechanics
def test_options_are_keyword_arguments_as_everywhere(game: Game) -> None:
    chosen = short_options(game)
    one, other = BatchEnv(game, 4, options=chosen), BatchEnv(game, 4, **chosen)
    assert field_bytes(one.states) == field_bytes(other.states)
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'num_thread'"):
        BatchEnv(game, 4, num_thread=2)
    if chosen:
        with pytest.raises(TypeError, match="multiple values for keyword argument"):
            BatchEnv(game, 4, options=chosen, **chosen)


@pytest.mark.mechanics
def test_episodes_are_dealt_anew(game: Game) -> None:
    """`done` marks the step that ends an episode; the next one has other cards."""
    env = BatchEnv(game, 32, seed=13)
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


@pytest.mark.mechanics
def test_tables_can_be_set_and_copied(game: Game) -> None:
    one = random_steps(BatchEnv(game, 8, seed=19), 50)
    two = BatchEnv(game, 8, seed=20)
    two.states[:] = one.states
    two.observe()
    for name in ("obs", "mask", "seat"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert everything(random_steps(one, 100)) == everything(random_steps(two, 100))
    full = np.zeros((8, game.rules.FULL_SIZE), np.int8)
    one.observe_all(full)
    assert np.array_equal(full, observed_in_full(game, one.states, one.seat))


@pytest.mark.mechanics
def test_playouts_are_steps(game: Game) -> None:
    """The fused loops play the moves that the policies choose one by one."""
    streams = np.arange(16, dtype=np.uint64), np.arange(16, dtype=np.uint64)
    fused, stepped = BatchEnv(game, 16, seed=23), BatchEnv(game, 16, seed=23)
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


@pytest.mark.mechanics
def test_random_actions_are_uniform_over_what_is_legal(game: Game) -> None:
    """And drawn from what is known privately: writing into `mask` changes nothing."""
    draws = 4000
    few = random_steps(BatchEnv(game, 6, seed=29), 25)
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


# Wrong input


@pytest.mark.mechanics
def test_illegal_actions_move_nothing(game: Game) -> None:
    """They are known by the rules, not by masks, into which anybody may write."""
    env = mixed_batch(game, 64, seed=1)
    for number, actions in enumerate(walk(env, 200)):
        if number % 20:
            continue
        true = env.mask.copy()
        env.mask[:] = 1
        before = everything(env)
        for action in range(game.rules.NUM_ACTIONS):
            assert np.array_equal(env.are_legal(np.full(64, action)), true[:, action] == 1)
        assert not env.are_legal(np.full(64, -1)).any() and not env.are_legal(np.full(64, true.shape[1])).any()
        table = int(true.min(axis=1).argmin())
        for bad in (-1, true.shape[1], (1 << 32) + int(actions[table]), int(true[table].argmin())):
            wrong = actions.copy()
            wrong[table] = bad
            said = rf"^{game.name}: action {bad} of seat {env.seat[table]} at table {table} is illegal; legal: "
            with pytest.raises(IllegalMove, match=said):
                env.step(wrong)
            assert everything(env) == before
    env.step(env.mask.argmax(axis=1).tolist())  # a list of the right length will do


def test_wrong_arguments_are_refused() -> None:
    streams, actions = np.arange(B, dtype=np.uint64), np.zeros(B, np.int64)
    times = [0, *(number for number in NUMBERS if number is not None)]  # of which a batch without `out` has none
    wrong: list[Any] = [
        actions[:-1], np.zeros(B + 1, np.int64), np.zeros(0, np.int64), actions[:, None], actions * 0.5, actions > 0,
        actions.astype(object) + 0.5, actions.astype(str), actions * 1j, None, "x", 3, [[1], [2, 3]],
    ]  # fmt: skip
    illegal = [np.full(B, number) for number in (-1, 60, 1 << 31, -(1 << 62))]
    stream_buffers, action_buffers = buffers_but((B,), np.uint64), buffers_but((B,), np.int64)
    env = BatchEnv(TINY, B, 3)
    calls: dict[str, Iterable[tuple[Any, ...]]] = {
        "step": [*zip([*wrong, *illegal]), *((actions, t) for t in times)], "observe": zip(times),
        "are_legal": zip(wrong), "observe_all": zip(buffers_but((B, TINY.rules.FULL_SIZE), np.int8)),
        "random_actions": [*((x, actions) for x in stream_buffers), *((streams, x) for x in action_buffers)],
        "bot_actions": [*(("greedy", x) for x in action_buffers), *((x, actions) for x in BOTS)],
        "random_playout": [*((x, 1) for x in stream_buffers), *((streams, x) for x in NUMBERS)],
        "bot_playout": [*(("trivial", x) for x in NUMBERS), *((x, 1) for x in BOTS)],
    }  # fmt: skip
    assert_refused(env, calls)
    assert_fixed(env)


WRONG: dict[str, list[Any]] = {
    "game": [GAMES[next(iter(GAMES))].name, None], "seed": [1.5, "a", -1, True, [1]], "options": [5, "deal", [1]],
    "num_tables": [0, 1.5, "2", True], "num_threads": [0, 1.5, "2", True], "skip_forced": ["no", 1, None],
    "tables": [[0.5, 1], [-1, 0], [True, False], [1], 5],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_no_batch_can_be_made_of(name: str) -> None:
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=name):
            BatchEnv(**{"game": TINY, "num_tables": 2, name: value})


def test_nothing_is_stepped_unseen() -> None:
    """After a playout the masks are those of another position."""
    env = BatchEnv(TINY, B, 3)
    for playout in (partial(env.bot_playout, "greedy"), partial(env.random_playout, np.arange(B, dtype=np.uint64))):
        playout(1)
        before = field_bytes(env.states)
        with pytest.raises(IllegalMove, match=r"call observe\(\) first"):
            env.step(env.mask.argmax(axis=1))
        assert field_bytes(env.states) == before
        env.observe()
        env.step(env.mask.argmax(axis=1))


@pytest.mark.parametrize("seat", [-1, TINY.rules.NUM_SEATS])
def test_states_with_no_such_seat(seat: int) -> None:
    env = BatchEnv(TINY, B, 3)
    env.states["seat"][5] = seat
    for call in (env.observe, lambda: decisions_at(TINY, env.states), lambda: pickle.loads(pickle.dumps(env))):
        with pytest.raises(ValueError, match=f"got {seat}"):
            call()


# Processes


@pytest.mark.mechanics
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of what this tests
def test_a_forked_child_works(game: Game) -> None:
    env = random_steps(BatchEnv(game, MANY, num_threads=2), 10)  # the threads are at work before the fork
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, hashlib.sha256(field_bytes(random_steps(env, 20).states)).digest())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        digest = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert digest == hashlib.sha256(field_bytes(random_steps(env, 20).states)).digest()


@pytest.mark.mechanics
def test_batches_survive_pickling(game: Game) -> None:
    env = random_steps(BatchEnv(game, MANY, num_threads=2, skip_forced=True), 20)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.game == game
    assert everything(twin) == everything(env)
    assert everything(random_steps(twin, 20)) == everything(random_steps(env, 20))


def trajectory(game: Game, num_tables: int = 64, moves: int = 300, seed: int = 0) -> str:
    """Hash of all that random play shows."""
    env = BatchEnv(game, num_tables, seed)
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


PRINT_PLAYED = "import sys; from tests.engine.test_batch import played; print(*map(played, {names}))"


def test_other_processes_get_the_same_bytes(games: list[Game]) -> None:
    """Compiled in a fresh process with another hash seed."""
    here = [played(game.name) for game in games]
    code = PRINT_PLAYED.format(names=[game.name for game in games])
    assert run_python("-c", code, PYTHONHASHSEED="random").stdout.split() == here


@pytest.mark.processes
def test_interpreted_rules_get_the_same_bytes(games: list[Game]) -> None:
    """The rules as plain Python, for debugging and coverage."""
    code = PRINT_PLAYED.format(names=[game.name for game in games])
    assert run_python("-c", code, NUMBA_DISABLE_JIT="1").stdout.split() == [played(game.name) for game in games]


# The cache


# What the compiler made of the rules


def bounds_and_types(game_name: str) -> None:
    """For a fresh process with NUMBA_BOUNDSCHECK: play everything, and print where types are wrong."""
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
    switches: Any = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    code = f"from tests.engine.test_batch import bounds_and_types; bounds_and_types({game.name!r})"
    violations = run_python("-c", code, **switches).stdout
    assert not violations.strip(), violations


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
