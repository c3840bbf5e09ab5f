"""`python -m benchmarks.gpu`: our steps and pgx's environments in turns on one GPU, by the clock.

Needs the extra `gpu` and `pip install pgx 'jax[cuda13]'`. Random legal actions; observations and masks are written, and
ended episodes dealt again. `--write` stores the figures in docs/gpu.json, from which `python docs/figures.py` makes the
table of docs/speed.md. `--device cpu`: `BatchEnv` with a thread for each core, beside JAX on the CPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes most of the card's memory at once

import numpy as np

from benchmarks.__main__ import processor
from benchmarks.measuring import short
from card_envs import GAMES, Game
from card_envs._bench import batch_out_of_step, gpu_steps, gpu_tables
from card_envs._files import read_json, write_json
from card_envs._processes import cores
from card_envs.engine._cost import per_second

FILE = Path(__file__).parents[1] / "docs" / "gpu.json"
PGX = ("leduc_holdem", "bridge_bidding", "sparrow_mahjong")
TABLES = (1 << 16, 1 << 20)
STEPS = 100  # in one scan
ROUNDS = 3
KEYS = 100_000  # deals of bridge with a result

Work = Callable[[], int]  # does something and waits for it; returns how many decisions that were


def our_steps(game: Game, tables: int, device: str) -> Work:
    """Return our steps."""
    if device != "cpu":
        return gpu_steps(*gpu_tables(game, tables, device))
    env = batch_out_of_step(game, tables, cores())
    streams, actions = np.arange(tables, dtype=np.uint64), np.zeros(tables, np.int64)

    def step() -> int:
        env.random_actions(streams, actions)
        env.step(actions)
        return tables

    return step


def pgx_environment(name: str) -> Any:
    """Return one of pgx's environments. Bridge gets random results of its deals, which random bidding does not see."""
    import pgx

    if name != "bridge_bidding":
        return pgx.make(name)
    from pgx.bridge_bidding import BridgeBidding

    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 1 << 26, (KEYS, 4), dtype=np.int32), axis=0)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/results.npy", np.stack([keys, rng.permutation(keys)]))
        return BridgeBidding(f"{folder}/results.npy")


def pgx_steps(name: str, tables: int) -> Work:
    """Return the steps of one of pgx's environments, compiled by JAX for its default device."""
    import jax
    from jax import numpy as jnp
    from pgx.experimental import auto_reset

    env = pgx_environment(name)
    step = jax.vmap(auto_reset(env.step, env.init))

    def one(state: Any, key: Any) -> Any:
        choosing, dealing = jax.random.split(key)
        actions = jax.random.categorical(choosing, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
        state = step(state, actions, jax.random.split(dealing, tables))
        return state, (state.rewards.sum(), state.observation.sum())  # so that both are made

    many = jax.jit(lambda state, key: jax.lax.scan(one, state, jax.random.split(key, STEPS)))
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(0), tables))
    key = jax.random.PRNGKey(1)

    def steps() -> int:
        nonlocal state, key
        key, now = jax.random.split(key)
        state, sums = many(state, now)
        jax.block_until_ready(sums)
        return STEPS * tables

    return steps


def in_turns(works: dict[str, Work], seconds: float, rounds: int = ROUNDS) -> dict[str, float]:
    """Run all alternately after a first time, in which they compile; return the best M/s of each."""
    best = dict.fromkeys(works, 0.0)
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            done, start = 0, time.perf_counter()
            while done == 0 or time.perf_counter() - start < seconds / rounds:
                done += work()
            best[name] = max(best[name], per_second(done, time.perf_counter() - start) / 1e6)
    return best


def measured(tables: int, device: str, seconds: float) -> dict[str, float]:
    """Return the M/s of all environments at that many tables; pgx's that do not fit into memory are left out."""
    works: dict[str, Work] = {game.name: our_steps(game, tables, device) for game in GAMES.values()}
    for name in PGX:
        try:
            work = pgx_steps(name, tables)
            work()
        except RuntimeError as error:  # of XLA
            print(f"{name}, {tables:,} tables: left out: {error!s:.200}", file=sys.stderr)
            continue
        works[f"pgx {name}"] = work
    return in_turns(works, seconds)


def card_of(device: str) -> str:
    """Return the device's name. Raises ValueError where JAX would use another."""
    import jax

    kind = jax.devices()[0].platform
    if (kind == "gpu") != (device != "cpu"):
        raise ValueError(f"--device {device}: JAX would use {kind}: install 'jax[cuda13]', or give --device cpu")
    if device == "cpu":
        return processor()
    import torch

    return torch.cuda.get_device_name(torch.device(device))


def stored(path: Path, found: dict[str, Any]) -> None:
    """Put figures into the file in place of those of the same card."""
    others = [one for one in (read_json(path) if path.exists() else []) if one["card"] != found["card"]]
    write_json(path, [*others, found])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 (then JAX's CUDA_VISIBLE_DEVICES, too), or cpu")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each environment and size (default 3)")
    parser.add_argument("--tables", type=int, nargs="+", default=TABLES, help="default: 65536 1048576")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/gpu.json")
    arguments = parser.parse_args()
    if not 0 < arguments.seconds < 3600 or min(arguments.tables) < 1:
        parser.error("--seconds, --tables: expected numbers above 0")
    try:
        card = card_of(arguments.device)
        rates: dict[str, dict[str, float]] = {}
        for tables in arguments.tables:
            for name, rate in measured(tables, arguments.device, arguments.seconds).items():
                rates.setdefault(name, {})[str(tables)] = float(f"{rate:.3g}")
                print(f"{name}, {tables:,} tables: {short(rate)} M/s", flush=True)
    except ModuleNotFoundError as error:
        parser.error(f"needs {error.name}: pip install pgx 'jax[cuda13]' 'card_envs[gpu]'")
    except ValueError as error:
        parser.error(str(error))
    if arguments.write:
        names = ("jax", "pgx", *(("torch", "numba-cuda") if arguments.device != "cpu" else ("numba",)))
        versions = ", ".join(f"{name} {version(name)}" for name in names)
        stored(FILE, {"card": card, "made": f"{versions}; in turns", "rates": rates})


if __name__ == "__main__":
    main()
