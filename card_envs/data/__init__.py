"""Games as data for other people's training: `generate` plays them and writes every decision.

Episodes are played in compiled code and batches, as comparisons are, and only their moves are kept; the rows are
read from these.
"""

from card_envs.compare.rows import Rows
from card_envs.data._minari import to_minari
from card_envs.data._plan import Plan
from card_envs.data._writing import FORMATS, as_int8, generate

__all__ = ["FORMATS", "Plan", "Rows", "as_int8", "generate", "to_minari"]
