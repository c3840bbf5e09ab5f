"""Profiles an iteration of training on a GPU: `python -m benchmarks.gpu --profile CONFIG [key=value …]`.

Parts are timed by the clock, waiting for the GPU before and after; one more iteration under torch's profiler tells when
the card is busy, and with what. In CUDA's simulator the same code runs, and torch's operations are counted instead.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

from card_envs.engine.gpu import SIMULATED
from training.algorithms.advantages import Advantages
from training.algorithms.ppo import PPO
from training.config import load_config
from training.run import Run

WARM_UPS = 3  # iterations: what is captured as a CUDA graph is captured by the third
ROUNDS = 2  # timed iterations
PROGRESS = 0.3  # the share of the run that they are taken at: cloning is over, the pool has a snapshot
COSTLIEST = 10
# Calls with which the processor gives the card work; behind the names, a variant: ExC, Ex, Async, _ptsz.
LAUNCHES = re.compile(r"cu(da)?(LaunchKernel|LaunchCooperativeKernel|GraphLaunch|Memcpy|Memset)")

Result = TypeVar("Result")
Part = Callable[[str, Callable[[], Any]], Any]  # called with the name of a part and what does it


def iterate(algorithm: PPO | Advantages, part: Part) -> int:
    """Take an iteration, each part of it through `part`; return the number of decisions learned from."""
    part("play", lambda: algorithm.play(PROGRESS))
    if isinstance(algorithm, PPO):
        batch = part("batch", algorithm.batch)
        part("update", lambda: algorithm.update(batch, PROGRESS))
    else:
        part("update", lambda: algorithm.update(PROGRESS))
    return int(algorithm.rollout.learned.sum())


def wait() -> None:
    """Wait for the GPU."""
    if not SIMULATED:
        torch.cuda.synchronize()


def profiled(config: Path, overrides: list[str]) -> dict[str, Any]:
    """Return what an iteration of training costs.

    Returns:
        `decisions` learned from, and by part (`parts`) `seconds`, `busy_seconds`, `launches` and `costliest` kernels;
        `m_decisions_per_second` and `peak_gib` of memory. In CUDA's simulator, which has no rates, only `operations`
        and the `commonest` by part.

    Raises:
        ValueError: the settings are wrong or not for a GPU, or there is none.
    """
    settings = load_config(config, overrides)
    if settings.device == "cpu":
        raise ValueError("device = 'cpu': expected settings for a GPU, such as device=cuda")
    algorithm = Run(settings).algorithm
    assert isinstance(algorithm, PPO | Advantages)  # nothing else reads `device`
    for _ in range(WARM_UPS):
        iterate(algorithm, lambda name, work: work())
    rounds: list[dict[str, float]] = [{} for _ in range(0 if SIMULATED else ROUNDS)]
    for seconds in rounds:
        iterate(algorithm, lambda name, work: timed(name, work, seconds))  # noqa: B023
    parts: dict[str, dict[str, Any]] = {}
    decisions = iterate(algorithm, lambda name, work: traced(name, work, parts))
    found: dict[str, Any] = {"config": str(config), "overrides": overrides, "decisions": decisions, "parts": parts}
    if SIMULATED:
        return {"card": None, **found}
    for name, figures in parts.items():
        figures["seconds"] = min(seconds[name] for seconds in rounds)
    whole = sum(figures["seconds"] for figures in parts.values())
    return {
        "card": torch.cuda.get_device_name(),
        **found,
        "m_decisions_per_second": decisions / whole / 1e6,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
    }


def timed(name: str, work: Callable[[], Result], seconds: dict[str, float]) -> Result:
    """Do a part of an iteration, and note its seconds."""
    wait()
    start = perf_counter()
    result = work()
    wait()
    seconds[name] = perf_counter() - start
    return result


def traced(name: str, work: Callable[[], Result], parts: dict[str, dict[str, Any]]) -> Result:
    """Do a part of an iteration under the profiler, and note what it saw."""
    activities = [ProfilerActivity.CPU] if SIMULATED else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    wait()
    with profile(activities=activities) as profiler:
        result = work()
        wait()
    events = profiler.events()
    parts[name] = on_the_processor(events) if SIMULATED else on_the_card(events)
    return result


def on_the_card(events: Iterable[Any]) -> dict[str, Any]:
    """Return the seconds in which the card is busy, the number of launches, and the costliest kernels."""
    launches, spans, kernels = 0, [], Counter[str]()
    times: Counter[str] = Counter()
    for event in events:
        if event.device_type.name == "CPU":
            launches += bool(LAUNCHES.match(event.name))
        elif not event.is_user_annotation:  # such as a whole step of the optimizer
            spans.append((event.time_range.start, event.time_range.end))
            kernels[event.name] += 1
            times[event.name] += event.time_range.end - event.time_range.start
    costliest = [
        {"kernel": name, "seconds": microseconds / 1e6, "times": kernels[name]}
        for name, microseconds in times.most_common(COSTLIEST)
    ]
    return {"busy_seconds": covered(spans) / 1e6, "launches": launches, "costliest": costliest}


def on_the_processor(events: Iterable[Any]) -> dict[str, Any]:
    """Return the number of operations that torch's caller asked for, views too, and the commonest of them."""
    counts: Counter[str] = Counter()
    for event in events:
        by_torch = event.cpu_parent is not None and event.cpu_parent.name.startswith("aten::")
        counts[event.name] += event.name.startswith("aten::") and not by_torch
    commonest = [{"operation": name, "times": times} for name, times in counts.most_common(COSTLIEST) if times]
    return {"operations": counts.total(), "commonest": commonest}


def covered(spans: list[tuple[float, float]]) -> float:
    """Return how much time spans of it cover; they may overlap, as kernels on several streams do."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def show(found: dict[str, Any], file: Any = sys.stdout) -> None:
    """Print what `profiled` returns."""
    if found["card"] is None:
        print("CUDA's simulator: torch's operations are counted; nothing here is a rate of a card.", file=file)
    for name, part in found["parts"].items():
        if found["card"] is None:
            print(f"{name}: {part['operations']:,} operations", file=file)
            for one in part["commonest"]:
                print(f"  {one['times']:>8,} times  {one['operation']}", file=file)
            continue
        busy, seconds = part["busy_seconds"], part["seconds"]
        print(f"{name}: {seconds:.3f} s waited for, of which the card is busy for {busy:.3f}", end=" ", file=file)
        print(f"({100 * busy / seconds:.0f} %); {part['launches']:,} launches", file=file)
        for one in part["costliest"]:
            print(f"  {1e3 * one['seconds']:8.1f} ms {one['times']:>6,} times  {one['kernel']:.100}", file=file)
    print(f"{found['decisions']:,} decisions", end="", file=file)
    if found["card"] is not None:
        rate, memory = found["m_decisions_per_second"], found["peak_gib"]
        print(f", {rate:.2f} M/s on {found['card']}; at most {memory:.1f} GiB", end="", file=file)
    print(file=file)
