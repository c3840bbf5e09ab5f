"""Games as data: rows are what was played, files repeat and resume, and readers find what the guide says."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import shlex
import shutil
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from card_envs import BatchEnv
from card_envs.__main__ import app
from card_envs.compare._provenance import digest_of
from card_envs.compiling._specialize import game_sources
from card_envs.data import FORMATS, Plan, Rows, as_int8, generate
from card_envs.data._card import COLUMNS
from card_envs.data._minari import to_minari
from card_envs.game import Game, layout_digest, offsets
from card_envs.games import GAMES
from card_envs.layout import table
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.folder import golden_decisions, save_network
from card_envs.opponents.networks.policies import NetworkPolicy
from card_envs.opponents.policy import ActionValues, Decisions, decisions_at
from card_envs.opponents.scripted import RandomPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.play.episode import Episode
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import run_python, short_options, untrained

ROOT = Path(__file__).parents[2]
SEARCH = "search:8"
SOLVED = next(game for game in GAMES.values() if game.solver is not None)


def played_again(plan: Plan, rows: Rows) -> None:
    """Assert that the rows are what the environment shows when their actions are played."""
    game = plan.game
    for number in range(plan.games):
        own = np.flatnonzero(rows.game == number)
        episode = Episode(game, game.validated(dict(plan.options)), seed=plan.seed, number=number)
        paid = np.zeros((len(own) + 1, game.rules.NUM_SEATS))
        for k, i in enumerate(own):
            table = episode.table
            seen = decisions_at(game, table.states)
            assert (rows.seat[i], rows.deal[i]) == (table.seat, len(episode.dealt) - 1)
            assert (rows.obs[i] == seen.obs).all() and (rows.mask[i] == seen.mask).all()
            assert seen.mask[0, rows.action[i]]
            table_rewards = table.states["rewards"][0]
            episode.actions.append(int(rows.action[i]))
            table.play(int(rows.action[i]))
            paid[k] = table_rewards
            if not table.over:
                episode.deal()
        assert episode.over
        for seat in range(game.rules.NUM_SEATS):
            mine = [k for k, i in enumerate(own) if rows.seat[i] == seat]
            for k, after in zip(mine, [*mine[1:], len(own)]):
                assert rows.reward[own[k]] == pytest.approx(paid[k:after, seat].sum(), abs=1e-4)
                assert rows.last[own[k]] == (after == len(own))
            assert (rows.finals[number, seat] == episode.table.observe(seat)).all()


def test_rows_are_what_was_played(game: Game) -> None:
    plan = Plan(game, ("random", "greedy"), 3, seed=4)
    rows = plan.play(range(3))
    played_again(plan, rows)
    sides = np.array(game.sides)
    assert (rows.player == (rows.game + sides[rows.seat]) % 2).all()


class Telling:
    """Expects of each legal action what the decision and the action are, so that no other row has the same."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        return decisions.mask.argmax(axis=1)

    def probabilities(self, decisions: Decisions) -> Any:
        raise NotImplementedError

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
        means = told_of(decisions.obs, decisions.mask)
        return ActionValues(means, means, decisions.mask.astype(np.int64), self.act(decisions, rng))


def told_of(obs: Any, mask: Any) -> Any:
    weights = np.random.default_rng(0).random(obs.shape[1]).astype(np.float32)
    found = (obs @ weights)[:, None] + np.arange(mask.shape[1])
    return np.where(mask == 1, found, np.nan)


def test_values_stand_beside_the_decisions_that_they_are_of(game: Game) -> None:
    telling = f"{__name__}:Telling"
    plan = Plan(game, (telling, "random", telling) if game.num_sides > 1 else (telling,), 12, values=True)
    rows = plan.play(range(12))
    assert rows.values is not None
    asked = (rows.player != 1) & (rows.mask.sum(axis=1) > 1)
    expected = np.where(asked[:, None], told_of(rows.obs, rows.mask), np.nan)
    assert np.allclose(rows.values, expected, atol=1e-3, equal_nan=True) and asked.any()
    without = dataclasses.replace(plan, values=False).play(range(12))
    assert without.values is None and (without.action == rows.action).all()


