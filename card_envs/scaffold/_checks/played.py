"""Two episodes, at a table and in the environment: rules and views must be consistent at each position."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.compiling._rules import INTERPRETED
from card_envs.engine import _kernels as kernels
from card_envs.engine.table import Table
from card_envs.envs._replay import verify
from card_envs.envs.aec import CardEnv
from card_envs.game import Field, Game, Mask, bounds
from card_envs.scaffold._checks.declared import VIEW_KEYS
from card_envs.scaffold._checks.sources import Finding, Sources

MAX_MOVES = 100_000  # most moves of an episode
LOOK_AT = 40  # number of decisions checked from the first on; then one in as many
WIDTH = 80
SLOW = 30.0  # most seconds in plain Python
NO_VIEWS: tuple[Any, ...] = (None, 3, "x", [1], {}, {"game": 1}, {"seat": -1})
NO_DEALS: tuple[Any, ...] = (None, 3, "x", [1], {}, {"pack": 1}, {"packs": [[1]]})
NO_MOVES = ("", "no such move", "\0", "99999")


def check_played(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield faults in play with the default options, then with the option `reward="win"`."""
    for options in ({}, {"reward": "win"}):
        episode = _Episode(game, sources, options)
        for play in (episode.at_table, episode.in_environment):
            try:
                play()
            except Exception as error:  # the game's code may raise anything
                compiled = isinstance(error, IndexError) and not INTERPRETED
                episode.found += (_in_plain_python(game, sources) if compiled else []) or [sources.blame(error)]
            if episode.found:
                places = {fault[:2]: fault for fault in reversed(episode.found)}  # the first one at each place
                yield from reversed(places.values())
                return


