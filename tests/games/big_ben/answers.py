"""Answers of language models in Big Ben, and the move that each gives; None: it is explained and counted."""

from __future__ import annotations

ANSWERS: list[tuple[str, str | None]] = [
    ("T3 to T5", "T3-T5"), ("t10 → f", "T10-F"), ("Move: W-F", "W-F"), ("Deal.", "deal"), ("This deal is hard.", None),
    ("deal\nThis deal is hard.", None), ("T3-T5 or W-F", None), ("The deal is bad.\nT3-T5", "T3-T5"),
    ("Move: T3 - T5 - the best", None), ("T3-T5: it frees the ace", None), ("Move: T3-T5 – frees the ace", "T3-T5"),
    ("T3-T5, then W-F", None), ("Plan: T3-T5.\nMove: W-F", "W-F"), ("T1 0-F", None), ("T10 F", "T10-F"),
    ("from T3 to T5", "T3-T5"), ("Move: from the T10 to F", "T10-F"), ("I'll move T3 to T5.", "T3-T5"),
    ("# Deal", None), ("I see.\ndeal", "deal"), ("Deal:\nT3-T5", "T3-T5"), ("T3-T5\nT10-F would be later.", None),
    ("Move: W-F\nThen T3-T5.", None), ("Move: deal\nThe deal is hard.", "deal"), ("Avoid <move>deal</move>.", None),
    ("- T3-T5", "T3-T5"),
]  # fmt: skip
