"""Answers do not depend on what the caller has set for the whole process: the same bytes under hostile settings."""

from __future__ import annotations

import contextlib
import decimal
import inspect
import json
import locale
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from card_envs._layout import layout_tables
from card_envs.compare.contests import Contest, join, play_contest
from card_envs.compare.pairs import play_pairs
from card_envs.compare.standings import standings
from card_envs.draw import draw
from card_envs.engine.batch import BatchEnv
from card_envs.envs._replay import verify
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.opponents import TorchPolicy, load_opponent, opponent_names
from card_envs.opponents.networks.folder import CARD_FILE, save_model, save_network
from card_envs.opponents.networks.policies import NetworkPolicy
from card_envs.opponents.policy import decisions_at
from card_envs.record import GameRecord
from tests.conftest import positions, quick_opponents, short_options, some

pytestmark = pytest.mark.mechanics


@contextlib.contextmanager
def hostile() -> Iterator[None]:
    """Everything that one line of a caller's can set for the whole process."""
    with contextlib.ExitStack() as undo:
        undo.enter_context(np.errstate(all="raise"))
        undo.enter_context(
            np.printoptions(precision=1, threshold=1, edgeitems=1, linewidth=10, sign="+", floatmode="fixed")
        )
        undo.enter_context(decimal.localcontext(decimal.Context(prec=1, traps=[decimal.Inexact, decimal.Rounded])))
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        before = locale.setlocale(locale.LC_ALL)
        undo.callback(locale.setlocale, locale.LC_ALL, before)
        for name in ("de_DE.UTF-8", "tr_TR.UTF-8", "C"):
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, name)
                break
        undo.callback(random.setstate, random.getstate())
        undo.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        random.seed(77)
        np.random.seed(77)  # noqa: NPY002
        undo.callback(sys.set_int_max_str_digits, sys.get_int_max_str_digits())
        sys.set_int_max_str_digits(640)
        undo.callback(sys.setrecursionlimit, sys.getrecursionlimit())
        with contextlib.suppress(ImportError):
            import torch

            undo.callback(torch.set_default_dtype, torch.get_default_dtype())
            undo.callback(torch.set_default_device, None)
            undo.callback(torch.set_grad_enabled, torch.is_grad_enabled())
            torch.set_default_dtype(torch.float64)
            torch.set_default_device("meta")
            torch.set_grad_enabled(False)
        sys.setrecursionlimit(len(inspect.stack()) + 200)
        yield


def opponents(game: Game, folder: Path) -> Iterator[Any]:
    """Collect the answers of every quick opponent, and of a search."""
    decisions = decisions_at(game, some(positions(game), 64))
    env = CardEnv(game)
    env.reset(seed=3)
    view = env.view(env.agent_selection)
    for name in opponent_names(game):
        opponent = load_opponent(name, game)
        if name in quick_opponents(game):
            yield (
                name,
                opponent.act(decisions, np.random.default_rng(0)).tobytes(),
                opponent.probabilities(decisions).tobytes(),
            )
            yield name, opponent.advise(view)
            best = load_opponent(name, game, sampled=False)
            yield name, best.act(decisions, np.random.default_rng(0)).tobytes()
    one = decisions.at(np.array([0]))
    for name in ("search:4", "search:4,moves=turn", *(f"search:4,prior={name}" for name in quick_opponents(game)[-1:])):
        opponent = load_opponent(name, game)
        yield name, opponent.act(one, np.random.default_rng(0)).tobytes(), repr(opponent.evaluate(view))


def environments(game: Game, folder: Path) -> Iterator[Any]:
    """Collect what environments show and write."""
    env = CardEnv(game, render_mode="ansi", **short_options(game))
    env.reset(seed=5)
    for step in range(60):
        observation, *rest = env.last()
        if rest[1]:
            break
        yield observation["observation"].tobytes(), observation["action_mask"].tobytes(), rest[0], env.render()
        yield json.dumps(env.view(env.agent_selection))
        legal = np.flatnonzero(observation["action_mask"])
        env.step(int(legal[step % len(legal)]))
    env.record().save(folder / "game.json")
    yield (folder / "game.json").read_bytes()
    record = GameRecord.load(folder / "game.json")
    verify(record)
    yield repr(record)
    single = gymnasium.make(game.gymnasium_id, opponents="trivial")
    observation, info = single.reset(seed=1)
    yield observation.tobytes(), info["action_mask"].tobytes()
    batch = BatchEnv(game, 8, seed=1)
    for _ in range(20):
        batch.step(np.argmax(batch.mask, axis=1))
        yield batch.obs.tobytes(), batch.mask.tobytes(), batch.rewards.tobytes(), batch.states.tobytes()
    yield layout_tables(game)
    yield draw(game, env.view(env.agent_selection)) if not rest[1] else ""


def comparisons(game: Game, folder: Path) -> Iterator[Any]:
    """Figures of comparisons, but for what was timed."""
    names = ("greedy", "trivial", "random")
    contest = Contest(game, names, 7, tuple(sorted(short_options(game).items())))
    found = standings(contest, join([*play_contest(contest, 20)]))
    figures = found.as_dict()
    yield [(key, repr(value)) for key, value in figures.items() if "micro" not in key and "policies" not in key]
    result = play_pairs(game, load_opponent("greedy", game), load_opponent("random", game), 10, 3)
    yield {key: value for key, value in result.as_dict().items() if "micro" not in key}


def files(game: Game, folder: Path) -> Iterator[Any]:
    """Opponents written and read, as folders and as ONNX models."""
    decisions = decisions_at(game, some(positions(game), 16))
    shapes = NetworkPolicy.shapes(game, [8, 8])
    rng = np.random.default_rng(0)
    policy = NetworkPolicy(
        game, {name: rng.normal(0, 1e-7, shape).astype(np.float32) for name, shape in shapes.items()}
    )
    save_network(folder / "mine", policy, decisions, training={"share": 0.1}, strength=[])
    yield (folder / "mine" / CARD_FILE).read_bytes(), load_opponent(folder / "mine").probabilities(decisions).tobytes()
    with contextlib.suppress(ImportError):
        import onnxruntime  # noqa: F401

        from card_envs.opponents.networks.onnx import to_onnx

        model = to_onnx(policy)
        save_model(folder / "its", game, model)
        yield model, load_opponent(folder / "its").probabilities(decisions).tobytes()
    with contextlib.suppress(ImportError):
        import torch

        low = [torch.nn.Parameter(torch.full((size,), -1e3, dtype=torch.float32, device="cpu")) for size in (1,)]

        class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.low = low[0]

            def forward(self, observation: Any, action_mask: Any) -> Any:
                return self.low * action_mask.cumsum(1)

        yield TorchPolicy(Module()).probabilities(decisions).tobytes()


@pytest.mark.parametrize("asked", [opponents, environments, comparisons, files], ids=lambda one: one.__name__)
def test_answers_do_not_depend_on_what_the_caller_has_set(
    game: Game, asked: Callable[[Game, Path], Iterator[Any]], tmp_path: Path
) -> None:
    for name in ("calm", "hostile"):
        (tmp_path / name).mkdir()
    calm = list(asked(game, tmp_path / "calm"))
    before = random.getstate()[1], np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    list(asked(game, tmp_path / "calm"))
    assert before == (random.getstate()[1], np.random.get_state()[1].tolist())  # type: ignore[index] # noqa: NPY002
    with hostile():
        found = list(asked(game, tmp_path / "hostile"))
    assert len(found) == len(calm)
    for one, other in zip(found, calm):
        assert one == other
