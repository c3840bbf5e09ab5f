"""Game records: saved, loaded, replayed and checked."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import card_envs
from card_envs import GameRecord, replay, verify
from card_envs.frontends.serve._command import make_service
from card_envs.frontends.serve._limits import Limits
from card_envs.frontends.serve._messages import Problem
from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import need_moves, new_env, option_sets, play_randomly, run, short_options
from tests.frontends.serving import ask


def finished(game: Game, seed: int = 1) -> GameRecord:
    return play_randomly(new_env(game, seed, **short_options(game)), seed).record()


def changed(record: GameRecord, **values: Any) -> GameRecord:
    return GameRecord(**{**record.model_dump(), **values})


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**64 - 1), data=st.data())
def test_records_replay(game: Game, seed: int, data: st.DataObject) -> None:
    options = data.draw(st.sampled_from(option_sets(game)))
    env, again = new_env(game, seed, **options), new_env(game, **options)
    play_randomly(env, seed & 0xFFFF, moves=data.draw(st.integers(0, 80)))
    record = env.record()
    verify(record)
    assert (record.game, record.version, game.validated(record.options)) == (game.name, game.version, env.options)
    assert record.outcome == env.outcome()
    assert GameRecord.model_validate_json(record.model_dump_json()) == record
    deal = json.loads(json.dumps(record.deal))
    again.reset(seed=(seed + 1) % 2**64, options={"deal": deal})
    assert deal == record.deal
    for move in record.moves:
        again.step(again.parse_move(move))
    for other in (again, replay(record)):
        assert other.options == env.options
        assert other.record() == record
        assert other.outcome() == env.outcome()
        for agent in env.possible_agents:
            assert other.view(agent) == env.view(agent)
            assert np.array_equal(other.observe(agent)["observation"], env.observe(agent)["observation"])
        assert np.array_equal(other.state(), env.state())


def test_records_are_data() -> None:
    assert card_envs.replay is replay and card_envs.verify is verify
    own = {name for name in vars(GameRecord) if not name.startswith("_") and callable(getattr(GameRecord, name))}
    assert own == {"save", "load"}


@pytest.mark.mechanics
def test_records_survive_the_disk(game: Game, tmp_path: Path) -> None:
    record = finished(game)
    verify(record)
    assert record.outcome["over"] and record.outcome["reason"] and replay(record).outcome() == record.outcome
    for path in (tmp_path / "game.json", str(tmp_path / "other.json")):
        record.save(path)
        assert GameRecord.load(path) == record
    text = (tmp_path / "game.json").read_text()
    assert text.endswith("}\n") and json.loads(text) == record.model_dump()


@pytest.mark.mechanics
def test_records_of_a_part(game: Game) -> None:
    record = finished(game)
    env = replay(record, 0)
    spacing = 1 + len(record.moves) // 12
    for number in range(len(record.moves) + 1):
        if number % spacing == 0 or number == len(record.moves):
            replayed = replay(record, number)
            assert replayed.record().moves == record.moves[:number]
            assert np.array_equal(replayed.state(), env.state())
        if number < len(record.moves):
            env.step(env.parse_move(record.moves[number]))
    verify(changed(record, moves=record.moves[:1], outcome=replay(record, 1).outcome()))


@pytest.mark.mechanics
def test_tampering_is_found(game: Game) -> None:
    """Another outcome, a missing move, one too many, an illegal one, another deal or option."""
    record = finished(game)
    outcome = record.outcome
    other_scores = [score + 1 for score in outcome["scores"]]
    tampered: tuple[dict[str, Any], ...] = (
        {"outcome": {**outcome, "scores": other_scores}},
        {"outcome": {**outcome, "over": False}},
        {"outcome": {**outcome, "reason": "luck"}},
        {"outcome": {}},
        {"moves": record.moves[:-1]},
        {"moves": [*record.moves, record.moves[-1]]},
        {"moves": [*record.moves[:-1], "surely no move"]},
        {"moves": [record.moves[0], *record.moves]},
        {"version": game.version + 1},
        {"game": game.name + "x"},
        {"options": {**record.options, "no_such_option": 1}},
        {"deal": {}},
    )
    for values in tampered:
        with pytest.raises(ValueError):  # noqa: PT011
            verify(changed(record, **values))


@pytest.mark.mechanics
def test_a_move_that_is_illegal_is_named(game: Game) -> None:
    need_moves(game, 2)
    record = finished(game)
    env = replay(record, 1)
    every = {env.move_text(action) for action in range(game.rules.NUM_ACTIONS)}
    illegal = sorted(every - set(env.legal_moves()))[0]
    broken = changed(record, moves=[record.moves[0], illegal, *record.moves[1:]])
    first = env.legal_moves()[0]
    with pytest.raises(ValueError, match=rf"record: moves\.1: '{illegal}' is not a legal move; legal: {first}"):
        replay(broken)
    assert replay(broken, 1).record().moves == record.moves[:1]


def read_by_server(file: Path) -> list[str]:
    data = json.loads(file.read_text())
    folder = Path(tempfile.mkdtemp(dir=file.parent))
    try:
        position = asyncio.run(ask(make_service(folder, [data["game"]], [], Limits()), "replay", record=data, since=0))
    except Problem as problem:
        raise ValueError(str(problem)) from None
    return [move["move"] for move in position["moves"]]


def read_by_command(*words: object) -> list[str]:
    status, output = run(*words)
    if status:
        raise ValueError(output)
    return output.split()


READERS: dict[str, Callable[[Path], Sequence[str]]] = {
    "replay": lambda file: replay(GameRecord.load(file)).record().moves,
    "review": lambda file: [move.played for move in card_envs.review(GameRecord.load(file), "search:2").moves],
    "watch": lambda file: read_by_command("watch", "--replay", file, "--delay", "0"),
    "resume": lambda file: read_by_command("play", GameRecord.load(file).game, "--resume", file),
    "server": read_by_server,
}


def left(game: Game) -> GameRecord:
    """A record of a few moves."""
    record = finished(game)
    moves = record.moves[:3]
    return changed(record, moves=moves, outcome=replay(record, len(moves)).outcome())


@pytest.mark.mechanics
@pytest.mark.parametrize("reader", READERS)
def test_all_readers_take_the_same_spellings(game: Game, reader: str, tmp_path: Path) -> None:
    need_moves(game, 4)
    record = left(game)
    spelled = [f" {move.lower()}." if number % 2 else move.lower() for number, move in enumerate(record.moves)]
    changed(record, moves=spelled).save(tmp_path / "game.json")
    moves = READERS[reader](tmp_path / "game.json")
    if reader in ("replay", "server"):
        assert moves == record.moves
    elif reader == "review":
        assert set(moves) <= set(record.moves)  # those with a choice
    else:
        assert record.moves[-1] in " ".join(moves).replace(",", " ").split()


@pytest.mark.mechanics
def test_all_readers_find_the_same_faults(game: Game, tmp_path: Path) -> None:
    """In the same words, after the file's name if there is one."""
    need_moves(game, 4)
    record, whole = left(game), finished(game)
    first = record.moves[0]
    faulty: dict[str, dict[str, Any]] = {
        "moves.1: 'nonsense' is not a": {"moves": [first, "nonsense"]},
        "moves.1: ": {"moves": [first, "x" * 500]},
        f"record: moves.{len(whole.moves)}: the game is over before it": {"moves": [*whole.moves, first]},
        f"record: version: {game.version + 1}; these are the rules of {game.version}": {"version": game.version + 1},
        "no_such_option": {"options": {"no_such_option": 1}},
        "deal: ": {"deal": {}},
        "moves: Field required": {"moves": None},
        "version: Input should be a valid integer": {"version": "one"},
        "surprise: Extra inputs": {"surprise": 1},
    }
    file = tmp_path / "game.json"
    for said, changes in faulty.items():
        data = {**record.model_dump(), **changes}
        file.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
        for name, reader in READERS.items():
            with pytest.raises(ValueError, match=r"\S") as caught:
                reader(file)
            assert said in " ".join(str(caught.value).split()), (name, said)