@pytest.mark.mechanics
def test_what_is_played_does_not_depend_on_whether_values_are_kept(game: Game) -> None:
    """Also of players that have values of some decisions, and play others in another way."""
    for player in (*(f"{phase}=random+{SEARCH}" for phase in game.view.PHASES), "search:4,moves=turn"):
        plan = Plan(game, (player,), 2, seed=5, options=tuple(short_options(game).items()), values=True)
        rows, without = plan.play(range(2)), dataclasses.replace(plan, values=False).play(range(2))
        assert rows.action.tolist() == without.action.tolist(), player
        assert rows.values is not None and np.isfinite(rows.values).any(), player


class Slow:
    """Fails at the second part, as if the command had been stopped there."""

    calls = 0

    def __init__(self, game: Game) -> None:
        self.game = game

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        type(self).calls += 1
        if type(self).calls == 12:
            raise KeyboardInterrupt
        return decisions.mask.argmax(axis=1)

    def probabilities(self, decisions: Decisions) -> Any:
        raise NotImplementedError


def table_of(folder: Path) -> Any:
    return pytest.importorskip("pyarrow.parquet").read_table(folder / "data")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("card_envs.data._plan.GAMES_AT_ONCE", (16, 16))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.*") if file.is_file()}


class Weighty(RandomPolicy):
    """Has weights that another one of its kind need not have."""

    weights: Any = np.zeros(3)

    def __init__(self, game: Game) -> None:
        self.arrays = {"all": [type(self).weights.copy()]}


def saved(folder: Path, seed: int) -> None:
    network = untrained(HIGH_CARD, NetworkPolicy, [4], sampled=True, seed=seed)
    save_network(folder, network, golden_decisions(HIGH_CARD), training={}, strength=[])


@pytest.mark.parametrize(("within", "form"), [("{}", "jsonl"), ("search:2,prior={}", "parquet")])
def test_other_weights_under_the_same_name_are_refused(tmp_path: Path, form: str, within: str) -> None:
    """In a folder of the user, also as a part of another player; and in a user's class."""

    def change_folder(seed: int) -> None:
        saved(tmp_path / "net", seed)

    def change_class(seed: int) -> None:
        Weighty.weights = np.full(3, float(seed))

    for number, (name, change) in enumerate(
        ((str(tmp_path / "net"), change_folder), (f"{__name__}:Weighty", change_class))
    ):
        player, out = within.format(name), tmp_path / str(number)
        change(1)
        generate(Plan(HIGH_CARD, ("greedy", player), 20), out, format=form)
        change(2)
        with pytest.raises(ValueError, match=r"holds games of another .*: weights or code have changed") as error:
            generate(Plan(HIGH_CARD, ("greedy", player), 20), out, format=form)
        assert player in str(error.value) and "another greedy" not in str(error.value)
        change(1)
        assert generate(Plan(HIGH_CARD, ("greedy", player), 20), out, format=form) == 0


def test_weights_that_change_while_games_are_played_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "net", 1)
    plan = Plan(HIGH_CARD, (str(tmp_path / "net"),), 20)
    before = plan.digests()
    assert len(plan.play(range(20), before).action)
    saved(tmp_path / "net", 2)
    with pytest.raises(ValueError, match="net: weights or code have changed since the games were begun"):
        plan.play(range(20), before)


@pytest.mark.usefixtures("small_parts")
def test_users_players_keep_nothing_between_portions(tmp_path: Path) -> None:
    """Data does not depend on which process plays what, nor on where a run was stopped."""
    plan = Plan(HIGH_CARD, ("tests.conftest:Counting", "greedy"), 100)
    generate(plan, tmp_path / "whole")
    generate(plan, tmp_path / "by_two", processes=2)
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    for part in sorted((tmp_path / "resumed" / "data").iterdir())[1::2]:
        part.unlink()
    assert generate(plan, tmp_path / "resumed") > 0
    assert contents(tmp_path / "whole") == contents(tmp_path / "by_two") == contents(tmp_path / "resumed")


