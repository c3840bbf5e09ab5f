"""Surveys and comparisons: known answers, agreement of compiled and asked players, processes, Ctrl-C, files."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare._tables import TimedPolicy, new_tables
from card_envs.compare.contests import Contest, chunks, join, play_contest, seating
from card_envs.compare.estimates import Estimate, pairs_needed
from card_envs.compare.pairs import play_pairs
from card_envs.compare.report import duration, interval, on_one_line, percent, show_comparison, standings_sheet, whole
from card_envs.compare.spread import Executor
from card_envs.compare.standings import standings
from card_envs.compare.survey import survey
from card_envs.engine.legality import IllegalMove
from card_envs.envs._replay import replay, verify
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.names import MODELS
from card_envs.opponents.networks.policies import NetworkPolicy
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import Decisions, as_policy
from card_envs.record import GameRecord
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.system.console import Console
from card_envs.testing.referee import facts_of
from tests.conftest import run, short_options, untrained

HERE = "tests.compare.test_compare"
CONTEST = Contest(HIGH_CARD, ("greedy", "trivial"))


class Asked:
    """`greedy` as a user's own policy would play it: asked for every decision."""

    bot = "greedy"

    def __init__(self, game: Game) -> None:
        self.game = game

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        assert (decisions.mask.sum(axis=1) > 1).all()  # nobody is asked where there is no choice
        return decisions.bot_moves(self.bot)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        return np.eye(decisions.mask.shape[1], dtype=np.float32)[self.act(decisions, np.random.default_rng())]


class Impatient(Asked):
    """Somebody presses Ctrl-C after some of its answers."""

    left: ClassVar[int] = 0

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        Impatient.left -= 1
        if Impatient.left < 0:
            raise KeyboardInterrupt
        return super().act(decisions, rng)


class Mortal(Asked):
    """Takes its process with it at its first decision, once."""

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        grave = Path(os.environ["TEST_COMPARE_GRAVE"])
        if not grave.exists():
            grave.touch()
            os._exit(1)
        return super().act(decisions, rng)


class Doomed(Asked):
    """Takes its process with it whenever it is asked."""

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        os._exit(1)


class Cheat(Asked):
    """Plays what is not legal."""

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmin(axis=1)


def short_words(game: Game) -> list[str]:
    """The game's short options, as they are typed."""
    return [word for name, value in short_options(game).items() for word in ("-o", f"{name}={json.dumps(value)}")]


@pytest.mark.mechanics
def test_one_pair_is_shown_and_written(game: Game, tmp_path: Path) -> None:
    code, output = run(
        "compare", game.name, "greedy", "trivial", "--pairs", 1, *short_words(game), "--json", tmp_path / "c.json"
    )
    assert code == 0 and f"few {'deals' if game.is_solitaire else 'pairs'} (1)" in output and "inf" not in output
    assert "no interval" in output and "nan" not in output

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    figures = json.loads((tmp_path / "c.json").read_text(), parse_constant=refuse)
    pairing = figures["pairings"][0]
    margin, won = ("score_more", "wins_more") if game.is_solitaire else ("margin_per_episode", "win_share")
    assert pairing[margin]["low"] is None and pairing[margin]["high"] is None
    assert pairing[won]["high"] - pairing[won]["low"] > (1.9 if game.is_solitaire else 0.95)
    assert figures["warning"].startswith("few ")
    code, output = run(
        "survey", game.name, "greedy", "--episodes", 1, *short_words(game), "--json", tmp_path / "s.json"
    )
    assert code == 0 and "few episodes (1)" in output and "inf" not in output
    json.loads((tmp_path / "s.json").read_text(), parse_constant=refuse)


@pytest.mark.mechanics
def test_tables_fit_into_80_columns(game: Game) -> None:
    """Names are folded, figures and intervals are whole."""
    name = "runs/the-long-one/of-last-week/opponent"
    contest = dataclasses.replace(CONTEST, game=game, options=tuple(short_options(game).items()))
    found = standings(contest, played(contest, 30))
    found = dataclasses.replace(found, policies=[dataclasses.replace(one, name=name) for one in found.policies])
    shown = io.StringIO()
    show_comparison(Console(file=shown, width=80), "title", found, brief=False)
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    for policy in found.policies:
        assert any(percent(policy.win_share).splitlines()[1] in line for line in lines)


