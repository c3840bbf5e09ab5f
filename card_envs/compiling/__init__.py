"""From a loop in Python to machine code.

What happens to one loop, `step_tables(first, last, states, actions, …)`, when a game's tables are made:

1. It is a plain function that calls stubs of `card_envs/game.py`: `play(state, action)`, `legal(state, mask)`.
2. `specialize(step_tables, game)` copies it with the game's functions, and copies of its helpers, in place of its
   globals (`_specialize.py`); a loop that is made of parts calls stubs of its own, which `functions` replaces. The
   copy's name ends with a digest of all these sources, so that no cache confuses two.
3. If a library that was built ahead of time has a loop of that name, it is called from there (`_library.py`), and
   nothing below is imported.
4. Otherwise the first call compiles it (`_numba.py`): a game's functions, marked `rule` (`_rules.py`), are compiled
   without Numba's runtime and inlined; functions marked `instruction` become instructions of the processor
   (`_instructions.py`). The machine code is kept on disk (`_cache.py`).
5. With `target="cuda"` the same copy becomes a kernel in which thread i runs table i.

Ahead of time, `python -m card_envs build` takes the same copies through Numba's front end alone (`_ir.py`), gives each
an entry that C can call (`_exported.py` for functions with C arguments of their own), and lets LLVM make machine code
for any processor (`targets.py`). Only `_numba.py` changes how Numba works.
"""

from card_envs.compiling._rules import noinline, rule
from card_envs.compiling._specialize import called, specialize, specialize_bot, stub

__all__ = ["called", "noinline", "rule", "specialize", "specialize_bot", "stub"]