@pytest.mark.mechanics
@pytest.mark.parametrize("name", ["random", "greedy", "search:8,moves=turn", "strong", f"{__name__}:Weighty"])
def test_digests_repeat(game: Game, name: str) -> None:
    """In copies as well, and in what has played; the number of threads does not matter."""
    one, other = (load_opponent(name, game) for _ in range(2))
    other.act(decisions_at(game, BatchEnv(game, 3).states), np.random.default_rng(0))
    assert digest_of(one, game) == digest_of(other, game)
    if isinstance(one.policy, SearchPolicy):
        settings = {**one.policy.settings, "threads": 7}
        assert digest_of(SearchPolicy(game, **settings), game) == digest_of(one, game)


def test_digests_follow_the_game(game: Game) -> None:
    """Every module whose functions its rules, scripted players and planner run, and no other."""
    folder = Path(str(game.rules.__file__)).parent
    files = [Path(function.__code__.co_filename) for function in game_sources(game)]
    digested = {file.stem for file in files if file.parent == folder}
    assert {"rules", "bot"} <= digested and not {"view", "drawing", "options", "__init__"} & digested
    assert digested >= ({"planner", "features"} if (folder / "features.py").exists() else set())


AGENT = """
import numpy as np
import my_helpers
from my_base import Base
from my_table import worth

class Agent(Base):
    def __init__(self, game):
        pass

    def act(self, decisions, rng):
        my_helpers.choose(decisions)
        return worth(self.first(decisions))

    @staticmethod
    def first(decisions):
        return [my_third.twice(k) for k in range(2)]

import my_third
"""


DIGEST_OF_AN_AGENT = """
import sys
from pathlib import Path

from card_envs import load_opponent
from card_envs.compare._provenance import digest_of
from card_envs.scaffold.high_card import GAME

player = load_opponent("my_agent:Agent", GAME)
for name in sys.argv[1:]:
    Path(name).write_text(Path(name).read_text().replace("2", "3").replace("return x", "return x + 1"))
print(digest_of(player, GAME))
"""


def test_digests_follow_the_code_of_a_class(tmp_path: Path) -> None:
    """As a process imported it: an edit is noticed in the next one."""
    parts = {
        "my_agent": AGENT,
        "my_helpers": "import my_deepest\nBEST = 2\ndef choose(x):\n    return my_deepest.choose(x) + BEST\n",
        "my_table": "def worth(x):\n    return x\n",
        "my_third": "def twice(x):\n    return 2 * x\n",
        "my_deepest": "def choose(x):\n    return x\n",
        "my_base": "from card_envs.opponents.scripted import RandomPolicy\nclass Base(RandomPolicy):\n    skill = 2\n",
        "my_unused": "def choose(x):\n    return x\n",
    }
    for name, text in parts.items():
        (tmp_path / f"{name}.py").write_text(text)

    def digest(*edited: str) -> str:
        return run_python("-B", "-c", DIGEST_OF_AN_AGENT, *edited, folder=tmp_path, paths=(tmp_path,)).stdout

    before = digest()
    while_it_runs = digest(*(f"{name}.py" for name in parts))
    assert len({before, while_it_runs, digest()}) == 3  # what it plays is in no file any more
    for name, text in parts.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert digest() == before
    for name in ("my_agent", "my_deepest", "my_third", "my_base", "my_unused"):
        (tmp_path / f"{name}.py").write_text(parts[name] + "# edited\n")
        assert (digest() != before) == (name != "my_unused"), name
        (tmp_path / f"{name}.py").write_text(parts[name])