def test_infinite_bounds_in_words() -> None:
    inf = float("inf")
    assert interval(Estimate(5, -inf, inf)) == "5\nno interval"
    assert whole(Estimate(1300, 1287, inf)) == "1300\nat least 1287" and whole(Estimate(1000, 1000, 1000)) == "1000"
    assert whole(Estimate(700, -inf, 712)) == "700\nat most 712"
    assert percent(Estimate(1, 0.8316, 1)) == "100.00 %\n83.16 to 100.00"
    assert on_one_line(Estimate(5, -inf, inf), False) == "5" and on_one_line(Estimate(5, 4, 6), False) == "5 ±1"
    assert on_one_line(Estimate(1, 0.27, 1), True) == "100 (27 to 100) %"
    assert on_one_line(Estimate(1, 0.27, 1), True, unit=False) == "100 (27 to 100)"
    assert on_one_line(Estimate(0.003, 0.001, 0.007), True) == "0.3 (0.1 to 0.7) %"
    assert [duration(time) for time in (0.2, 13.54, 340, 1.34e6)] == ["under 1 µs", "13.5 µs", "0.3 ms", "1.3 s"]


def test_the_first_answer_of_a_policy_is_not_timed() -> None:
    times = iter([0.0, 60.0, 100.0, 101.0, 200.0, 202.0])
    policy = load_opponent("random", HIGH_CARD).policy
    asker = TimedPolicy(HIGH_CARD, policy, np.random.default_rng(0), clock=lambda: next(times))
    states = new_tables(HIGH_CARD, {}, 0, np.arange(5))
    timed = []
    for count in (5, 4, 2):
        asker.ask(states[:count])
        timed.append((asker.seconds, asker.decisions))
    assert timed == [(60.0, 5), (1.0, 4), (3.0, 6)]


def test_enough_pairs_come_without_a_warning() -> None:
    figures = [standings(CONTEST, played(CONTEST, pairs)).as_dict() for pairs in (29, 30)]
    assert "warning" in figures[0] and "warning" not in figures[1]


# Known answers


def test_two_copies_of_a_player_are_equal() -> None:
    greedy = load_opponent("greedy", HIGH_CARD)
    assert not play_pairs(HIGH_CARD, greedy, greedy, 50).margins.any()  # nothing but the cards is left


@pytest.mark.slow
def test_two_copies_of_a_player_are_equal_for_93_of_100_seeds() -> None:
    player = load_opponent("random", HIGH_CARD)
    margins = [play_pairs(HIGH_CARD, player, player, 200, seed).margin_per_episode for seed in range(100)]
    equal = sum(margin.low <= 0 <= margin.high for margin in margins)
    print(f"two copies of a player: 0 within the interval for {equal} of 100 seeds")
    assert equal >= 93


class Careless(Asked):
    """`greedy`, but every fifth move on average is any legal one."""

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        any_move = rng.random(decisions.mask.shape) * decisions.mask
        return np.where(rng.random(len(decisions)) < 0.2, any_move.argmax(axis=1), decisions.bot_moves("greedy"))


@pytest.mark.slow
def test_a_known_edge_is_found_in_about_80_of_100_seeds() -> None:
    greedy, careless = load_opponent("greedy", HIGH_CARD), Careless(HIGH_CARD)
    margins = play_pairs(HIGH_CARD, greedy, careless, 200_000, seed=999).margins
    needed = pairs_needed(margins)
    assert needed is not None and 100 < needed < 5000
    found = [play_pairs(HIGH_CARD, greedy, careless, needed, seed).margin_per_episode for seed in range(100)]
    shown = sum(margin.low > 0 for margin in found)
    print(f"edge {margins.mean():.4f} a deal; {needed} pairs show it in {shown} of 100 seeds")
    assert 70 <= shown <= 90
    assert sum(margin.low <= margins.mean() <= margin.high for margin in found) >= 90


