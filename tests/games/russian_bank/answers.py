"""Answers of language models in Russian Bank, and the move that each gives; None: it is explained and counted."""

from __future__ import annotations

ANSWERS: list[tuple[str, str | None]] = [
    ("R to F", "R-F"), ("h2 to h5", "H2-H5"), ("End", "end"), ("In the end, I turn.", None), ("I turn.\nturn", "turn"),
    ("Your turn!", None), ("Move: R-OW", "R-OW"), ("My move: turn", "turn"), ("turn\nend", None),
    ("It is my turn.\nH2-H5", "H2-H5"), ("R-F R-OW", None), ("Je pose R-F", None), ("from H1 to H2", "H1-H2"),
    ("Move: from H1 to H2", "H1-H2"), ("I move from h 1 to h 2.", "H1-H2"), ("## End", None),
    ("In the end:\nturn", None), ("It goes on.\n- turn", None), ("End\nof my thoughts.", None),
    ("Move: R-F, then turn", None), ("Move: R-F\nThen turn.", "R-F"), ("Move: R-F\nActually, turn.", None),
    ("Move: H1-H2\nH2-H5 comes next.", None),
]  # fmt: skip
