"""Machine code ahead of time: `python -m card_envs build` makes a library of all loops of a game.

The same Python goes through Numba's front end to LLVM's language, from there through LLVM to machine code, and through
a linker to a library (`_ir.py`, `_targets.py`, `_libraries.py`). What goes in is found by asking everything that the
package offers something, and noting which loops that takes (`_tour.py`). `engine/_library.py` loads the result.

With `--api` rules and players become plain C functions, or a WebAssembly module, for programs in other languages:
`_api.py` has the functions, `_exported.py` gives them their C arguments, `_native.py` writes what goes along.
"""

from card_envs.build._libraries import BuildError, build_libraries
from card_envs.build._native import build_api

__all__ = ["BuildError", "build_api", "build_libraries"]