# Compiled players and asked ones


@pytest.mark.mechanics
def test_asked_players_play_the_same_games_as_compiled_ones(game: Game) -> None:
    options = short_options(game)
    trivial, greedy = load_opponent("trivial", game), load_opponent("greedy", game)
    asked = play_pairs(game, Asked(game), trivial, 8, seed=5, options=options)
    compiled = play_pairs(game, greedy, trivial, 8, seed=5, options=options)
    assert np.array_equal(asked.margins, compiled.margins) and np.array_equal(asked.win_shares, compiled.win_shares)
    assert asked.decisions[1] == compiled.decisions[1] and 0 < asked.decisions[0] <= compiled.decisions[0]
    both = [survey(game, policy, 16, seed=5, options=options).as_dict() for policy in (Asked(game), greedy)]
    for figures in both:
        assert figures.pop("microseconds_per_decision") >= 0
    assert both[0] == both[1]


@pytest.mark.mechanics
def test_survey(game: Game) -> None:
    options = short_options(game)
    policy = load_opponent("random", game)
    found = survey(game, policy, 60, seed=1, options=options)
    assert found.decisions.low <= found.decisions.mean <= found.decisions.high and found.decisions.mean >= 1
    assert sum(share.mean for share in found.endings.values()) == pytest.approx(1) and "" not in found.endings
    assert (found.first_side_wins is None) == game.is_solitaire
    again = survey(game, policy, 60, seed=1, options=options)
    assert again == dataclasses.replace(found, microseconds_per_decision=again.microseconds_per_decision)
    other = survey(game, policy, 60, seed=2, options=options)
    assert (other.decisions, other.score_of_seat_0) != (found.decisions, found.score_of_seat_0)
    if game is HIGH_CARD:
        assert (found.decisions.mean, found.decisions.low) == (6, -np.inf)  # none was longer, which bounds nothing


def test_seating() -> None:
    sides = (0, 1, 0, 1)
    assert seating(sides, 2, False).tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert seating(sides, 2, True).tolist() == [[0, 1, 2, 2], [1, 0, 2, 2]]
    assert seating((0,), 1, False).tolist() == [[0]]


# Contests


def played(contest: Contest, pairs: int, processes: int = 1, ray_address: str = "") -> Any:
    with Executor(processes, ray_address) as workers:
        return join(list(play_contest(contest, pairs, workers)))


def test_standings_of_all_games(game: Game) -> None:
    contest = Contest(game, ("greedy", "random", "trivial"), 3, tuple(short_options(game).items()))
    part = played(contest, 20)
    figures = json.loads(json.dumps(standings(contest, part).as_dict()))
    assert figures["pairs"] == 20 and [policy["name"] for policy in figures["policies"]] == list(contest.names)
    assert len(figures["pairings"]) == 3 and figures["nearest"]["first"] in contest.names
    means = {policy["name"]: policy["win_share"]["mean"] for policy in figures["policies"]}
    pairing = figures["pairings"][0]
    assert (pairing["first"], pairing["second"]) == ("greedy", "random")
    if game.is_solitaire:
        assert pairing["wins_more"]["mean"] == pytest.approx(means["greedy"] - means["random"])
        scores = [policy["score"]["mean"] for policy in figures["policies"]]
        assert scores == pytest.approx(part.margins.mean(axis=1).tolist()) and scores[0] > scores[1]
    else:
        assert sum(means.values()) == pytest.approx(1.5)
        assert figures["policies"][0]["rating"]["mean"] == 1000
        # The same pairing by itself has the same games.
        alone = played(Contest(game, contest.names[:2], 3, contest.options), 20)
        assert np.array_equal(alone.margins[0], part.margins[0])


FIGURES = ["microseconds_per_move", "decisions", "figures"]


