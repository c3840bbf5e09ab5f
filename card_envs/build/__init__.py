"""Machine code ahead of time: `python -m card_envs build` makes a library of all loops of a game.

The same Python goes through Numba's front end to LLVM's language, from there through LLVM to machine code, and through
a linker to a library (`_ir.py`, `_targets.py`, `_libraries.py`). What goes in is found by asking everything that the
package offers something, and noting which loops that takes (`_tour.py`). `engine/_library.py` loads the result.
"""

from card_envs.build._libraries import BuildError, build_libraries

__all__ = ["BuildError", "build_libraries"]