@pytest.mark.parametrize("form", FORMATS)
def test_the_card_describes_the_data(tmp_path: Path, form: str) -> None:
    """To data hubs, and to people; its command makes the same data."""
    yaml = pytest.importorskip("yaml")
    plan = Plan(HIGH_CARD, ("greedy", "search:4,moves=turn"), 20, 3, (("reward", "points"),), False, True)
    rows = generate(plan, tmp_path / "games", format=form)
    parts = list((tmp_path / "games" / "data").iterdir())
    text = (tmp_path / "games" / "README.md").read_text()
    _, front, page = text.split("---\n", 2)
    found = yaml.safe_load(front)
    assert found["license"] == "mit" and found["size_categories"] == ["n<1K"] and f": {rows} decisions" in page
    assert found["configs"] == [{"config_name": "default", "data_files": f"data/*.{form}"}]
    assert {path.suffix for path in parts} == {f".{form}"}
    columns = re.findall(r"^\| `(\w+)` \|", page.split("## Columns")[1].split("##")[0], re.M)
    if form == "parquet":
        assert sorted(columns) == sorted(table_of(tmp_path / "games").column_names)
        assert table(HIGH_CARD.rules.OBS_FIELDS) in page
    else:
        assert columns == list(json.loads(parts[0].read_text().splitlines()[0]))
    (command,) = re.findall(r"^python -m card_envs (generate .*)$", page, re.M)
    words = [*shlex.split(command), "--out", str(tmp_path / "again"), "--processes", "1"]
    assert CliRunner().invoke(app, words).exit_code == 0
    for path in parts:
        assert (tmp_path / "again" / "data" / path.name).read_bytes() == path.read_bytes()
    assert (tmp_path / "again" / "README.md").read_text() == text


def test_the_guide_has_the_columns() -> None:
    guide = (ROOT / "docs" / "guides" / "data.md").read_text()
    assert all(f"| `{name}` | {meaning} |" in guide for name, meaning in COLUMNS.items())