def test_the_keys_of_the_figures(game: Game) -> None:
    """What programs read; the figures that are shipped have the same."""
    names = ("greedy", "random", "trivial")
    figures = standings(contest := Contest(game, names, 3), played(contest, 16)).as_dict()
    own = ["win_share", "score"] if game.is_solitaire else ["rating", "win_share", "margin_per_episode"]
    both = ["wins_more", "score_more"]
    if not game.is_solitaire:
        both = ["win_share", "margin_per_episode", "margin_per_deal"]
    assert list(figures) == [
        "game", "version", "options", "seed", "sampled", "partner", "frame", *(["anchor"] if "rating" in own else []),
        "pairs", "deals_per_episode", "policies", "pairings", "nearest", "stopped", "warning",
    ]  # fmt: skip
    assert list(figures["policies"][0]) == ["name", *own, *FIGURES]
    assert list(figures["pairings"][0]) == ["first", "second", *both, "pairs_needed"]
    assert list(figures["policies"][0]["win_share"]) == ["mean", "low", "high"]
    assert list(figures["nearest"]) == ["first", "second", "pairs_needed"]
    for file in shipped_figures(game):
        shipped = json.loads(file.read_text())
        assert shipped.keys() <= {*figures, "solved"}
        for kind in ("policies", "pairings"):
            for one in shipped[kind]:
                assert one.keys() <= {*figures[kind][0], "won_of_winnable"}


def shipped_figures(game: Game) -> list[Path]:
    """What was measured of its players; games that are only tested have nothing."""
    folder = Path(__file__).parents[2] / "strength"
    files = [file for name in ("ladder", "front") if (file := folder / f"{game.name}-{name}.json").is_file()]
    if not files:
        assert not (MODELS / game.name).is_dir(), "networks ship with it, but no figures"
        pytest.skip("none of its players was measured: see strength/README.md")
    return files


def test_a_partner_sits_beside_each(game: Game) -> None:
    contest = Contest(game, ("greedy", "trivial"), 3, tuple(short_options(game).items()), partner="greedy")
    if game.num_sides == game.rules.NUM_SEATS:
        with pytest.raises(ValueError, match="partner"):
            contest.check()
        return
    contest.check()
    part = played(contest, 16)
    assert part.margins.shape == (1, 16)
    assert not played(Contest(game, ("greedy", "greedy"), 3, contest.options, partner="trivial"), 16).margins.any()


def test_tallies_are_what_replayed_games_show(game: Game, tmp_path: Path) -> None:
    from card_envs.compare._records import save_records

    if not game.view.RATES:
        pytest.skip("comparisons show no statistics of it")
    recount = facts_of(game).recount
    contest = Contest(game, ("greedy", "random"), 7, tuple(short_options(game).items()), recorded=20)
    part = played(contest, 20)  # in two portions
    assert save_records(contest, part, tmp_path) == len(list(tmp_path.iterdir())) == 40
    expected: Any = {(ratio.row, ratio.column): np.zeros((2, 2)) for ratio in game.view.RATES}
    for file in tmp_path.iterdir():
        record = GameRecord.load(file)
        env = replay(record, 0)
        movers = []
        for move in record.moves:
            movers.append(env.agents.index(env.agent_selection))
            env.step(env.parse_move(move))
        policies = [int(label[0]) - 1 for label in file.stem.split("-")[1:]]  # by side
        for seat, side in enumerate(game.sides):
            found = recount(env.view(f"player_{seat}"), env.outcome()["reason"], movers, seat)
            for key, figure in found.items():
                expected[key][policies[side]] += figure
    sums = part.tallies[:, :, :2]
    for number, key in enumerate(expected):
        assert sums[:, number].tolist() == expected[key].tolist(), key
    assert (sums[:, :, 1] > 0).any(axis=1).all()


@pytest.mark.processes
def test_any_number_of_processes() -> None:
    contest = Contest(HIGH_CARD, ("random", f"{HERE}:Asked", "trivial"), 4)
    one, two = (played(contest, 40, processes) for processes in (1, 2))
    assert len(chunks(40)) == 3
    assert np.array_equal(one.margins, two.margins) and np.array_equal(one.wins, two.wins)
    assert np.array_equal(one.decisions, two.decisions)


