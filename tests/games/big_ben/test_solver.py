"""The solver: its positions are those of the rules, its lines win, and what it calls lost is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from card_envs import big_ben_v0
from card_envs.compare._solving import SolveTask, solve_deals, solving_figures, won_of_winnable
from card_envs.compare._tables import new_tables
from card_envs.compare.report import solving_sheet
from card_envs.engine.table import Table
from card_envs.game import Solution, State, Verdict
from card_envs.games.big_ben import GAME, rules, solver, view
from card_envs.games.big_ben.position import INFO, MAX_MOVES, NODE, key_of, list_moves, move_on, read_state
from card_envs.games.big_ben.rules import FLOOR, FULL_PILE, NUM_HOURS, PACK_SIZE
from card_envs.scaffold.high_card import GAME as TINY_GAME
from strength.fit_big_ben import fit, rough_weights
from tests.conftest import option_sets, run, table_of
from tests.games.big_ben.referee import CLOCKWISE, Referee

OPTIONS = [options for options in option_sets(GAME) if "reward" not in options]


# Positions


@njit
def list_node(nodes: Any, infos: Any, moves: Any) -> int:
    return list_moves(nodes[0], infos[0], moves)


@njit
def play_node(nodes: Any, infos: Any, action: int) -> None:
    move_on(nodes[0], infos[0], action)


@njit
def find_key(nodes: Any, infos: Any) -> Any:
    return key_of(nodes[0], infos[0])


def node_of(state: State) -> tuple[NDArray[Any], NDArray[Any]]:
    nodes, infos = np.zeros(1, NODE), np.zeros(1, INFO)
    read_state(state, nodes, infos)
    return nodes, infos


def table_in_node(nodes: NDArray[Any], infos: NDArray[Any]) -> tuple[Any, ...]:
    """What lies where; a pile as its lowest three cards, its height and its top card."""
    node, info = nodes[0], infos[0]
    deck = info.deck[: info.in_deck]
    waste = [int(card) for place, card in enumerate(deck) if int(node.waste) >> place & 1]
    piles = list(zip(node.low.tolist(), node.heights.tolist(), node.tops.tolist()))
    stock = [int(card) for place, card in enumerate(deck) if int(node.stock) >> place & 1]
    assert len(stock) == info.in_deck - node.dealt
    return piles, waste, stock, node.to_come.tolist(), int(node.hops), int(node.left)


def table_in_state(state: State) -> tuple[Any, ...]:
    piles = []
    for cards, height in zip(state.piles[:, FLOOR:].tolist(), state.heights.tolist()):
        low = [*cards[: min(height, FULL_PILE)], 0, 0, 0][:FULL_PILE]
        piles.append((low, height, cards[height - 1] if height else -1))
    waste, stock = state.waste[: state.num_waste].tolist(), view.stock_of(state)
    return piles, waste, stock, state.to_come.tolist(), int(state.hops), PACK_SIZE - int(state.num_placed)


def walk(options: dict[str, Any], number: int) -> Iterator[tuple[Table, int]]:
    """A table before each move of a game, and the move: dealing is put off, most hops are taken."""
    rng = np.random.default_rng(number)
    table = table_of(GAME, options, 3, number)
    while not table.over:
        moves = np.flatnonzero(table.legal())
        settled = int(table.state.settled_piles)
        hops = [settled >> source & (target > 0) for source, target in zip(*np.divmod(moves, NUM_HOURS))]
        weights = np.where(hops, 40.0, np.where(moves == rules.DEAL, 0.1, 1.0))
        move = int(rng.choice(moves, p=weights / weights.sum()))
        yield table, move
        table.play(move)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_positions_are_those_of_the_rules(options: dict[str, Any]) -> None:
    """Node and State are played side by side: same table, same legal moves."""
    moves = np.zeros(MAX_MOVES, np.int16)
    at_the_cap = 0
    for number in range(6):
        nodes, infos = np.zeros(1, NODE), np.zeros(1, INFO)
        for table, move in walk(options, number):
            if table.state.num_dealt == rules.NUM_LAID_OUT:
                nodes, infos = node_of(table.state)
            expected = table_in_state(table.state)
            assert table_in_node(nodes, infos) == table_in_node(*node_of(table.state)) == expected
            legal = np.flatnonzero(table.legal()).tolist()
            assert sorted(moves[: list_node(nodes, infos, moves)].tolist()) == legal
            infos["endless_hops"] = True
            assert set(legal) <= set(moves[: list_node(nodes, infos, moves)].tolist())
            infos["endless_hops"] = False
            at_the_cap += int(table.state.hops) == rules.MAX_HOPS
            play_node(nodes, infos, move)
    assert at_the_cap > 3


def test_keys_tell_positions_apart() -> None:
    """Different positions have different keys, but for hops and, where the stock is empty, the order of piles."""
    keys = {}
    nodes, infos = node_of(table_of(GAME, {}, 3).state)
    for _, move in walk({}, 0):
        keys[str(table_in_node(nodes, infos)[:4])] = int(find_key(nodes, infos))
        play_node(nodes, infos, move)
    assert len(set(keys.values())) == len(keys) > 60
    nodes, infos = node_of(table_of(GAME, {}, 3).state)
    swapped = nodes.copy()
    for field in ("low", "heights", "tops"):
        swapped[field][0] = np.roll(swapped[field][0], 1, axis=0)
    assert find_key(nodes, infos) != find_key(swapped, infos)
    infos["in_deck"] = 0
    assert find_key(nodes, infos) == find_key(swapped, infos)
    nodes["hops"] += 1
    assert find_key(nodes, infos) == find_key(swapped, infos)


# Against an exhaustive search that plays by the referee


def referee_of(state: State) -> Referee:
    """The referee in the same position."""
    shown = view.view(state, 0)
    referee = Referee(shown["options"])
    referee.needs_deal = False
    referee.piles = {name: list(shown["piles"][name]) for name in CLOCKWISE}
    referee.waste = list(shown["waste"])
    referee.stock = [view.CARDS[card] for card in view.stock_of(state)]
    referee.redealt = int(shown["redealt"])
    for hour, top in shown["foundations"].items():
        run = view.RUNS[view.HOURS.index(hour)]
        referee.foundations[int(hour)] = list(run[: run.index(top) + 1])
    referee.hops = shown["hops"]
    referee._settle()
    return referee


def after(referee: Referee, move: str) -> Referee:
    child = copy(referee)
    child.piles = {name: list(cards) for name, cards in referee.piles.items()}
    child.foundations = {hour: list(cards) for hour, cards in referee.foundations.items()}
    child.waste, child.stock = list(referee.waste), list(referee.stock)
    child.play(move)
    return child


def can_win(referee: Referee, limit: int) -> bool | None:
    """Whether any order of moves wins, all of them tried; None if that takes more than `limit` positions."""
    seen = set()
    waiting = [referee]
    while waiting:
        here = waiting.pop()
        if here.reason == "won":
            return True
        key = json.dumps([list(here.piles.values()), here.waste, here.stock, here.foundations, here.hops, here.redealt])
        if key not in seen:
            seen.add(key)
            if len(seen) > limit:
                return None
            waiting += [after(here, move) for move in here.legal()]
    return False


def endings(options: dict[str, Any], games: int, seed: int) -> Iterator[State]:
    """Positions from the last moves of games by a careless greedy player."""
    rng = np.random.default_rng(seed)
    for number in range(games):
        table = table_of(GAME, options, seed, number)
        passed = []
        while not table.over:
            passed.append(table.copy().state)
            careless = rng.random() < 0.1
            table.play(int(rng.choice(np.flatnonzero(table.legal()))) if careless else table.bot_move("greedy"))
        yield passed[-min(int(rng.integers(4, 16)), len(passed))]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_verdicts_are_those_of_an_exhaustive_search(options: dict[str, Any]) -> None:
    verdicts: Counter[str] = Counter()
    for state in endings(options, 24, seed=5):
        winnable = can_win(referee_of(state), limit=100)
        if winnable is None:
            continue
        solution = solver.solve(state, seconds=60, memory_mb=8, max_positions=100_000)
        assert solution.verdict == ("won" if winnable else "lost")
        verdicts[solution.verdict] += 1
    assert verdicts["lost"] > 3


@pytest.mark.parametrize(("pile", "verdict"), [("TS JS", "lost"), ("JS TS", "won")])
def test_the_last_three_cards(pile: str, verdict: str) -> None:
    """9S comes from the stock; TS can follow it unless it lies under JS, which nothing can free."""
    foundations = {hour: run[-1] for hour, run in zip(view.HOURS, view.RUNS)} | {"11": "8S"}
    piles: dict[str, list[str]] = {name: [] for name in view.PILES} | {"T5": pile.split()}
    state = view.from_view(
        {"game": "big_ben", "options": {}, "seat": 0, "foundations": foundations, "piles": piles, "waste": []}
    )
    solution = solver.solve(state)
    assert solution.verdict == verdict
    moves = ["deal", "T12-F", "T5-F", "T5-F"] if verdict == "won" else []
    assert [view.move_text(state, move) for move in solution.moves] == moves


# Whole deals


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_win_is_one_for_the_environment(options: dict[str, Any]) -> None:
    won = 0
    for state in new_tables(GAME, options, 1, np.arange(4)):
        solution = solver.solve(state, seconds=600, memory_mb=64, max_positions=100_000)
        assert solution.verdict in ("won", "unknown")
        env = big_ben_v0.env(**options)
        env.reset(options={"deal": view.deal_text([view.dealt_pack(state)])})
        for move in solution.moves:
            env.step(move)
        assert env.unwrapped.outcome()["reason"] == ("won" if solution.moves else "")
        won += solution.verdict == "won"
    assert won >= 2


def test_the_same_bounds_give_the_same_answer() -> None:
    state = table_of(GAME, {}, 2).state
    one, other = (solver.solve(state, seconds=600, memory_mb=64, max_positions=150_000) for _ in range(2))
    assert (one.verdict, one.moves, one.positions) == (other.verdict, other.moves, other.positions)


def test_bounds_are_kept() -> None:
    state = table_of(GAME, {}, 2).state
    for bounds in ({"max_positions": 1}, {"seconds": 1e-9}):
        solution = solver.solve(state, **bounds)  # type: ignore[arg-type]
        assert (solution.verdict, solution.moves) == ("unknown", [])
        assert solution.positions < 50_000
    small = solver.solve(state, seconds=600, memory_mb=solver.MIN_MEMORY_MB, max_positions=10_000_000)
    assert small.positions < 1_000_000, "the tables of 4 MiB are full long before"


def test_wrong_bounds_are_refused() -> None:
    table = table_of(GAME, {}, 2)
    for name, value in (("seconds", 0.0), ("seconds", float("nan")), ("memory_mb", 0), ("max_positions", 0)):
        with pytest.raises(ValueError, match=name):
            solver.solve(table.state, **{name: value})  # type: ignore[arg-type]
    table.state.needs_deal = True
    with pytest.raises(ValueError, match="decision is due"):
        solver.solve(table.state)


# Many deals, and the command


def test_packs_are_those_that_are_compared() -> None:
    task = SolveTask(GAME, seed=6, seconds=600, memory_mb=64, max_positions=40_000)
    solved = dict(solve_deals(task, range(3)))
    states = new_tables(GAME, {}, 6, np.arange(3))
    for number, solution in solved.items():
        assert solution.moves == task.solve(states[number]).moves
    figures = solving_figures(task, list(solved.items()))
    won = sum(solution.verdict == "won" for solution in solved.values())
    assert figures.verdicts["won"] == won and figures.bounds == {"winnable_at_least": won, "winnable_at_most": 3}
    written = figures.as_dict()
    assert written["verdicts"]["won"]["packs"] == won
    assert written["winnable_at_least"]["mean"] == won / 3 and written["winnable_at_most"]["mean"] == 1
    shipped = json.loads((Path(__file__).parents[3] / "strength" / "big_ben-solver.json").read_text())
    assert list(shipped) == [*written, "stopped"] and list(shipped["deals"][0]) == list(written["deals"][0])
    rows = list(solving_sheet("", figures).columns[0].cells)
    assert rows == ["won", "lost", "unknown", "winnable at least", "winnable at most"]


def solve(*words: Any) -> tuple[int, str]:
    try:
        status, output = run("solve", *words)
    except ValueError as error:
        return 2, str(error)
    return status, " ".join(output.split())


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    code, shown = solve("big_ben", "--packs", 2, "--positions", 20_000, "--memory", 32, "--seed", 9, "--json", file)
    assert code == 0 and "winnable at least" in shown
    figures = json.loads(file.read_text())
    assert figures["packs"] == 2 == len(figures["deals"]) and not figures["stopped"]


def test_compare_counts_wins_of_winnable_deals(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    words = f"compare big_ben trivial greedy --pairs 16 --seed 5 --solve 0.1 --json {file}"
    status, output = run(*words.split())
    assert status == 0 and "won of winnable" in output, output
    figures = json.loads(file.read_text())
    winnable = figures["solved"]["won"]
    assert sum(figures["solved"].values()) == 16 and winnable > 0
    for policy in figures["policies"]:
        won = policy["won_of_winnable"]["mean"] * winnable
        assert won == pytest.approx(round(won)) and round(won) <= round(policy["win_share"]["mean"] * 16)
    wins = np.array([[1.0, 0, 1, 0], [0, 0, 1, 1]])
    verdicts: list[Verdict] = ["won", "lost", "won", "unknown"]
    solved = [(number, Solution(verdict, [], 1, 0.1)) for number, verdict in enumerate(verdicts)]
    assert [share.mean for share in won_of_winnable(wins, solved[::-1])] == [1.0, 0.5]


def test_the_command_for_one_deal(tmp_path: Path) -> None:
    state = new_tables(GAME, {}, 1, np.arange(1))[0]
    file = tmp_path / "deal.json"
    file.write_text(json.dumps(view.deal_text([view.dealt_pack(state)])))
    code, shown = solve("big_ben", "--deal", file, "--positions", 400_000, "--seconds", 600)
    solution = solver.solve(state, 600, max_positions=400_000)
    assert code == 0 and shown.startswith(f"{solution.verdict}: {solution.positions:,} positions")
    assert shown.endswith(" ".join(view.MOVES[move] for move in solution.moves))


def test_the_command_refuses_wrong_input(tmp_path: Path) -> None:
    file = tmp_path / "deal.json"
    for text, problem in (("{", "not JSON"), ('{"pack": ["AC"]}', "deal.pack"), ("[]", "expected")):
        file.write_text(text)
        code, shown = solve("big_ben", "--deal", file)
        assert code != 0 and problem in shown
    for words, problem in (
        ((TINY_GAME.name,), "no solver"), (("big_ben", "--option", "fill_order=up"), "fill_order"),
        (("big_ben", "--seconds", "0"), "seconds"), (("big_ben", "--memory", "1"), "memory_mb"),
    ):  # fmt: skip
        code, shown = solve(*words)
        assert code != 0 and problem in shown


@pytest.mark.slow
def test_weights_are_fitted() -> None:
    fitted = fit(rounds=1, deals=4, width=150, seed=1)
    assert fitted.shape == rough_weights().shape and fitted.dtype == np.int64
    assert not np.array_equal(fitted, rough_weights())
