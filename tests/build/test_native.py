"""The C interface and the WebAssembly module of a game: the same as in Python, byte for byte and move for move."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs import load_opponent
from card_envs.build import build_api
from card_envs.compiling._rules import INTERPRETED
from card_envs.engine.table import Table
from card_envs.game import Game, State
from card_envs.opponents import opponent_names
from card_envs.opponents.policy import decisions_at
from card_envs.reviews import MoveJudge
from card_envs.scaffold.high_card import GAME as TINY
from tests.build.test_js import PORTED
from tests.conftest import built_for_js, option_sets, positions, program, run_python, some, table_of

ROOT = Path(__file__).parents[2]
OF_TINY = ("trivial", "greedy", "search:64", "search:32,moves=turn")
HAS_ZIG = find_spec("ziglang") is not None
TARGETS = ("native", "wasm32") if HAS_ZIG else ("native",)
MOST = 300  # decisions of a game that are compared in full
ROWS = "means", "advantages", "worlds"

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(INTERPRETED, reason="nothing is compiled"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each target, of the smallest game."""
    folder = tmp_path_factory.mktemp("api")
    build_api([TINY], TARGETS, folder, opponents=OF_TINY)
    return folder


def whole(*games: Game) -> Path:
    """Build other games, with their presets: takes long the first time."""
    return built_for_js(games, TARGETS)