@pytest.mark.processes
@pytest.mark.parametrize("cluster", [False, True])
def test_lost_workers_are_replaced(cluster: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of an undisturbed run; where workers die without end, it is said."""
    if cluster:
        pytest.importorskip("ray")
    where: dict[str, Any] = {"ray_address": "local"} if cluster else {"processes": 2}
    monkeypatch.setenv("TEST_COMPARE_GRAVE", str(tmp_path / "grave"))
    contest = Contest(HIGH_CARD, (f"{HERE}:Mortal", "random", f"{HERE}:Asked"), 4)
    spread_out, here = played(contest, 80, **where), played(contest, 80)
    assert (tmp_path / "grave").exists()
    for name in ("margins", "wins", "decisions", "tallies"):
        assert np.array_equal(getattr(spread_out, name), getattr(here, name))
    if cluster:
        with pytest.raises(IllegalMove, match=r"of policy .*Cheat at .* is illegal"):
            played(Contest(HIGH_CARD, (f"{HERE}:Cheat", "random"), 4), 20, **where)
    else:
        with pytest.raises(OSError, match=r"a worker process died \d+ times in a row"):
            played(Contest(HIGH_CARD, (f"{HERE}:Doomed", "random"), 4), 16, **where)


def test_processes_and_clusters_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    contest = Contest(HIGH_CARD, ("greedy", "random"))
    with pytest.raises(ValueError, match="processes: expected a whole number from 1, got 0"):
        Executor(0)
    with pytest.raises(ValueError, match="expected one of them"):
        Executor(2, "local")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match="pip install 'card_envs"):
        played(contest, 20, ray_address="local")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False))
    with pytest.raises(OSError, match="refused"):
        played(contest, 20, ray_address="127.0.0.1:1")


def test_chunks() -> None:
    for pairs in (1, 16, 17, 1000, 100_000):
        assert np.array_equal(np.concatenate(chunks(pairs)), np.arange(pairs))
        assert all(len(chunk) <= 1024 for chunk in chunks(pairs))
        assert all(one[-1] < other[0] for one, other in pairwise(chunks(pairs)))


# The commands


def test_compare_writes_what_it_shows(tmp_path: Path) -> None:
    code, output = run(
        "compare", "high_card", "greedy", "trivial", "--pairs", 30, "--seed", 6, "--json", tmp_path / "c.json",
        "--records", tmp_path / "games", "--record-pairs", 3,
    )  # fmt: skip
    assert code == 0 and "rating" in output and "30 mirrored pairs" in output
    figures = json.loads((tmp_path / "c.json").read_text())
    assert not figures["stopped"] and figures["seed"] == 6 and figures["sampled"]
    assert figures["policies"][0]["microseconds_per_move"] >= 0
    part = played(Contest(HIGH_CARD, ("greedy", "trivial"), 6), 30)
    assert figures["pairings"][0]["margin_per_episode"]["mean"] == pytest.approx(part.margins.mean())
    files = sorted((tmp_path / "games").iterdir())
    assert [file.name for file in files[:2]] == ["0000-1_greedy-2_trivial.json", "0000-2_trivial-1_greedy.json"]
    assert len(files) == 6
    for number in range(3):  # the games saved are those that were counted
        pair = [GameRecord.load(file) for file in files[2 * number : 2 * number + 2]]
        for record in pair:
            verify(record)
        margins = [scores[0] - scores[1] for scores in (record.outcome["scores"] for record in pair)]
        assert (margins[0] - margins[1]) / 2 == part.margins[0, number]


class Unwanted:
    """Must not be loaded."""

    def __init__(self, game: Game) -> None:
        raise AssertionError("loaded before it was clear that the command can do its work")


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("compare high_card WHO greedy --picture a.png", "matplotlib.backend_bases", "plot"),
        ("compare high_card WHO greedy --ray local", "ray", "ray"),
        ("generate high_card --players WHO --games 1 --out data", "pyarrow", "data"),
        ("generate high_card --players WHO --games 1 --out data --format minari", "minari", "data"),
        ("watch high_card --opponents WHO --gif a.gif", "resvg_py", "draw"),
        ("watch --replay no.json --gif a.gif", "PIL.Image", "draw"),
        ("serve --game high_card --opponent high_card/x=WHO", "uvicorn", "serve"),
        ("serve --mcp --game high_card --opponent high_card/x=WHO", "mcp.server.lowlevel", "mcp"),
        ("export ./no model.onnx", "onnxruntime", "onnx"),
    ],
)
def test_what_is_missing_is_said_first(
    words: str, package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a player is loaded, which may compile for minutes, and before a file is read or written."""
    for needed in ("matplotlib", "pyarrow", "minari", "resvg_py", "PIL", "uvicorn", "mcp", "onnx"):
        if needed in (package, *package.split(".")) or extra == needed:
            pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=rf"pip install 'card_envs\[{extra}\]'"):
        run(*words.replace("WHO", f"{HERE}:Unwanted").split())
    assert not list(tmp_path.iterdir())


