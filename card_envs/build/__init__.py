"""Machine code ahead of time: `python -m card_envs build` makes a library of all loops of a game.

`_trace.py` calls each public feature once and records the loops; `compiling/_ir.py` and `compiling/_targets.py` turn
each into machine code, `_libraries.py` links them to a library with a manifest, and `compiling/_library.py` loads it.

With `--api` rules and players become plain C functions, or a WebAssembly module, for programs in other languages:
`_api.py` has the functions, `compiling/_exported.py` gives them their C arguments, `_native.py` writes the rest.
"""

from card_envs.build._libraries import BuildError, build_libraries
from card_envs.build._native import build_api

__all__ = ["BuildError", "build_api", "build_libraries"]
