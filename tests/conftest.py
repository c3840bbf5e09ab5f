"""What all tests share: every game of the registry as the parameter `game`, and positions reached by play.

The template of new games is registered like those of the package: one entry, nothing else. With `--game its.package`
the shared tests run for a game of another package, which has `GAME` and the folder `tests`
(`card_envs/testing/referee.py`).
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs.compiling import specialize
from card_envs.compiling._cache import CheckedCache
from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.legality import IllegalMove
from card_envs.engine.rng import table_keys
from card_envs.engine.table import Table
from card_envs.envs._registration import register_all
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import opponent_names
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.policy import Decisions
from card_envs.options import describe_options
from card_envs.scaffold.high_card import GAME as TINY_GAME

pytest.register_assert_rewrite("card_envs.testing.referee")
from card_envs.testing.referee import facts_of  # noqa: E402

Options = dict[str, Any]
Network = TypeVar("Network", bound=TrainedPolicy)

os.environ["CARD_ENVS_QUIET"] = "1"  # tests read what else their processes print
# Under `nohup make test &` both are ignored, also in the processes that tests start and send them to.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, lambda number, frame: None)  # which started processes don't inherit, and `nohup` holds
STARTED = time.monotonic()
ROOT = Path(__file__).parents[1]
BUILT = ROOT / "js" / "built"
ONLY = "CARD_ENVS_TEST_GAME"  # the package of the only game to test; processes that tests start see it as well

# Their tests share what takes long to make: a server, a trained network, a library, a copy of the checkout.
SHARING = {f"test_{name}.py" for name in ("clients", "documents", "library", "scaffold")}
# Besides the games', those that take longest.
LONG = re.compile(r"tests/training/|serve/test_guard|test_(console|documents|library|scaffold)\.py$")


def games_under_test() -> list[Game]:
    """The games to test, which the registry knows from now on."""
    only = os.environ.get(ONLY)
    game: Game = import_module(only).GAME if only else TINY_GAME
    GAMES.update({TINY_GAME.name: TINY_GAME, game.name: game})
    register_all()
    return [game] if only else list(GAMES.values())


games_under_test()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--game", metavar="PACKAGE", help="test the game of this package alone: it has `GAME` and `tests`")
    parser.addoption("--share", metavar="K/N", type=share, help="one of N shares of the tests, K from 0")
    parser.addoption("--minutes", type=float, help="begin no test later: skip the rest")


def share(text: str) -> tuple[int, int]:
    """Parse `2/5`: the third of five shares."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or int(found[1]) >= int(found[2]):
        raise argparse.ArgumentTypeError(f"expected K/N with K from 0 to N-1, got {text!r}")
    return int(found[1]), int(found[2])


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--game"):
        os.environ[ONLY] = config.getoption("--game")
    if "PYTEST_XDIST_WORKER" in os.environ and os.name == "posix":
        compile_one_at_a_time()


def compile_one_at_a_time() -> None:
    """Let a process that needs a loop wait for another one that compiles it: it then finds it in the cache."""
    whole = Dispatcher.compile

    def compile_or_wait(self: Any, signature: Any) -> Any:
        if not isinstance(self._cache, CheckedCache):
            return whole(self, signature)
        # The compiler's lock first, as threads take it as well: else two of them could wait for each other.
        with global_compiler_lock, alone_with(str(self._cache._cache_file._index_path)):
            return whole(self, signature)

    setattr(Dispatcher, "compile", compile_or_wait)  # noqa: B010 - or type checkers compare the two


@contextmanager
def alone_with(name: str) -> Iterator[None]:
    """Be the only process in here with this name; the system ends it for one that dies."""
    import fcntl  # which Windows lacks

    folder = Path(tempfile.gettempdir()) / f"card_envs-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / hashlib.sha256(name.encode()).hexdigest()[:16]).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@cache