def drawing(game: Game) -> NetworkPolicy:
    """A user's own network, by its name on the command line."""
    return untrained(game, NetworkPolicy, [4], sampled=True)


def settled(game: Game) -> NetworkPolicy:
    """A network that was made to play its likeliest moves."""
    return untrained(game, NetworkPolicy, [4])


def combined(game: Game) -> PhasedPolicy:
    return PhasedPolicy(range(1), drawing(game), as_policy(Asked(game), "greedy"))


def test_tables_say_how_networks_choose(tmp_path: Path) -> None:
    """In the title and in the file; also of a combination, but not of scripted players and searches."""
    file = tmp_path / "figures.json"
    mine, both, fixed = f"{HERE}:drawing", f"{HERE}:combined", f"{HERE}:settled"
    names, results = [mine, "greedy", both, fixed, "search:4"], {}
    for more, said in (
        ([], f"moves drawn: {mine}, {both}; likeliest moves: {fixed}"),
        (["--best"], f"likeliest moves: {mine}, {both}, {fixed}"),
    ):
        code, output = run("compare", "high_card", *names, "--pairs", 8, "--json", file, *more)
        assert code == 0 and said in " ".join(output.split())
        modes = [policy.get("sampled") for policy in json.loads(file.read_text())["policies"]]
        assert modes == [not more, None, not more, False, None]
        code, output = run("survey", "high_card", *names[:2], "--episodes", 8, "--json", file, *more)
        assert code == 0 and f"{'likeliest moves' if more else 'moves drawn'}: {mine}" in " ".join(output.split())
        players = json.loads(file.read_text())["players"]
        assert [player.get("sampled") for player in players.values()] == [not more, None]
        contest = Contest(HIGH_CARD, (drawing(HIGH_CARD), "greedy"), sampled=not more)
        results[bool(more)] = played(contest, 64).margins
    assert (results[True] == played(Contest(HIGH_CARD, (settled(HIGH_CARD), "greedy")), 64).margins).all()
    assert (results[True] != results[False]).any()
    code, output = run("compare", "high_card", "greedy", "search:4", "--pairs", 8)
    assert code == 0 and "moves drawn" not in output and "likeliest" not in output


@pytest.mark.parametrize(
    ("names", "anchor", "said"),
    [
        (("trivial", "greedy"), "greedy", "greedy has rating 1000"),
        (("trivial", "random", "trivial"), None, "the mean of the ratings is 1000"),
    ],
)
def test_ratings_name_their_anchor(names: tuple[str, ...], anchor: str | None, said: str) -> None:
    contest = Contest(HIGH_CARD, names)
    found = standings(contest, played(contest, 16))
    assert found.as_dict()["anchor"] == anchor and standings_sheet("", found).caption == said
    ratings = {policy.name: policy.rating.mean for policy in found.policies if policy.rating}
    assert (ratings[anchor] if anchor else np.mean([*ratings.values(), ratings["trivial"]])) == pytest.approx(1000)


