"""A person at the terminal against any opponents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import turn_of_states


def play_game(
    game: Game,
    opponents: str | list[str],
    seat: int,
    seed: int | None,
    options: dict[str, Any],
    record: Path | None,
    console: Console,
) -> None:
    """Play one episode; the record is saved however it ends.

    Args:
        game: what is played.
        opponents: one name for all other seats, or one each, clockwise from the left.
        seat: the person's seat.
        seed: of deals and opponents; None: another game each time.
        options: of the game.
        record: where to save the game, or None.
        console: where to print.
    """
    num_seats = game.rules.NUM_SEATS
    if seat >= num_seats:
        raise ValueError(f"seat: {game.title} has seats 0 to {num_seats - 1}, got {seat}")
    names = [opponents] * (num_seats - 1) if isinstance(opponents, str) else opponents
    if len(names) != num_seats - 1:
        raise ValueError(f"opponents: expected one name, or {num_seats - 1}, got {len(names)}")
    others = [load_opponent(name, game) for name in names]
    rng = np.random.default_rng(seed)
    env = CardEnv(game, illegal_move="raise", **options)
    env.reset(seed)
    person = env.possible_agents[seat]
    try:
        while not env.outcome()["over"]:
            if env.agent_selection == person:
                console.print(game.view.picture(env.view(person)), markup=False, highlight=False)
                move = _ask(env, console)
                if move is None:
                    break
            else:
                turn = turn_of_states(game, env.states)
                k = (int(turn.seat[0]) - seat) % num_seats - 1
                action = int(others[k].act(turn, rng)[0])
                console.print(f"  seat {turn.seat[0]} ({names[k]}): {env.move_text(action)}", highlight=False)
                move = action
            env.step(move)
    except (KeyboardInterrupt, EOFError):
        console.print()
    finally:
        if record is not None:
            env.record().save(record)
    outcome = env.outcome()
    ending = f"over ({outcome['reason']})" if outcome["over"] else "left before the end"
    console.print(f"{ending}; scores by seat: {outcome['scores']}", highlight=False)
    if record is not None:
        console.print(f"saved to {record}")


def _ask(env: CardEnv, console: Console) -> int | None:
    """The person's next action, or None to stop."""
    moves = env.legal_moves()
    by_text = {move.lower(): move for move in moves}
    while True:
        console.print(f"legal: {' '.join(moves)}", highlight=False)
        text = console.input("your move> ").strip().lower()
        if text in ("quit", "q", "exit"):
            return None
        if text in by_text:
            return env.parse_move(by_text[text])
        console.print(f"{text!r} is not legal now; type one of the moves shown, or quit")
