"""Answers of language models in Russian Bank, and the move that each gives; None: it is explained and counted."""

from __future__ import annotations

ANSWERS: list[tuple[str, str | None]] = [
    ("R to F", "R-F"), ("h2 to h5", "H2-H5"), ("End", "end"), ("In the end, I turn.", None), ("I turn.\nturn", "turn"),
    ("Your turn!", None), ("Move: R-OW", "R-OW"), ("My move: turn", "turn"), ("turn\nend", None),
    ("It is my turn.\nH2-H5", "H2-H5"), ("R-F R-OW", None), ("Je pose R-F", None),
]  # fmt: skip