@pytest.mark.mechanics
def test_pictures(game: Game, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from card_envs.compare.report import draw

    contest = Contest(game, ("greedy", "random", "trivial"), 3, tuple(short_options(game).items()))
    for pairs in (16, 1):  # one: bounds are infinite
        file = tmp_path / f"{pairs}.png"
        draw("title", standings(contest, played(contest, pairs)), file)
        assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("game", [game for game in GAMES.values() if game.view.PHASES], ids=lambda game: game.name)
def test_a_phase_apart(game: Game, tmp_path: Path) -> None:
    phase, *others = game.view.PHASES
    rest = " and ".join(others)
    words = ("compare", game.name, "greedy", "trivial", "--pairs", 40, "--apart", phase, "--with", "trivial")
    code, output = run(*words, *short_words(game), "--json", tmp_path / "a.json", "--records", tmp_path / "games")
    assert code == 0 and f"{phase}=NAME+trivial" in output and f"{phase}=trivial+NAME" in output
    figures = json.loads((tmp_path / "a.json").read_text())
    assert (figures["apart"], figures["with"], list(figures["contests"])) == (phase, "trivial", [phase, rest])
    trivial = load_opponent("trivial", game)
    for label, name in ((phase, f"{phase}=greedy+trivial"), (rest, f"{phase}=trivial+greedy")):
        result = play_pairs(game, load_opponent(name, game), trivial, 40, options=short_options(game))
        found = figures["contests"][label]
        assert found["pairings"][0]["margin_per_episode"]["mean"] == pytest.approx(result.margins.mean())
        assert {policy["name"]: policy["rating"]["mean"] for policy in found["policies"]}["greedy"] == 1000
        assert len(list((tmp_path / "games" / label).iterdir())) == 20
    whole = play_pairs(game, load_opponent(f"{phase}=greedy+greedy", game), trivial, 20, options=short_options(game))
    compiled = play_pairs(game, load_opponent("greedy", game), trivial, 20, options=short_options(game))
    assert np.array_equal(whole.margins, compiled.margins)


def test_ctrl_c_shows_what_is_known(tmp_path: Path) -> None:
    words = ("compare", "high_card", f"{HERE}:Impatient", "trivial", "--pairs", 64, "--json", tmp_path / "c.json")
    Impatient.left = 5
    code, output = run(*words)
    assert code == 130 and "stopped before 64" in output and "rating" in output
    figures = json.loads((tmp_path / "c.json").read_text())
    assert figures["stopped"] and 0 < figures["pairs"] < 64 and figures["pairs"] % 16 == 0
    Impatient.left = 0
    code, output = run(*words)
    assert code == 130 and "before the first pairs" in output


def test_ctrl_c_in_a_survey_shows_what_is_known(tmp_path: Path) -> None:
    words = ("survey", "high_card", "greedy", f"{HERE}:Impatient", "--episodes", 64, "--json", tmp_path / "s.json")
    Impatient.left = 0
    code, output = run(*words)
    assert code == 130 and "stopped after greedy 64" in output and "decisions an episode" in output
    figures = json.loads((tmp_path / "s.json").read_text())
    assert figures["stopped"] and figures["players"]["greedy"]["episodes"] == 64
    code, output = run("survey", "high_card", f"{HERE}:Impatient")
    assert code == 130 and "before the first episodes" in output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "high_card", "greedy", "gredy"), "did you mean high_card/greedy"),
        (("compare", "hi_card", "greedy", "trivial"), "did you mean high_card"),
        (("compare", "high_card", "greedy"), "two or more players"),
        (("compare", "high_card", "greedy", "trivial", "-o", "reward=gold"), "reward"),
        (("compare", "high_card", "greedy", "trivial", "--partner", "random"), "no side has a second seat"),
        (("compare", "high_card", "greedy", "trivial", "--apart", "bidding"), "no phase 'bidding': it has none"),
        (("survey", "high_card", "gredy"), "did you mean high_card/greedy"),
        (("survey", "high_card", "-o", "fruit"), "expected name=value"),
    ],
)
def test_wrong_words(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        run(*words)
    assert "\n" not in str(error.value)