@pytest.mark.mechanics
def test_records_of_illegal_ends(game: Game) -> None:
    """The illegal move is not among the moves; the outcome tells."""
    need_moves(game, 3)
    env = play_randomly(new_env(game, 3, **short_options(game)), 3, moves=2)
    env.step(game.rules.NUM_ACTIONS)
    record = env.record()
    assert record.outcome["reason"] == "illegal" and len(record.moves) == 2
    verify(record)
    replayed = replay(record)
    assert not replayed.outcome()["over"] and replayed.record().moves == record.moves
    with pytest.raises(ValueError, match="the record says"):
        verify(changed(record, moves=record.moves[:1], outcome={**record.outcome, "scores": [99] * 9}))
    whole = finished(game)
    with pytest.raises(ValueError):  # noqa: PT011 (a finished game can't end with an illegal move)
        verify(changed(whole, outcome={**whole.outcome, "reason": "illegal"}))


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"null", b'{"game": 1}', b"not json", b"\xff\xfe\0", b'"\xe9"'])
def test_files_that_are_no_record(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    with pytest.raises(FileNotFoundError, match="broken"):
        GameRecord.load(path)
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r"broken\.json: not a game record"):
        GameRecord.load(path)


def test_records_set_nothing_but_options() -> None:
    for option, value in (("render_mode", "human"), ("illegal_move", "terminate"), ("obs_key", "x"), ("game", 1)):
        with pytest.raises(ValueError, match=option):
            replay(finished(HIGH_CARD).model_copy(update={"options": {option: value}}))