@pytest.mark.parametrize("form", FORMATS)
def test_readers_open_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """As the card and the guide say; polars, pandas and pyarrow read every file of a folder."""
    plan = Plan(HIGH_CARD, (SEARCH,), 20, values=True)
    rows = generate(plan, tmp_path / "games", format=form)
    assert {path.name for path in (tmp_path / "games").iterdir()} <= {"README.md", "data", ".lock", ".generate.json"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    for block in re.findall(r"^```python\n(.*?)^```", Path("games/README.md").read_text(), re.M | re.S):
        (module,) = re.findall(r"^import (pyarrow|polars|datasets)", block, re.M)
        if importlib.util.find_spec(module):
            names: dict[str, Any] = {}
            exec(block, names)
            assert len(names["rows"]) == rows
            assert form == "jsonl" or (names["obs"] == plan.play(range(20)).obs).all()
    if form == "parquet" and importlib.util.find_spec("pandas"):
        assert len(importlib.import_module("pandas").read_parquet("games/data")) == rows


@pytest.mark.parametrize("form", FORMATS)
def test_a_part_that_is_not_whole_is_written_again(tmp_path: Path, form: str) -> None:
    plan = Plan(HIGH_CARD, ("greedy",), 20)
    rows = generate(plan, tmp_path, format=form)
    (file,) = tmp_path.glob("data/games-*")
    whole = file.read_bytes()
    for broken in (b"", whole[:-3]):
        file.write_bytes(broken)
        assert generate(plan, tmp_path, format=form) == rows
        assert file.read_bytes() == whole


@pytest.mark.usefixtures("small_parts")
def test_files_are_completed_after_a_stop(tmp_path: Path) -> None:
    plan = Plan(HIGH_CARD, (f"{__name__}:Slow",), 100)
    Slow.calls = 0
    with pytest.raises(KeyboardInterrupt):
        generate(plan, tmp_path / "stopped")
    there = {file: file.stat().st_mtime_ns for file in (tmp_path / "stopped").glob("data/games-*")}
    assert 0 < len(there) < 7 and not (tmp_path / "stopped" / "README.md").exists()
    told: list[tuple[int, int]] = []
    rows = generate(plan, tmp_path / "stopped", progress=lambda *found: told.append(found))
    assert told[-1] == (100, rows) and len(told) == 7 - len(there)
    assert all(file.stat().st_mtime_ns == at for file, at in there.items())
    generate(plan, tmp_path / "whole")
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole") and (tmp_path / "whole/README.md").exists()
    assert generate(plan, tmp_path / "whole") == 0  # complete


def test_parquet_has_the_rows(tmp_path: Path) -> None:
    plan = Plan(HIGH_CARD, (SEARCH, "greedy"), 30, values=True)
    generate(plan, tmp_path)
    found, rows = table_of(tmp_path), plan.play(range(30))
    about = json.loads(found.schema.metadata[b"card_envs"])
    assert about["players"] == [SEARCH, "greedy"] and about["digests"] == plan.digests() and about["seed"] == plan.seed
    assert (about["game"], about["version"], about["options"]) == (HIGH_CARD.name, HIGH_CARD.version, {})
    assert about["layout"] == layout_digest(HIGH_CARD.rules) and about["license"] == "mit"
    assert about["card_envs"] == version("card_envs")
    for field in about["observation"]:
        assert getattr(offsets(HIGH_CARD.rules.OBS_FIELDS), field["name"]) == field["offset"]
    assert [field["name"] for field in about["actions"]] == [field.name for field in HIGH_CARD.rules.ACTION_FIELDS]
    for name in ("game", "deal", "seat", "action", "reward", "last"):
        assert (found[name].to_numpy() == getattr(rows, name)).all()
    assert found["player"].to_pylist() == [plan.players[player] for player in rows.player]
    for name in ("obs", "mask"):
        assert (as_int8(found[name]) == getattr(rows, name)).all()
    assert rows.values is not None
    assert np.allclose(np.array(found["values"].to_pylist(), np.float32), rows.values, equal_nan=True)


def test_columns_of_bytes_open_as_arrays() -> None:
    """Without a copy if they are in one piece; also a part of them, several pieces, and none."""
    arrow = pytest.importorskip("pyarrow")
    bytes_ = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
    chunk = arrow.FixedSizeBinaryArray.from_buffers(arrow.binary(3), 4, [None, arrow.py_buffer(bytes_)])
    one, two = arrow.chunked_array([chunk.slice(1, 2)]), arrow.chunked_array([chunk.slice(3), chunk])
    assert (as_int8(one) == bytes_[1:3]).all() and np.shares_memory(as_int8(one), bytes_)
    assert (as_int8(two) == bytes_[[3, 0, 1, 2, 3]]).all()
    assert as_int8(arrow.chunked_array([], arrow.binary(3))).shape == as_int8(two[:0]).shape == (0, 3)


@pytest.mark.mechanics
def test_lines_say_the_position_and_the_move(game: Game, tmp_path: Path) -> None:
    plan = Plan(game, ("random",), 2, seed=1)
    generate(plan, tmp_path, format="jsonl")
    rows = plan.play(range(2))
    lines = [json.loads(line) for file in sorted(tmp_path.glob("data/*.jsonl")) for line in file.open(encoding="utf-8")]
    assert len(lines) == len(rows.seat)
    episode = Episode(game, game.validated({}), seed=1, number=0)
    view = game.view.view(episode.table.state, episode.table.seat)
    assert lines[0]["text"] == game.view.picture(view) and sorted(lines[0]["legal"]) == sorted(view["legal"])
    for line, action in zip(lines, rows.action):
        assert line["move"] in line["legal"]
        if line["game"] == 0:
            assert episode.game.view.move_text(episode.table.state, int(action)) == line["move"]
            episode.play(int(action))


@pytest.mark.mechanics
def test_lines_have_the_keys_and_values_that_the_guide_says(game: Game, tmp_path: Path) -> None:
    """Values are a list beside the legal moves: as keys, readers of tables would lose those of moves that come late."""
    plan = Plan(game, (f"{__name__}:Telling",), 2, options=tuple(short_options(game).items()), values=True)
    generate(plan, tmp_path, format="jsonl")
    rows = plan.play(range(2))
    assert rows.values is not None
    lines = [json.loads(line) for file in sorted(tmp_path.glob("data/*.jsonl")) for line in file.open(encoding="utf-8")]
    guide = (ROOT / "docs" / "guides" / "data.md").read_text().split("## Text")[1].split("##")[0]
    for line, mask, values in zip(lines, rows.mask, rows.values, strict=True):
        assert set(line) == set(re.findall(r"`(\w+)`", guide)) - {"obs", "mask", "action"}
        expected = values[mask == 1].astype(np.float64)
        assert np.allclose(np.array(line["values"], np.float64), expected, atol=1e-3, equal_nan=True)


def test_a_minari_data_set_has_an_episode_a_seat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    plan = Plan(HIGH_CARD, ("greedy",), 5)
    rows = plan.play(range(5))
    with pytest.warns(UserWarning, match="code_permalink"):
        assert to_minari(plan, "high_card/greedy-v0") == len(rows.seat)
    found = minari.load_dataset("high_card/greedy-v0")
    assert found.total_episodes == 10 and found.total_steps == len(rows.seat)
    first = next(found.iterate_episodes([0]))
    own = (rows.game == 0) & (rows.seat == 0)
    assert (first.actions == rows.action[own]).all() and first.rewards.sum() == rows.reward[own].sum()
    assert (first.observations["observation"] == np.r_[rows.obs[own], rows.finals[0, 0][None]]).all()
    assert first.terminations.tolist() == [False, False, True]
    with pytest.raises(ValueError, match="there is a Minari data set of this name"):
        to_minari(plan, "high_card/greedy-v0")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.filterwarnings("ignore:.*code_permalink")
def test_a_minari_data_set_that_was_stopped_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile, other programs of the user list their data sets without a warning."""
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    Slow.calls = 0
    plan = Plan(HIGH_CARD, (f"{__name__}:Slow",), 100)
    listed: list[Any] = []

    def list_them(games: int, rows: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            listed.append(minari.list_local_datasets())

    with pytest.raises(KeyboardInterrupt):
        to_minari(plan, "high_card/slow-v0", progress=list_them)
    assert listed and minari.list_local_datasets() == {} and not (tmp_path / "high_card" / "slow-v0").exists()
    rows = to_minari(plan, "high_card/slow-v0", progress=list_them)
    assert [*minari.list_local_datasets()] == ["high_card/slow-v0"]
    assert minari.load_dataset("high_card/slow-v0").total_steps == rows
    assert "high_card" in minari.namespace.list_local_namespaces()


def test_names_of_minari_data_sets_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    for name in ("", "high_card/greedy", "a b-v0", "../greedy-v0"):
        with pytest.raises(ValueError, match="out: expected the name of a Minari data set, such as NAME/OF-v0"):
            to_minari(Plan(HIGH_CARD, ("greedy",), 5), name)
    assert not list(tmp_path.iterdir())


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    plan = Plan(HIGH_CARD, ("greedy",), 20)
    assert Plan("high_card", ("greedy",), 20) == plan  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown game 'chess'"):
        Plan("chess", ("greedy",), 20)  # type: ignore[arg-type]
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "README.md").write_text("mine")
    generate(plan, tmp_path / "there")
    assert (tmp_path / "there" / "README.md").read_text() == "mine"
    for other, said in (
        (Plan(HIGH_CARD, ("greedy",), 21), "holds other games, of games = 20; take another folder"),
        (Plan(HIGH_CARD, ("random",), 20), r"of players = \['greedy'\]"),
        (Plan(HIGH_CARD, (), 20), "players: expected at least one name"),
        (Plan(HIGH_CARD, ("gredy",), 20), "did you mean high_card/greedy"),
        (Plan(HIGH_CARD, ("greedy",), 0), "games: expected"),
        (Plan(HIGH_CARD, (), 20, solve_seconds=1), "there is no solver for this game"),
        (Plan(HIGH_CARD, ("greedy",), 20, seed=-1), "seed: expected a whole number from 0"),
        (Plan(HIGH_CARD, ("greedy",), 20, sampled=1), "sampled: expected True or False"),  # type: ignore[arg-type]
        (Plan(HIGH_CARD, ("greedy",), 20, values=None), "values: expected True or False"),  # type: ignore[arg-type]
        (Plan(HIGH_CARD, ("greedy",), 20, options=(("x", 1),)), "option x=1"),
    ):
        with pytest.raises(ValueError, match=said):
            generate(other, tmp_path / "there")
    for seconds in (float("nan"), 0, True):
        with pytest.raises(ValueError, match="solve: seconds: expected a number above 0"):
            generate(Plan(SOLVED, (), 20, solve_seconds=seconds), tmp_path / "new")
    with pytest.raises(ValueError, match="format: expected parquet or jsonl"):
        generate(plan, tmp_path / "other", format="csv")
    for out, processes, said in (
        ("", 1, "out: expected a folder, got an empty name"),
        ("new", 0, "processes: expected"),
    ):
        with pytest.raises(ValueError, match=said):
            generate(plan, out and tmp_path / out, processes=processes)
    assert not (tmp_path / "new").exists() and not (tmp_path / "other").exists()
    for name, form, said in (
        ("games-1.parquet", "parquet", "holds games-1.parquet, which is not of these games"),
        ("games-1.jsonl", "parquet", "holds games-1.jsonl, which is not of these games"),
        ("games-1.jsonl", "jsonl", "holds games of another format, or without their settings"),
    ):
        folder = tmp_path / f"{form} {name}"
        (folder / "data").mkdir(parents=True)
        (folder / "data" / name).touch()
        with pytest.raises(ValueError, match=f"{said}; take another folder"):
            generate(plan, folder, format=form)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    plan, precious = Plan(HIGH_CARD, ("greedy",), 20), tmp_path / "precious"
    precious.write_text("precious")
    generate(plan, tmp_path / "games")
    (part,) = (tmp_path / "games" / "data").iterdir()
    for target in (precious, Path("nowhere")):
        part.unlink()
        part.symlink_to(target)
        with pytest.raises(ValueError, match=f"holds {part.name}, which is no file of its own"):
            generate(plan, tmp_path / "games")
    assert precious.read_text() == "precious"


@pytest.mark.processes
def test_the_example_clones_a_player(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    game = next(game for game in GAMES.values() if game.num_sides > 1 and game != HIGH_CARD)
    generate(Plan(game, ("greedy",), 20, options=tuple(short_options(game).items())), tmp_path / "games")
    words = ["--game", game.name, "--epochs", "2", "--pairs", "2", "--onnx", str(tmp_path / "copy.onnx")]
    done = run_python("examples/behaviour_cloning.py", tmp_path / "games", *words)
    assert "epoch 2: loss" in done.stdout and "against greedy: " in done.stdout
    assert (tmp_path / "copy.onnx").stat().st_size > 100_000


@pytest.mark.parametrize("form", FORMATS)
def test_data_without_a_won_deal(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No deal is decided in no time: there are no rows, which is said, and not that nothing was left to do."""
    monkeypatch.chdir(tmp_path)
    words = ["generate", SOLVED.name, "--solve", "0.000001", "--games", "3", "--processes", "1", "--format", form]
    for said in ("none of the 3 deals was won: there are no decisions to write", "out is complete: there was nothing"):
        done = CliRunner().invoke(app, [*words, "--out", "out"])
        assert done.exit_code == 0 and said in done.output, done.output
