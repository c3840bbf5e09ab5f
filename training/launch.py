"""One run in several processes on this machine, one per core, which learns as one process would.

Tables and minibatches are divided among them, so that an update sees as many decisions as before. Torch's own launcher
starts them.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

from card_envs.system.processes import ENDING, PARENT, cores, unignored

from .config import Config

MIN_ENVS = 128  # of a process: smaller batches cost more a decision than a process gains
LOST = 3  # exit code: the run failed, its checkpoint is good


def processes_for(config: Config, wanted: int, available: int | None = None) -> int:
    """Return the number of processes that share a run.

    With 0 wanted, there is one for each core that is available (default: on this machine), as far as tables and
    minibatches can be divided. Raises ValueError if the run can't be divided among that many.
    """
    if wanted == 0:
        most = max(1, min(available or cores(), config.num_envs // MIN_ENVS))
        return next(number for number in range(most, 0, -1) if _fits(config, number))
    if wanted < 0 or not _fits(config, wanted):
        sizes = f"num_envs = {config.num_envs} and minibatch_size = {config.minibatch_size}"
        expected = "1" if config.algorithm == "td" else f"a number that divides {sizes}, or 0 for all cores"
        raise ValueError(f"--processes: expected {expected}; got {wanted}")
    return wanted


def _fits(config: Config, number: int) -> bool:
    divided = config.num_envs % number == 0 and config.minibatch_size % number == 0
    return number == 1 or (divided and config.algorithm != "td")


def launch(arguments: list[str], number: int) -> int:
    """Run the command `train` with these arguments in `number` processes; return the exit code.

    After a signal, end with it.
    """
    from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable(logging.ERROR)  # the run itself says what happened
    os.environ |= {"OMP_NUM_THREADS": "1", PARENT: str(os.getpid())}
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=number,
        run_id=f"card_envs-{os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.1,
        logs_specs=DefaultLogsSpecs(log_dir=os.devnull),  # otherwise it leaves a folder in /tmp
    )
    if hasattr(config, "signals_to_handle"):  # since torch 2.9; it handles ignored ones, too, else
        config.signals_to_handle = ",".join(unignored("SIGINT", *ENDING, "SIGQUIT"))
    try:
        elastic_launch(config, sys.executable)("-m", f"{__package__}.train", *arguments)
    except SignalException as signal:
        leave(128 + int(signal.sigval))  # here, where the signal still holds torch's agent: once released, the agent's
        # timer may end itself in its own thread, which prints a traceback
    except ChildFailedError as error:
        return next((failure.exitcode for failure in error.failures.values() if failure.exitcode > 0), LOST)
    return 0


def leave(code: int) -> NoReturn:
    """End one of several processes, or the one that started them, without shutting its interpreter down.

    Threads of torch.distributed can outlive their group and abort a process that is being shut down
    (github.com/pytorch/pytorch/issues/190489).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
