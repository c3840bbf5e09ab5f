"""New games made by `new-game`, what `check` says of them, and of games with one fault each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numba
import pytest

from card_envs.scaffold.check import check
from card_envs.scaffold.new_game import new_game, plan

ROOT = Path(__file__).parents[1]


class Fault(NamedTuple):
    """One edit of the template, and what `check` must say of it; `{line}` is that of the new text."""

    file: str
    old: str
    new: str
    said: str


FAULTS = {
    "syntax": Fault("rules.py", "def legal(", "def legal((", "rules.py:{line}: SyntaxError: "),
    "import": Fault("bot.py", "above_card, highest", "above_crad, highest", "bot.py:{line}: ImportError: cannot import"),
    "file": Fault("RULES.md", "", "", "RULES.md:1: this file is missing"),
    "unknown field": Fault(
        "rules.py", "    state.hands[seat] &= ~bit", "    state.hnads[seat] &= ~bit",
        "rules.py:{line}: play: State has no field 'hnads'; did you mean 'hands'?",
    ),
    "unknown field in a view": Fault(
        "view.py", "if state.over else", "if state.ovr else",
        "view.py:{line}: outcome: State has no field 'ovr'; did you mean 'over'?",
    ),
    "unknown offset": Fault(
        "rules.py", "AT.hand,", "AT.hnad,", "rules.py:{line}: observe: AT has no 'hnad'; did you mean 'hand'?"
    ),
    "unknown name": Fault(
        "bot.py", "return highest(hand)", "return higest(hand)",
        "bot.py:{line}: greedy: higest is not defined; did you mean 'highest'?",
    ),
    "raise": Fault("rules.py", "        return 0\n", "        raise ValueError\n", "rules.py:{line}: legal: `raise` in a rule"),
    "list": Fault("rules.py", "for k in range(2)", "for k in [0, 1]", "rules.py:{line}: observe: a list in a rule"),
    "new array": Fault(
        "rules.py", "    drawn = EMPTY", "    drawn = np.zeros(1, np.uint64)[0]",
        "rules.py:{line}: draw: np.zeros in a rule: rules allocate no arrays",
    ),
    "not compiled": Fault(
        "rules.py", "@rule\ndef pay(", "def pay(", "rules.py:104: play: calls pay, which is not compiled"
    ),
    "no function": Fault(
        "rules.py", "def standing(", "def standings(",
        "rules.py:1: standing(state, seat) is missing: How far a seat's side is ahead",
    ),
    "parameters": Fault(
        "rules.py", "def observe(state: State, seat: int, obs: Obs)", "def observe(state: State, obs: Obs, seat: int)",
        "rules.py:{line}: observe: takes (state, obs, seat); the contract: observe(state, seat, obs)",
    ),
    "size": Fault(
        "rules.py", "OBS_SIZE = total(OBS_FIELDS)", "OBS_SIZE = 51",
        "rules.py:{line}: OBS_SIZE is 51; OBS_FIELDS add up to 50",
    ),
    "constant": Fault("rules.py", "WORST_SCORE = -3.0", "WORST = -3.0", "rules.py:1: WORST_SCORE is missing: the worst"),
    "no win": Fault("options.py", '"win"] = ', '"match"] = ', 'options.py:11: option reward: expected a Literal with "win"'),
    "schema": Fault("view.py", "    legal: list[str]", "    moves: list[str]", "view.py:81: SCHEMA: expected a JSON schema"),
    "table": Fault(
        "RULES.md", "| `led` | 12 |", "| `led` | 13 |", "RULES.md:{line}: the fields make this row '| `led` | 12 |"
    ),
    "no test": Fault(
        "tests/test_rules.py", "def test_hc_4_", "def test_the_", "tests/test_rules.py:1: HC-4 has no test: expected test_hc_4_"
    ),
    "set and number": Fault(
        "bot.py", "winners = hand & above_card(", "winners = (hand - 1) & above_card(",
        "bot.py:{line}: greedy: a uint64 meets an int64 and becomes",
    ),
    "hidden allocation": Fault(
        "rules.py", "    mask[:] = 0", "    mask[:] = mask + mask", "rules.py:{line}: legal: this allocates memory"
    ),
    "type": Fault(
        "rules.py", "    state.hands[0] = first_hand", "    state.hands[0] = (first_hand, second_hand)",
        "rules.py:{line}: begin: Numba has no",
    ),
    "no legal action": Fault(
        "rules.py", "    set_bits(mask, 0, state.hands[int(state.seat)])\n", "",
        "rules.py:{line}: legal: 0 actions are legal, it returns 3",
    ),
    "no ValueError": Fault(
        "view.py", "seen = read(View, given)", "seen = View(**given)",
        "view.py:{line}: from_view: expected a ValueError that begins with 'view' for None, got TypeError",
    ),
    "same text": Fault(
        "view.py", "return CARDS[action]", "return CARDS[0]", "view.py:{line}: move_text: legal actions",
    ),
    "view changed": Fault(
        "rules.py", "other = 1 - int(seat)\n    unseen", "other = int(seat)\n    unseen",
        "rules.py:{line}: redeal_hidden: it changed what seat",
    ),
    "same world": Fault(
        "rules.py", "    state.hands[other] = draw(unseen,", "    unseen = draw(unseen,",
        "rules.py:{line}: redeal_hidden: it never changed anything",
    ),
    "no reward": Fault("rules.py", "np.float32(-1)", "np.float32(np.nan)", "rules.py:{line}: play: rewards are [1.0, nan]"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that packages are imported from; what is compiled for them goes there, too."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_faults_are_found_with_their_places(folder: Path, fault: Fault, request: pytest.FixtureRequest) -> None:
    name = "faulty_" + request.node.callspec.id.replace(" ", "_").lower()
    game = plan(name, "High Crown", folder=folder)
    new_game(game)
    monkeypatch_path(folder / name)
    print(*check(name), sep="\n")


def monkeypatch_path(folder):
    sys.path.insert(0,str(folder))
