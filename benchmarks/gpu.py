"""`python -m benchmarks.gpu`: our steps and pgx's environments in turns on one GPU, by the clock.

Needs the extra `gpu` and `pip install pgx 'jax[cuda13]'`. Random legal actions; observations and masks are written, and
ended episodes dealt again. `--write` stores the figures in docs/gpu.json, from which `python docs/figures.py` makes the
table of docs/speed.md.
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

from benchmarks import short
from card_envs import GAMES
from card_envs.bench import gpu_steps, gpu_tables
from card_envs.engine.cost import per_second
from card_envs.system.console import errors_in_words
from card_envs.system.files import read_json, write_json

FILE = Path(__file__).parents[1] / "docs" / "gpu.json"
PGX = ("leduc_holdem", "bridge_bidding", "sparrow_mahjong")
STEPS = 100  # of pgx in one scan
ROUNDS = 3

MISSING = {name: f"this needs {name}: pip install pgx 'jax[cuda13]'" for name in ("jax", "pgx")}
MISSING |= {name: f"this needs {name}: pip install 'card_envs[gpu]'" for name in ("torch", "numba_cuda")}

Work = Callable[[], int]  # does something and waits for it; returns how many decisions that were


def pgx_environment(name: str) -> Any:
    """Return one of pgx's environments. Bridge gets random results of its deals, which random bidding does not see."""
    import pgx

    if name != "bridge_bidding":
        return pgx.make(name)
    from pgx.bridge_bidding import BridgeBidding

    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 1 << 26, (100_000, 4), dtype=np.int32), axis=0)
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

    def step_all(state: Any, key: Any) -> Any:
        choosing, dealing = jax.random.split(key)
        actions = jax.random.categorical(choosing, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
        state = step(state, actions, jax.random.split(dealing, tables))
        return state, (state.rewards.sum(), state.observation.sum())  # so that both are made

    many = jax.jit(lambda state, key: jax.lax.scan(step_all, state, jax.random.split(key, STEPS)))
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(0), tables))
    key = jax.random.PRNGKey(1)

    def steps() -> int:
        nonlocal state, key
        key, now = jax.random.split(key)
        state, sums = many(state, now)
        jax.block_until_ready(sums)
        return STEPS * tables

    return steps


def measure(tables: int, seconds: float) -> dict[str, float]:
    """Return the best M/s of all environments, in turns; pgx's that do not fit into memory are left out."""
    works: dict[str, Work] = {name: gpu_steps(*gpu_tables(game, tables, "cuda")) for name, game in GAMES.items()}
    for name in PGX:
        try:
            works[f"pgx {name}"] = pgx_steps(name, tables)
            works[f"pgx {name}"]()
        except RuntimeError as error:  # of XLA
            works.pop(f"pgx {name}", None)
            print(f"{name}, {tables:,} tables: left out: {error!s:.200}", file=sys.stderr)
    best = dict.fromkeys(works, 0.0)
    for work in works.values():
        work()
    for _ in range(ROUNDS):
        for name, work in works.items():
            done, start = 0, time.perf_counter()
            while done == 0 or time.perf_counter() - start < seconds / ROUNDS:
                done += work()
            best[name] = max(best[name], per_second(done, time.perf_counter() - start) / 1e6)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each environment and size (default 3)")
    parser.add_argument("--tables", type=int, nargs="+", default=(1 << 16, 1 << 20), help="default: 65536 1048576")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/gpu.json")
    arguments = parser.parse_args()
    import jax
    import torch

    if jax.devices()[0].platform != "gpu":
        parser.error("JAX finds no GPU: pip install 'jax[cuda13]'")
    rates: dict[str, dict[str, float]] = {}
    for tables in arguments.tables:
        for name, rate in measure(tables, arguments.seconds).items():
            rates.setdefault(name, {})[str(tables)] = float(f"{rate:.3g}")
            print(f"{name}, {tables:,} tables: {short(rate)} M/s", flush=True)
    if arguments.write:
        versions = ", ".join(f"{name} {version(name)}" for name in ("jax", "pgx", "torch", "numba-cuda"))
        card = torch.cuda.get_device_name()
        others = [entry for entry in read_json(FILE) if entry["card"] != card]
        write_json(FILE, [*others, {"card": card, "made": f"{versions}; in turns", "rates": rates}])


if __name__ == "__main__":
    with errors_in_words(MISSING):
        main()