def _in_plain_python(game: Game, sources: Sources) -> list[Finding]:
    """Return the faults found without Numba: compiled rules do not report an index out of bounds."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "card_envs", "check", game.package]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SLOW, check=False)
    except subprocess.TimeoutExpired:
        return []
    found = re.findall(r"^(.+?):(\d+): (.*)$", done.stdout, re.MULTILINE)
    return [Finding(Path.cwd() / file, int(line), text) for file, line, text in found]


class _Episode:
    """One episode of random moves at a table, with checks of every function."""

    def __init__(self, game: Game, sources: Sources, options: dict[str, Any]) -> None:
        self.game = game
        self.sources = sources
        self.options = options
        self.found: list[Finding] = []
        self.table = Table(game, game.rules.new_state(game.validated(options)))
        self.rng = np.random.default_rng(0)
        self.moves = 0
        self.drew_other_worlds = len(game.rules.FULL_FIELDS) == len(game.rules.OBS_FIELDS)  # True if nothing is hidden

    def fault(self, module: str, name: str, text: str) -> None:
        """Record a fault of a function, with the position in the episode."""
        point = f" (at random move {self.moves + 1})"
        self.found.append(self.sources.files[module].finding(name, f"{name}: {text}{point}"))

    def at_table(self) -> None:
        """Play an episode; stop at the first position with faults."""
        table = self.table
        if not (table.over and table.needs_deal):
            self.fault("rules", "new_state", "expected over and needs_deal to be set")
            return
        table.seed(0)
        table.deal()
        while not table.over:
            self._at_decision()
            if self.moves > MAX_MOVES:
                self.fault("rules", "play", "the episode does not end")
            if self.found:
                return
        self._at_end()

    def _at_decision(self) -> None:
        """Check the position, play a move, and deal if needed."""
        table = self.table
        if table.needs_deal:
            self.fault("rules", "deal", "needs_deal is still set after it")
            return
        mask = np.full(self.game.rules.NUM_ACTIONS, 99, np.int8)
        number = specialize(kernels.legal_table, self.game)(table.states, 0, mask)
        if not np.isin(mask, (0, 1)).all():
            self.fault("rules", "legal", f"expected 0 or 1 in every entry, got {mask.tolist()}")
            return
        if not mask.any() or number != mask.sum():
            self.fault("rules", "legal", f"{mask.sum()} actions are legal, it returns {number}; expected 1 or more")
            return
        if self.moves < LOOK_AT or self.moves % LOOK_AT == 0:
            self._look(mask)
            if self.found:
                return
        table.play(int(self.rng.choice(np.flatnonzero(mask))))
        self.moves += 1
        if not np.isfinite(table.rewards).all():
            self.fault("rules", "play", f"rewards are {table.rewards}")
        if table.over and not table.needs_deal:
            self.fault("rules", "play", "over is set, needs_deal is not: at the end of an episode both are")
        elif table.needs_deal and not table.over:
            table.deal()

    def _look(self, mask: Mask) -> None:
        before = self.table.states.tobytes()
        for seat in range(self.game.rules.NUM_SEATS):
            self._other_worlds(seat)
        self._moves_as_text(mask)
        self._players(mask)
        for seat in range(self.game.rules.NUM_SEATS):
            self._observations(seat)
            self._view(seat, mask)
        self._packs()
        if self.table.states.tobytes() != before:
            self.fault("rules", "observe", "the State changed while moves, observations and views were looked at")

    def _moves_as_text(self, mask: Mask) -> None:
        view, state = self.game.view, self.table.state
        actions: dict[str, int] = {}
        for action in np.flatnonzero(mask).tolist():
            text = view.move_text(state, action)
            if text in actions:
                self.fault("view", "move_text", f"legal actions {actions[text]} and {action} are both {text!r}")
            actions[text] = action
            again = view.parse_move(state, text)
            if again != action:
                self.fault("view", "parse_move", f"action {action} is {text!r}, which it takes for {again!r}")
        for text in NO_MOVES:
            try:
                action = view.parse_move(state, text)
            except ValueError:
                continue
            except Exception as error:
                what = f"parse_move: expected a ValueError for {text!r}, got {type(error).__name__}: {error}"
                self.found.append(self.sources.blame(error)._replace(text=what))
                continue
            if not 0 <= action < self.game.rules.NUM_ACTIONS:
                self.fault("view", "parse_move", f"expected a ValueError for {text!r}, got {action!r}")

    def _players(self, mask: Mask) -> None:
        for bot in ("trivial", "greedy"):
            action = self.table.bot_move(bot)
            if not 0 <= action < len(mask) or not mask[action]:
                self.fault("bot", bot, f"chose action {action}, which is illegal")
        drawn: NDArray[np.int64] = np.zeros(1, np.int64)
        specialize(kernels.random_moves, self.game)(0, 1, self.table.states, np.array([self.moves], np.uint64), drawn)
        if not 0 <= drawn[0] < len(mask) or not mask[drawn[0]]:
            self.fault("rules", "random_move", f"drew action {drawn[0]}, which is illegal")

    def _observations(self, seat: int) -> None:
        rules = self.game.rules
        obs, full = self.table.observe(seat), self.table.observe_all(seat)
        for name, entries, fields in (
            ("observe", obs, rules.OBS_FIELDS),
            ("observe_all", full, rules.FULL_FIELDS),
        ):
            low, high = bounds(fields)
            for entry in np.flatnonzero((entries < low) | (entries > high))[:1].tolist():
                text = f"entry {entry}, of {_field_at(fields, entry)}, is {entries[entry]}"
                self.fault("rules", name, f"{text}: declared are {low[entry]} to {high[entry]}")
        if not np.array_equal(full[: len(obs)], obs):
            self.fault("rules", "observe_all", f"expected the observation of seat {seat} first")

    def _view(self, seat: int, mask: Mask) -> None:
        view, table = self.game.view, self.table
        seen = view.view(table.state, seat)
        texts = [view.move_text(table.state, action) for action in np.flatnonzero(mask).tolist()]
        right = {
            "game": self.game.name,
            "seat": seat,
            "to_move": table.seat,
            "legal": texts if seat == table.seat else [],
        }
        for key in VIEW_KEYS:
            if key not in seen:
                self.fault("view", "view", f"the key {key!r} is missing")
            elif key in right and seen[key] != right[key]:
                self.fault("view", "view", f"{key!r} is {seen[key]!r}, expected {right[key]!r}")
        undeclared = seen.keys() ^ view.SCHEMA["properties"].keys()
        if undeclared:
            self.fault("view", "view", f"it and SCHEMA differ in {', '.join(sorted(undeclared))}")
        if json.loads(json.dumps(seen)) != seen:
            self.fault("view", "view", "it is not the same after JSON")
        if view.view(view.from_view(seen), seat) != seen:
            self.fault("view", "from_view", f"the State that it makes does not look the same to seat {seat}")
        widest = max(view.picture(seen).splitlines(), key=len, default="")
        if len(widest) > WIDTH:
            self.fault("view", "picture", f"expected at most {WIDTH} columns, got {len(widest)}: {widest!r}")
        for given in (*NO_VIEWS, {**seen, "surprise": 1}, {**seen, "seat": 99}):
            self._refusal("from_view", view.from_view, (given,), "view")

    def _other_worlds(self, seat: int) -> None:
        view, table, world = self.game.view, self.table, self.table.copy()
        world.determinize(seat, self.moves)
        seen, other = view.view(table.state, seat), view.view(world.state, seat)
        changed = [key for key in seen if seen[key] != other[key]]
        if changed:
            self.fault("rules", "determinize", f"it changed what seat {seat} sees: {', '.join(changed)}")
        if not np.array_equal(table.observe(seat), world.observe(seat)):
            self.fault("rules", "determinize", f"it changed what seat {seat} observes")
        if seat == table.seat and not np.array_equal(table.legal(), world.legal()):
            self.fault("rules", "determinize", f"it changed what is legal for seat {seat}, who is to move")
        self.drew_other_worlds |= not np.array_equal(table.observe_all(seat), world.observe_all(seat))

    def _packs(self) -> None:
        view, state, size = self.game.view, self.table.state, self.game.rules.PACK_SIZE
        pack = view.dealt_pack(state)
        if pack.shape != (size,) or pack.dtype != np.int8:
            self.fault("view", "dealt_pack", f"expected int8 [{size}], got {pack.dtype} {list(pack.shape)}")
            return
        deal = json.loads(json.dumps(view.deal_text([pack])))
        again = view.parse_deal(state, deal)
        if len(again) != 1 or not np.array_equal(again[0], pack):
            self.fault("view", "parse_deal", "expected the pack that deal_text made the deal of")
        for given in NO_DEALS:
            if not isinstance(given, dict) or given.keys() != deal.keys():
                self._refusal("parse_deal", view.parse_deal, (state, given), "deal")

    def _refusal(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], begins: str) -> None:
        """Check that a function raises ValueError with a message that begins like this."""
        expected = f"expected a ValueError that begins with {begins!r} for {arguments[-1]!r:.60}"
        try:
            function(*arguments)
        except ValueError as error:
            if str(error).startswith(begins):
                return
            where = self.sources.blame(error)
            self.found.append(where._replace(text=f"{name}: {expected}, got {str(error)!r:.120}"))
        except Exception as error:
            where = self.sources.blame(error)
            self.found.append(where._replace(text=f"{name}: {expected}, got {type(error).__name__}: {error}"))
        else:
            self.fault("view", name, f"{expected}, got none")

    def _at_end(self) -> None:
        view, state, num_seats = self.game.view, self.table.state, self.game.rules.NUM_SEATS
        reason, scores = view.outcome(state)
        if not reason or len(scores) != num_seats:
            right = f"a reason and {num_seats} scores at the end"
            self.fault("view", "outcome", f"expected {right}, got {(reason, scores)!r}")
        if self.table.legal().any():
            self.fault("rules", "legal", "expected no legal action where the episode is over")
        for seat in range(num_seats):
            seen = view.view(state, seat)
            if seen["to_move"] is not None or seen["legal"]:
                self.fault("view", "view", "expected nobody to move, and no legal moves, at the end of the episode")
            self._refusal("from_view", view.from_view, (seen,), "view")
        if not self.drew_other_worlds:
            self.fault("rules", "determinize", "it never changed anything that a seat can't see")

    def in_environment(self) -> None:
        """Play another episode in the environment and check that its record has the same outcome."""
        env = CardEnv(self.game, illegal_move="raise", **self.options)
        env.reset(seed=1)
        while not env.outcome()["over"]:
            mask = env.observe(env.agent_selection)["action_mask"]
            env.step(int(self.rng.choice(np.flatnonzero(mask))))
        try:
            verify(env.record())
        except ValueError as error:
            self.fault("view", "deal_text", f"a saved game can't be played again: {error}")


def _field_at(fields: tuple[Field, ...], entry: int) -> str:
    """Return the name of the field that an entry belongs to."""
    names = [field.name for field in fields for _ in range(field.size)]
    return f"`{names[entry]}`"
