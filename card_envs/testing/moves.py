"""Moves as text at a table, for a game's own tests of its rules."""

from __future__ import annotations

from card_envs.engine.table import Table
from card_envs.views import legal_texts


def legal(table: Table) -> list[str]:
    """Return the legal moves of the seat to move, in the order of the actions."""
    return legal_texts(table.game, table.state, table.seat)


def play(table: Table, moves: str) -> Table:
    """Play moves with spaces between them, all of them legal; return the table."""
    for move in moves.split():
        assert move in legal(table), f"{move} is not among {legal(table)}"
        table.play(table.game.view.parse_move(table.state, move))
    return table