def built_for_js(games: tuple[Game, ...], targets: tuple[str, ...]) -> Path:
    """Build rules and players of games where slow tests and `make npm` do, so that each is built once.

    One process at a time builds, with all cores.
    """
    from card_envs.build import build_api

    with alone_with("js/built"):
        build_api(games, targets, BUILT)
    return BUILT


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test with a parameter `game` runs for all games, unless it names its own.

    Those marked `mechanics` test what is the same for all: by default on the smallest game, and as a slow test on one
    of the others, each test on another one. Those marked `few_games` compile for long: by default on the smallest game
    and on a patience, as slow tests on the others.
    """
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "game" in metafunc.fixturenames and not any("game" in names for names in named):
        games = games_under_test()
        marks: dict[Game, Any] = dict.fromkeys(games, ())
        if metafunc.definition.get_closest_marker("mechanics") and len(games) > 1:
            others = [game for game in games if game != TINY_GAME]
            other = others[zlib.crc32(metafunc.definition.name.encode()) % len(others)]
            marks = {TINY_GAME: (), other: pytest.mark.slow}
        if metafunc.definition.get_closest_marker("few_games") and len(games) > 1:
            marks |= {game: pytest.mark.slow for game in games if game != TINY_GAME and not game.is_solitaire}
        metafunc.parametrize("game", [pytest.param(game, id=game.name, marks=marks[game]) for game in marks])


def scope_of(nodeid: str) -> str:
    """Which tests one process runs: all of a game, so that it loads each loop once; others by file."""
    file = nodeid.partition("::")[0]
    return file if file.rpartition("/")[2] in SHARING else next((name for name in GAMES if name in nodeid), file)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a share of the tests if asked to; let workers begin with what takes longest, so that both end at once."""
    if config.getoption("--share"):
        which, shares = config.getoption("--share")
        # Together: tests of a file and a game, which share what takes long to make.
        own = [zlib.crc32(f"{item.path.name} {scope_of(item.nodeid)}".encode()) % shares == which for item in items]
        config.hook.pytest_deselected(items=[item for item, keep in zip(items, own) if not keep])
        items[:] = [item for item, keep in zip(items, own) if keep]
    if "PYTEST_XDIST_WORKER" in os.environ:
        scopes = {item: scope_of(item.nodeid) for item in items}
        items.sort(key=lambda item: (scopes[item] not in GAMES, not LONG.search(scopes[item])))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out scopes in the order in which they were collected; a GPU's tests singly: each has its own kernels."""
    if config.option.markexpr == "gpu":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGame(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False
    return ByGame(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is none, and what there is no time for."""
    minutes = item.config.getoption("--minutes")
    if minutes is not None and time.monotonic() - STARTED > 60 * minutes:
        pytest.skip(f"{minutes:g} minutes are over")
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("there is no GPU")


def listed_values(annotation: Any) -> list[Any]:
    """The values that an option's type spells out: of its Literals, also within a union, and of `bool`."""
    if annotation is bool:
        return [False, True]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for part in get_args(annotation) for value in listed_values(part)]


def rare_options(game: Game) -> set[str]:
    """The options that are tested only in the sets that the game's own tests list."""
    rare: set[str] = getattr(facts_of(game), "RARE", set())
    return rare


@cache
def spelled_out_options(game: Game) -> tuple[Options, ...]:
    """Every combination of the values that the options spell out, except RARE ones; the first one is the defaults."""
    choices = []
    for name, field in describe_options(game.options).items():
        if name in rare_options(game):
            continue
        others = [value for value in listed_values(field.type) if value != field.default]
        choices.append([{}, *({name: value} for value in others)])
    return tuple({key: value for part in parts for key, value in part.items()} for parts in itertools.product(*choices))


@cache
def option_sets(game: Game) -> tuple[Options, ...]:
    """Return `spelled_out_options` and those that the game's own tests list, the ones with RARE options last."""
    sets: list[Options] = list(spelled_out_options(game))
    sets += [options for options in facts_of(game).OPTIONS if options not in sets]
    return tuple(sorted(sets, key=lambda options: not rare_options(game).isdisjoint(options)))


@cache
def usual_sets(game: Game) -> tuple[Options, ...]:
    """Those of `option_sets` without RARE options."""
    return tuple(options for options in option_sets(game) if rare_options(game).isdisjoint(options))


@cache
def short_options(game: Game) -> Options:
    """The spelled-out options with the shortest episodes, for tests that play many of them."""

    def length(options: Options) -> float:
        env = BatchEnv(game, 16, options=options)
        env.random_playout(np.arange(16, dtype=np.uint64), 2000)
        ended = env.random_playout(np.arange(16, dtype=np.uint64), 2000)
        return 1 / max(ended, 0.5)

    return min(spelled_out_options(game), key=length)


def mixed_batch(game: Game, num_tables: int, seed: int, options: tuple[Options, ...] = ()) -> BatchEnv:
    """A batch whose tables have all these option sets (default: `option_sets`) in turn."""
    sets = options or option_sets(game)
    env = BatchEnv(game, num_tables, seed)
    for i in range(num_tables):
        env.states[i] = game.rules.new_state(game.validated(sets[i % len(sets)]))
    specialize(kernels.reset_tables, game)(0, num_tables, env.states, table_keys(seed, np.arange(num_tables)))
    env.observe()
    return env


def walk(env: BatchEnv, steps: int, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """Play on, table by table at random, with `trivial`, with `greedy`, or with a careless `greedy`.

    Yields the actions about to be played; the step follows when the caller comes back.
    """
    num_tables = env.num_tables
    rng = np.random.default_rng(seed)
    streams = rng.integers(0, 1 << 64, num_tables, np.uint64)
    style = np.arange(num_tables) // 3 % 4
    chosen, trivial, greedy = (np.zeros(num_tables, np.int64) for _ in range(3))
    for _ in range(steps):
        assert env.mask.any(axis=1).all(), "legal: no action is legal at some table"
        env.random_actions(streams, chosen)
        env.bot_actions("trivial", trivial)
        env.bot_actions("greedy", greedy)
        bold = (style == 2) | ((style == 3) & (rng.random(num_tables) < 0.8))
        actions = np.where(style == 1, trivial, np.where(bold, greedy, chosen))
        yield actions
        env.step(actions)


@cache
def positions(game: Game) -> NDArray[Any]:
    """[about 4000] States in which a decision is due, from all over the episodes, under all options.

    The first 256 are those after the first deal; `usual_positions` come before those with RARE options.
    """
    rare = option_sets(game)[len(usual_sets(game)) :]
    states: NDArray[Any] = usual_positions(game)
    if rare:
        states = np.concatenate([states, visited(game, rare, num_tables=32)])
        states.flags.writeable = False
    return states


@cache
def usual_positions(game: Game) -> NDArray[Any]:
    """The positions without RARE options: a new option does not change them."""
    return visited(game, usual_sets(game), num_tables=256)


def visited(
    game: Game, sets: tuple[Options, ...], num_tables: int, steps: int = 1500, per_table: int = 16
) -> NDArray[Any]:
    """[about num_tables * per_table] States in which a decision is due, the first `num_tables` after the first deal."""
    env = mixed_batch(game, num_tables, seed=7, options=sets)
    rng = np.random.default_rng(8)
    chosen = (env.states[rng.random(num_tables) < (per_table - 1) / steps] for _ in walk(env, steps, seed=9))
    states: NDArray[Any] = np.concatenate([env.states.copy(), *chosen])
    states.flags.writeable = False
    return states


class CompiledRules(NamedTuple):
    """A game's rules on table `i` of an array of States."""

    deal: Callable[[NDArray[Any], int], None]
    set_deal: Callable[[NDArray[Any], int, NDArray[np.int8]], None]  # from this pack
    legal: Callable[[NDArray[Any], int, NDArray[np.int8]], int]  # writes the mask
    play: Callable[[NDArray[Any], int, int], None]  # this action


@cache
def rules_of(game: Game) -> CompiledRules:
    return CompiledRules(*(specialize(getattr(kernels, f"{name}_table"), game) for name in CompiledRules._fields))


@cache
def fewest_moves(game: Game) -> int:
    """The moves of the shortest of some episodes, with `short_options`."""
    return min(
        len(play_randomly(new_env(game, seed, **short_options(game)), seed).record().moves) for seed in range(64)
    )


def need_moves(game: Game, number: int) -> None:
    """Skip a test of what comes before the last of that many moves, where an episode may have fewer."""
    if fewest_moves(game) < number:
        pytest.skip(f"an episode may be over after {fewest_moves(game)} moves")


def random_moves(game: Game, states: NDArray[Any], streams: NDArray[np.uint64]) -> NDArray[np.int32]:
    """[n] what `random_move` draws; the streams [n] move on."""
    moves = np.zeros(len(states), np.int32)
    specialize(kernels.random_moves, game)(0, len(states), states, streams, moves)
    return moves


def seats_of(game: Game, states: NDArray[Any], shift: int) -> NDArray[np.int8]:
    """[n] the seats that many places after the one to move."""
    return ((states["seat"] + shift) % game.rules.NUM_SEATS).astype(np.int8)


def quick_opponents(game: Game) -> list[str]:
    """The game's opponents but for those that search; these have tests of their own."""
    plain = ((name, game.presets.get(name, name)) for name in opponent_names(game))
    return [name for name, meant in plain if "search:" not in meant]


def is_timed(game: Game, name: str) -> bool:
    """Whether an opponent takes its time, so that it does not repeat exactly."""
    return bool(re.search(r"\d+ms", game.presets.get(name, name)))


def some(states: NDArray[Any], number: int, seed: int = 0) -> NDArray[Any]:
    """A random choice of that many of the states."""
    chosen: NDArray[Any] = states[np.random.default_rng(seed).choice(len(states), min(number, len(states)), False)]
    return chosen


def redealt(game: Game, states: NDArray[Any], seats: NDArray[np.int8], seed: int) -> NDArray[Any]:
    """Copies in which what each seat can't know is drawn again."""
    worlds: NDArray[Any] = states.copy()
    keys = np.random.default_rng(seed).integers(0, 1 << 64, len(worlds), np.uint64)
    specialize(kernels.determinize_tables, game)(0, len(worlds), worlds, seats, keys)
    return worlds


def observed(game: Game, states: NDArray[Any], seats: NDArray[np.int8]) -> NDArray[np.int8]:
    """[n, D] what each of these seats sees."""
    observe = specialize(kernels.observe_table, game)
    obs = np.full((len(states), game.rules.OBS_SIZE), 99, np.int8)
    for i, seat in enumerate(seats.tolist()):
        observe(states, i, seat, obs[i])
    return obs


def observed_in_full(game: Game, states: NDArray[Any], seats: NDArray[np.int8]) -> NDArray[np.int8]:
    """[n, FULL_SIZE] the full states seen from these seats."""
    full = np.full((len(states), game.rules.FULL_SIZE), 99, np.int8)
    specialize(kernels.observe_all_tables, game)(0, len(states), states, seats, full)
    return full


def bots_moves(game: Game, states: NDArray[Any]) -> NDArray[np.int32]:
    """[2, n] what `trivial` and `greedy` play."""
    moves = np.zeros((2, len(states)), np.int32)
    for bot, row in zip(("trivial", "greedy"), moves):
        specialize(kernels.bot_actions, game, bot)(0, len(states), states, row)
    return moves


def differing_fields(one: NDArray[Any], other: NDArray[Any]) -> list[str]:
    """The State fields in which two arrays of States differ anywhere."""
    return [name for name in one.dtype.names or () if not np.array_equal(one[name], other[name])]


def field_bytes(states: NDArray[Any]) -> bytes:
    """The States as bytes, without the padding between fields: NumPy's copies leave that as it happens to be."""
    return b"".join(states[name].tobytes() for name in states.dtype.names or ())


def untrained(game: Game, kind: type[Network], hidden: list[int], sampled: bool = False, seed: int = 1) -> Network:
    """Make a network that has learned nothing."""
    rng, shapes = np.random.default_rng(seed), kind.shapes(game, hidden)
    weights = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    return kind(game, weights, sampled=sampled)


def new_env(game: Game, seed: int = 1, **arguments: Any) -> CardEnv:
    """An environment, freshly dealt."""
    env = CardEnv(game, **arguments)
    env.reset(seed=seed)
    return env


def play_randomly(env: CardEnv, seed: int, moves: int | None = None) -> CardEnv:
    """Play that many random legal moves, or to the end; returns the environment."""
    rng = np.random.default_rng(seed)
    while not env.outcome()["over"] and (moves is None or moves > 0):
        env.step(rng.choice(np.flatnonzero(env.observe(env.agent_selection)["action_mask"])))
        moves = None if moves is None else moves - 1
    return env


def table_of(game: Game, options: Options, seed: int, number: int = 0) -> Table:
    """A freshly dealt table with the stream of that seed and number."""
    table = Table(game, game.rules.new_state(game.validated(options)))
    table.seed(seed, number)
    table.deal()
    return table


def run(*words: object) -> tuple[int, str]:
    """Run a command in this process; return its exit status and output. Raises its exception."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def run_python(
    *words: object, folder: Path = ROOT, paths: tuple[Path, ...] = (), stdin: str | None = None, status: int = 0,
    **environment: str,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run Python in a process of its own, which sees these paths and the checkout and must end with that status."""
    path = os.pathsep.join(map(str, filter(None, (*paths, ROOT, os.environ.get("PYTHONPATH")))))
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, input=stdin, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"} | environment,
    )  # fmt: skip
    assert done.returncode == status, done.stdout[-3000:] + done.stderr[-4000:]
    return done


def interrupted(ask: Callable[[], Any], event: int) -> bool:
    """Return whether Ctrl-C came before the end, at this event (a call or a return) of Python's profiler."""
    num_events = 0

    def count(*_: Any) -> None:
        nonlocal num_events
        num_events += 1
        if num_events == event:
            raise KeyboardInterrupt

    has_come = True
    try:
        sys.setprofile(count)
        ask()
        has_come, event = num_events >= event, 0  # nothing is raised from here on
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return has_come


def command_parameters(kind: str) -> Iterator[tuple[str, str]]:
    """Yield every command with each of its parameters whose type names this kind, such as "Path"."""
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        hints = get_type_hints(command.callback)
        yield from ((name, one) for one in signature(command.callback).parameters if kind in str(hints[one]))


class Counting:
    """Plays by how often it has been asked."""

    def __init__(self, game: Game) -> None:
        self.calls = 0

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        self.calls += 1
        ranks = decisions.mask.cumsum(axis=1) * decisions.mask
        return (ranks == 1 + self.calls % ranks.max(axis=1, keepdims=True)).argmax(axis=1)


class FirstLegal:
    """A user's own policy: always the first legal action."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmax(axis=1)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        return np.eye(decisions.mask.shape[1], dtype=np.float32)[decisions.mask.argmax(axis=1)]


def program(*names: str) -> str:
    """Where a program is that goes by one of these names; the test is skipped where there is none.

    `.ci/run` installs such programs and names them in CARD_ENVS_DEMANDED: then it fails instead.
    """
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        missing = f"{names[0]} is not installed"
        assert names[0] not in os.environ.get("CARD_ENVS_DEMANDED", "").split(), missing
        pytest.skip(missing)
    return found


def npm_install(folder: Path, *packages: str) -> None:
    """Install packages for JavaScript; the test is skipped where npm's registry can't be reached."""
    words = [program("npm"), "install", "--no-audit", "--no-fund", *packages]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if re.search("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH", done.stderr):
        pytest.skip("npm's registry can't be reached")
    assert done.returncode == 0, done.stderr


# Arguments that are nothing of the kind.
THINGS: list[Any] = [None, True, -1, 1 << 70, 1.5, float("nan"), "x", [], {"a": 1}, object(), np.zeros(3)]
NUMBERS: list[Any] = [*THINGS, 1.0, "1", [1]]
BOTS: list[Any] = [*THINGS, "nobody", "", "legal", ["greedy"]]


def buffers_but(shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """All that is no writable, contiguous array of that shape and type."""
    good = np.zeros(shape, dtype)
    locked = good.copy()
    locked.flags.writeable = False
    other = np.uint8 if dtype != np.uint8 else np.int8
    return [
        good[:-1], np.zeros((shape[0] + 1, *shape[1:]), dtype), good[None], np.zeros(0, dtype), good.astype(other),
        good.astype(np.float64), good.astype(object), np.zeros((shape[0] * 2, *shape[1:]), dtype)[::2], good[::-1],
        locked, good.astype(good.dtype.newbyteorder()) if good.itemsize > 1 else None, good.tolist(), None, 5, "x",
        np.zeros(good.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape) if good.itemsize > 1 else None,
    ]  # fmt: skip


def assert_refused(thing: Any, calls: dict[str, Iterable[tuple[Any, ...]]], safe: Set[str] = frozenset()) -> None:
    """Every public method refuses, in words, arguments that compiled code can't take, and nothing moves.

    `safe`: those that take none, or have tests of their own. A method that is in neither fails here.
    """
    assert {name for name in vars(type(thing)) if not name.startswith("_")} == {*calls, *safe}
    for name, wrong in calls.items():
        for number, arguments in enumerate(wrong):
            before = field_bytes(thing.states) if hasattr(thing, "states") else b""
            with pytest.raises(ValueError, match=r"expected|illegal") as caught:
                getattr(thing, name)(*arguments)
            assert "expected" in str(caught.value) or isinstance(caught.value, IllegalMove), (name, number)
            assert len(str(caught.value)) < 2000, (name, number)
            assert not hasattr(thing, "states") or field_bytes(thing.states) == before, (name, number)


def assert_fixed(thing: Any) -> None:
    """Public attributes of batches and tables can't be replaced, because compiled code relies on them."""
    public = [name for name in vars(thing) if not name.startswith("_")]
    assert {"game", "states"} <= set(public)
    for name in public:
        with pytest.raises(AttributeError, match="can't be replaced"):
            setattr(thing, name, getattr(thing, name))
        with pytest.raises(AttributeError, match="can't be deleted"):
            delattr(thing, name)


@pytest.fixture
def games() -> list[Game]:
    """All games at once, for tests that start a process for them."""
    return games_under_test()