class Library:
    """A game's C library."""

    def __init__(self, folder: Path, game: Game) -> None:
        self.game, self.folder = game, folder
        self.known = json.loads((folder / f"{game.name}.json").read_text())
        self.library = ctypes.CDLL(str(next(folder.glob(f"libcard_envs_{game.name}.*"))))
        self.memory: dict[str, NDArray[Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Any = getattr(self.library, f"card_envs_{self.game.name}_{name}")
        function.restype = {
            "error": ctypes.c_char_p, "move_text": ctypes.c_char_p, "state_size": ctypes.c_uint64,
            "player_memory": ctypes.c_uint64, "init": None,
        }.get(name, ctypes.c_int32)  # fmt: skip

        def call(*arguments: Any) -> Any:
            return function(*[ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments])

        return call

    def load(self, player: str, content: bytes | None = None, size: int | None = None) -> int:
        """Load a player from its file, or from something else."""
        known = self.known["players"][player]
        content = (self.folder / known["file"]).read_bytes() if content is None else content
        self.memory[player] = aligned(known["memory"])
        room = len(self.memory[player]) if size is None else size
        length = ctypes.c_uint64(len(content))
        return int(self.load_player(player.encode(), content, length, self.memory[player], ctypes.c_uint64(room)))

    def advise(self, player: str, state: State, keys: NDArray[np.uint64]) -> tuple[list[int], NDArray[np.float64]]:
        """Ask a player; return its actions, and the values of all."""
        if player not in self.memory:
            assert self.load(player) == 0
        actions, values = np.zeros(32, np.int16), np.zeros((len(ROWS), self.game.rules.NUM_ACTIONS))
        given = np.array([state], self.game.rules.STATE)
        before = given.tobytes()
        number = getattr(self, f"advise_{player}")(given, self.memory[player], keys, actions, values)
        assert given.tobytes() == before
        return actions[:number].tolist(), values

    def judge(self, player: str, state: State, key: NDArray[np.uint64], action: int) -> tuple[int, float, float]:
        if player not in self.memory:
            assert self.load(player) == 0
        found = np.zeros(2)
        given = np.array([state], self.game.rules.STATE)
        best = getattr(self, f"judge_{player}")(given, self.memory[player], key, action, found)
        return best, *found.tolist()


def aligned(size: int) -> NDArray[Any]:
    whole = np.full(size + 64, 0x5A, np.uint8)  # not zero: a player's memory need not be
    start = -whole.ctypes.data % 64
    return whole[start : start + size]


def clean(states: Any) -> bytes:
    """The bytes of a State; those between its fields, which copies leave undefined, are zero."""
    whole = np.zeros(1, states.dtype)
    for name in states.dtype.names:
        whole[name] = states[name]
    return whole.tobytes()


def keys_of(seed: int) -> NDArray[np.uint64]:
    """The keys that a search draws from a generator with this seed."""
    rng = np.random.default_rng(seed)
    return np.array([rng.integers(0, 1 << 64, 1, np.uint64)[0] for _ in range(2)], np.uint64)


def expected(game: Game, player: str, state: State, seed: int) -> tuple[int, dict[str, list[Any]] | None]:
    """Return the action that Python's player chooses, and its values."""
    policy = load_opponent(player, game).policy
    policy.reset()
    decisions = decisions_at(game, np.array([state], game.rules.STATE))
    action = int(policy.act(decisions, np.random.default_rng(seed))[0])
    policy.reset()
    worth = policy.evaluate(decisions, np.random.default_rng(seed))
    return action, None if worth is None else {name: getattr(worth, name)[0].tolist() for name in ROWS}


def expected_cost(game: Game, player: str, state: State, seed: int) -> tuple[int, tuple[int, float, float]]:
    """Return some legal action, and what Python's judge says of it."""
    decisions = decisions_at(game, np.array([state], game.rules.STATE))
    legal = np.flatnonzero(decisions.mask[0])
    played = int(legal[seed % len(legal)])
    judge = MoveJudge(load_opponent(player, game))
    best, cost, error = judge.costs(decisions, np.array([played]), np.random.default_rng(seed))
    return played, (int(best[0]), float(cost[0]), float(error[0]))


def safe(player: str) -> str:
    """A player's name as the library has it."""
    return re.sub(r"\W", "_", player)


def plays(game: Game, number: int) -> Iterator[tuple[Table, int]]:
    """Tables at the first decisions of games with options, seeds and random moves, and the seed."""
    rng = np.random.default_rng(1)
    sets = option_sets(game)
    for seed in range(number):
        table = table_of(game, sets[seed % len(sets)], seed)
        for _ in range(MOST):
            if table.over:
                break
            yield table, seed
            table.play(int(rng.choice(np.flatnonzero(table.legal()))))
            while table.needs_deal and not table.over:
                yield table, seed
                table.deal()
        yield table, seed


def same_rules(library: Library, number: int) -> int:
    """Play games in both; return how many positions were the same."""
    game = library.game
    rules = game.rules
    mask, obs, rewards = np.zeros(rules.NUM_ACTIONS, np.int8), np.zeros(rules.OBS_SIZE, np.int8), np.zeros(0)
    rewards = np.zeros(rules.NUM_SEATS, np.float32)
    count = 0
    for table, seed in plays(game, number):
        count += 1
        state = table.states.copy()
        assert library.seat(state) == (-2 if table.needs_deal else table.seat)
        assert library.over(state) == table.over
        assert library.legal(state, mask) == table.legal().sum()
        assert np.array_equal(mask, table.legal())
        library.rewards(state, rewards)
        assert rewards.tolist() == table.rewards
        for seat in range(rules.NUM_SEATS):
            assert library.observe(state, seat, obs) == 0
            assert np.array_equal(obs, table.observe(seat))
        assert clean(state) == clean(table.states)
        if table.needs_deal:
            dealt = table.copy()
            dealt.deal()
            assert library.play(state, 0) == -2
            assert library.deal(state) == 0
            assert clean(state) == clean(dealt.states)
            again = table.states.copy()
            assert library.set_deal(again, game.view.dealt_pack(dealt.state)) == 0
            assert np.array_equal(game.view.dealt_pack(again[0]), game.view.dealt_pack(dealt.state))
            continue
        assert library.deal(state) == -3
        redrawn = table.copy()
        redrawn.determinize(table.seat, seed)
        assert library.determinize(state, table.seat, np.array([seed], np.uint64)) == 0
        assert clean(state) == clean(redrawn.states)
        for action in range(rules.NUM_ACTIONS):
            state = table.states.copy()
            if mask[action]:
                text = game.view.move_text(table.state, action)
                assert library.move_text(state, action).decode() == text
                assert library.parse_move(state, text.encode()) == action
                played = table.copy()
                played.play(action)
                assert library.play(state, action) == 0
                assert clean(state) == clean(played.states)
            else:
                assert library.play(state, action) == -1
                assert clean(state) == clean(table.states)
    return count


def same_players(library: Library, states: Any, players: list[str]) -> None:
    for player in players:
        for seed, state in enumerate(states):
            action, worth = expected(library.game, player, state, seed)
            actions, values = library.advise(safe(player), state, keys_of(seed))
            assert actions[0] == action, (player, seed)
            if worth is not None and not np.isnan(values).all():
                worlds = np.nan_to_num(values[2])
                np.testing.assert_array_equal(worlds, worth["worlds"])
                tried = worlds > 0
                for row, name in zip(values[:2], ROWS[:2]):
                    np.testing.assert_allclose(row[tried], np.array(worth[name])[tried], rtol=1e-12, equal_nan=True)


def test_rules_in_c(built: Path) -> None:
    assert same_rules(Library(built / "native", TINY), 40) > 200


def test_players_in_c(built: Path) -> None:
    same_players(Library(built / "native", TINY), some(positions(TINY), 60), list(OF_TINY))


def same_judges(library: Library, states: Any, players: list[str]) -> None:
    priced = 0
    for player in players:
        for seed, state in enumerate(states):
            played, cost = expected_cost(library.game, player, state, seed)
            found = library.judge(safe(player), state, keys_of(seed)[:1], played)
            assert found == pytest.approx(cost, rel=1e-12), (player, seed)
            priced += cost[2] > 0
    assert priced > len(players)


def test_judges_in_c(built: Path) -> None:
    library = Library(built / "native", TINY)
    same_judges(library, some(positions(TINY), 60), list(OF_TINY[2:]))
    assert library.judge(safe(OF_TINY[2]), positions(TINY)[0], keys_of(0)[:1], TINY.rules.NUM_ACTIONS)[0] == -1


MODULE_OF_A_PLAYER = """
import sys
from pathlib import Path

from card_envs.build import _native
from card_envs.compiling import targets
from card_envs.scaffold.high_card import GAME

prepared = _native.prepare(_native.Task(GAME.package, "search:8,moves=turn", ("equal",)))
targets.object_code = lambda text, target: print(text) or b""  # what would be made machine code of
_native.compile_task(prepared, ("native",), Path(sys.argv[1]))
"""


def test_a_player_has_its_search_once(tmp_path: Path) -> None:
    """Not in each function that decides, nor again for a player made of the same; and it is called, not inlined."""
    done = run_python("-c", MODULE_OF_A_PLAYER, tmp_path, CARD_ENVS_NATIVE="0")
    heads = re.findall(r"^define (.*)$", done.stdout, re.MULTILINE)
    seen = [re.search(r"@(card_envs_\w+)", head) for head in heads if not head.startswith("internal")]
    names = {match[1] for match in seen if match}
    stem = "card_envs_high_card"
    assert names == {f"{stem}_{what}_{who}" for what in ("advise", "judge") for who in ("search_8_moves_turn", "equal")}
    groups = dict(re.findall(r"^attributes (#\d+) = (.*)$", done.stdout, re.MULTILINE))
    for function in ("answer_search", "find_macros", "decide"):
        (head,) = (head for head in heads if re.search(rf"\d{function}B", head))
        assert not any("alwaysinline" in groups[group] for group in re.findall(r"#\d+", head))
    assert any("alwaysinline" in attributes for attributes in groups.values())  # which others are


def test_no_player_sees_hidden_cards(built: Path) -> None:
    library = Library(built / "native", TINY)
    for seed, state in enumerate(some(positions(TINY), 60)):
        other = Table(TINY, state)
        other.determinize(other.seat, seed)
        for player in library.known["opponents"]:
            mine, values = library.advise(player, state, keys_of(seed))
            again, values_again = library.advise(player, other.state, keys_of(seed))
            assert mine == again
            np.testing.assert_array_equal(values, values_again)


def test_what_is_wrong_is_said(built: Path) -> None:
    library = Library(built / "native", TINY)
    state, obs = np.zeros(1, TINY.rules.STATE), np.zeros(TINY.rules.OBS_SIZE, np.int8)
    library.init(state)
    fresh = np.zeros(1, TINY.rules.STATE)
    fresh[0] = TINY.rules.new_state(TINY.options())
    assert clean(state) == clean(fresh)
    assert library.state_size() == TINY.rules.STATE.itemsize
    assert library.set_option(state, b"reward=nothing") == -5
    for option in library.known["choices"]:
        assert library.set_option(state, option.encode()) == 0
    assert library.begin(state, np.array([7], np.uint64)) == 0
    seats = TINY.rules.NUM_SEATS
    assert [library.observe(state, seat, obs) for seat in (-1, seats)] == [-4, -4]
    assert [library.play(state, action) for action in (-1, TINY.rules.NUM_ACTIONS, 1 << 30)] == [-1, -1, -1]
    assert library.move_text(state, TINY.rules.NUM_ACTIONS) is None
    assert library.parse_move(state, b"no move") == -6
    assert library.error(-5) == b"there is no such option" and library.error(-6) == b"that is not a move"
    assert library.player_memory(b"nobody") == 0
    player = "search_32_moves_turn"
    content = (built / "native" / f"high_card.{player}.player").read_bytes()
    assert library.load(player) == 0
    assert library.load(player, size=library.player_memory(player.encode()) - 1) == -9
    for wrong in (b"", content[:20], content[:-1], content + b"\0", content.replace(b"CARDENV2", b"CARDENV1")):
        assert library.load(player, wrong) == -8
    offset = 8 + 16 + 4 + 4  # of the first segment: where its content goes
    outside = bytearray(content[:offset] + b"\xff" * 8 + content[offset + 8 :])
    struct.pack_into("<I", outside, 8 + 16, zlib.crc32(outside[8 + 16 + 4 :]))
    assert library.load(player, bytes(outside)) == -8
    assert library.load_player(b"nobody", content, ctypes.c_uint64(len(content)), state, ctypes.c_uint64(0)) == -7


def damaged(content: bytes) -> Iterator[bytes]:
    """A file with one byte changed, or two exchanged: what a disk or a network may do."""
    rng = np.random.default_rng(3)
    places = range(len(content)) if len(content) < 500 else sorted(rng.integers(0, len(content), 500))
    for place in places:
        for bits in (1, 0x80, 0xFF):
            yield content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]
        pair = content[place : place + 2]
        if pair != pair[::-1]:
            yield content[:place] + pair[::-1] + content[place + 2 :]


def test_damaged_players_are_refused(built: Path) -> None:
    """Wherever the damage is; the memory is as it was."""
    library = Library(built / "native", TINY)
    for player, known in library.known["players"].items():
        assert library.load(player) == 0
        ready, memory = library.memory[player].copy(), library.memory[player]
        for wrong in damaged((built / "native" / known["file"]).read_bytes()):
            length, room = ctypes.c_uint64(len(wrong)), ctypes.c_uint64(len(memory))
            assert library.load_player(player.encode(), wrong, length, memory, room) == -8
        assert np.array_equal(memory, ready)


def cases(game: Game, number: int, states: Any, players: list[str]) -> Iterator[dict[str, Any]]:
    """What Node is to find: positions of games with what follows, and answers of players."""

    def packed(state: Any) -> str:
        return base64.b64encode(clean(state)).decode()

    rng = np.random.default_rng(2)
    for table, seed in plays(game, number):
        known: dict[str, Any] = {"state": packed(table.states), "legal": table.legal().tolist()}
        if table.needs_deal:
            dealt = table.copy()
            dealt.deal()
            yield known | {"dealt": packed(dealt.states)}
            continue
        action = int(rng.choice(np.flatnonzero(table.legal())))
        played = table.copy()
        played.play(action)
        known |= {"action": action, "played": packed(played.states), "seat": table.seat, "seed": seed}
        known |= {"observation": table.observe(table.seat).tolist()}
        yield known | {"text": game.view.move_text(table.state, action)}
    for player in players:
        for seed, state in enumerate(states):
            action, worth = expected(game, player, state, seed)
            if worth is not None:  # JSON has no nan
                worth = {name: [None if value != value else value for value in row] for name, row in worth.items()}
            keys = [str(key) for key in keys_of(seed)]
            known = {"state": packed(state), "player": safe(player)}
            yield known | {"keys": keys, "action": action, "values": worth}
            if worth is not None:
                judged, (best, cost, error) = expected_cost(game, player, state, seed)
                yield known | {"key": keys[0], "played": judged, "best": best, "cost": cost, "error": error}


def in_node(folder: Path, game: Game, tmp_path: Path, lines: Iterator[dict[str, Any]]) -> int:
    """Let Node compare; return how many cases were the same."""
    file = tmp_path / "cases.jsonl"
    with file.open("w") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    command: list[Any] = [program("node"), ROOT / "js" / "test" / "engine.mjs", folder / "wasm32", game.name, file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return int(done.stdout)


@pytest.mark.skipif(not HAS_ZIG, reason="needs ziglang: pip install 'card_envs[build]'")
def test_the_same_in_webassembly(built: Path, tmp_path: Path) -> None:
    lines = cases(TINY, 20, some(positions(TINY), 40), list(OF_TINY))
    assert in_node(built, TINY, tmp_path, lines) > 200


HOST = """
from card_envs.compiling._numba import keep_unoptimized
from card_envs.engine.batch import BatchEnv
from card_envs.scaffold.high_card import GAME
BatchEnv(GAME, 1, seed=1)
keep_unoptimized()
"""


def test_code_of_this_machine_is_not_linked(tmp_path: Path) -> None:
    """A process that compiled for itself, or took that from Numba's cache, can't compile for a target."""
    for _ in range(2):
        done = run_python("-c", HOST, status=1, CARD_ENVS_NATIVE="0", NUMBA_CACHE_DIR=str(tmp_path))
        assert "needs a process of its own" in done.stderr


def test_opponents_named_twice(built: Path, tmp_path: Path) -> None:
    """They are built once; those that C could not distinguish are refused."""
    folder = tmp_path / "api"
    shutil.copytree(built, folder)
    build_api([TINY], ["native"], folder, opponents=("greedy", "greedy"))
    assert Library(folder / "native", TINY).known["opponents"] == ["greedy"]
    with pytest.raises(ValueError, match="'search:64' and 'search_64' would both be search_64 in C"):
        build_api([TINY], ["native"], folder, opponents=("search:64", "search_64"))


def test_builds_into_one_folder_keep_each_other(built: Path, tmp_path: Path) -> None:
    """A build replaces its own files; those of other games, and listed ones that no build made, stay."""
    folder = tmp_path / "api"
    shutil.copytree(built, folder)
    target = folder / "native"
    facts = json.loads((target / "target.json").read_bytes())
    for name in ("other_game.json", "libcard_envs_other_game.so"):
        (target / name).write_text(name)
        facts["sha256"][name] = hashlib.sha256(name.encode()).hexdigest()
    for name in ("notes.txt", "high_card.notes.txt", "high_card.greedy.player", "folder"):
        facts["sha256"][name] = hashlib.sha256(name.encode()).hexdigest()
    (target / "notes.txt").write_text("notes.txt")
    (target / "high_card.notes.txt").write_text("edited since")
    (target / "folder").mkdir()
    (target / "target.json").write_text(json.dumps(facts))
    before = {file.name for file in target.iterdir()}
    build_api([TINY], ["native"], folder, opponents=("trivial",))
    gone = {f"high_card.{safe(name)}.player" for name in OF_TINY[2:]}
    assert {file.name for file in target.iterdir()} == before - gone
    listed = json.loads((target / "target.json").read_bytes())["sha256"]
    assert listed["other_game.json"] == facts["sha256"]["other_game.json"] and not gone & listed.keys()
    for name in ("../api.txt", "/etc/passwd", "a/b", ".."):
        facts["sha256"] = {name: "0"}
        (target / "target.json").write_text(json.dumps(facts))
        with pytest.raises(ValueError, match="expected names of files beside it"):
            build_api([TINY], ["native"], folder, opponents=("trivial",))


# All games: slow


PRESETS = [
    (game, name)
    for game in PORTED
    for name in opponent_names(game)
    if name in ("trivial", "greedy", "small", *game.bot.PRESETS)
]


@pytest.mark.slow
@pytest.mark.parametrize("game", PORTED, ids=lambda game: game.name)
def test_all_rules(game: Game, tmp_path: Path) -> None:
    print(game.name, same_rules(Library(whole(game) / "native", game), 30), "positions in C")
    if HAS_ZIG:
        print(game.name, in_node(whole(game), game, tmp_path, cases(game, 60, [], [])), "positions in Node")


@pytest.mark.slow
@pytest.mark.parametrize(("game", "player"), PRESETS, ids=lambda one: getattr(one, "name", one))
def test_all_players(game: Game, player: str, tmp_path: Path) -> None:
    """Two hundred positions for each, twenty for a champion."""
    states = some(positions(game), 20 if player == "champion" else 200)
    library = Library(whole(game) / "native", game)
    same_players(library, states, [player])
    if library.known["players"][player]["searches"]:
        same_judges(library, states[:50], [player])
    if HAS_ZIG:
        print(
            game.name, player, in_node(whole(game), game, tmp_path, cases(game, 0, states, [player])), "answers in Node"
        )


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["cc", "rustc"])
def test_programs_in_c_and_rust(compiler: str, tmp_path: Path) -> None:
    """Whole games, as the first lines of the programs say how."""
    found = program(compiler)
    if subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"{compiler} has no toolchain")  # rustup without a default
    folder = whole(*PORTED) / "native"
    at = ROOT / "native" / {"cc": "play.c", "rustc": "play.rs"}[compiler]
    how: list[Any] = {
        "cc": [at, "-I", folder, "-L", folder, "-lcard_envs_back_alley", f"-Wl,-rpath,{folder}"],
        "rustc": ["-O", "--edition", "2021", at, "-L", folder, "-C", f"link-arg=-Wl,-rpath,{folder}"],
    }[compiler]
    subprocess.run([found, *how, "-o", tmp_path / "play"], check=True)
    said = [
        subprocess.run([tmp_path / "play", folder, "1", who], check=True, capture_output=True, text=True).stdout
        for who in ("greedy", "small", "small", "strong")
    ]
    print(said[1])
    assert said[1] == said[2] and len(set(said)) == 3
    assert all(len(text.splitlines()) > 20 for text in said)


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").write_text("import nothing_of_that_name")
    for more, message in (
        (["--target", "wasm32"], "expected native or one of"),
        (["--target", "nothing", "--api"], "wasm32"),
        (["bck_alley"], "did you mean back_alley"),
        (["json"], "json: expected a package with GAME"),
        (["broken"], "can't be imported: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        (["no.such.package"], "unknown game"),
        (["../games"], "unknown game"),
        (["--opponent", "small"], "only with --api"),
        (["--folder", __file__], "file where a folder should be"),
    ):
        done = run_python("-m", "card_envs", "build", *more, folder=tmp_path, status=2)
        said = done.stdout + done.stderr
        assert message in said and "Traceback" not in said
        assert not list(tmp_path.rglob("*.json"))
