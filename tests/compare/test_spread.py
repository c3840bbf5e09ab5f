"""Portions over processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Ctrl-C at the worst moment of handing portions out: a queue's lock is taken, and not yet known to be.
INTERRUPTED = """
import signal, sys
from card_envs.compare.spread import over_processes

portions = iter(range(3))

def press(frame, event, _):
    if event == "return" and frame.f_code.co_name == "__enter__" and "/queue.py" in frame.f_back.f_code.co_filename:
        if next(portions, None) is None:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

if __name__ == "__main__":
    sys.setprofile(press)
    print(list(over_processes(abs, range(100), 2)))
"""


@pytest.mark.processes
def test_an_interrupt_while_portions_are_handed_out_ends_the_work(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0 and done.stderr.splitlines()[-1] == "KeyboardInterrupt" and not done.stdout
