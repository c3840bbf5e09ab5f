"""Networks in folders: what they play, that they come back, and what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load, save

from card_envs.game import Game, layout_digest
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.folder import (
    CARD_FILE,
    WEIGHTS_FILE,
    load_card,
    load_network,
    save_network,
)
from card_envs.opponents.networks.policies import (
    ARCHITECTURES,
    NetworkPolicy,
    TrainedPolicy,
    input_scale,
)
from card_envs.opponents.policy import (
    Opponent,
    Policy,
    decisions_at,
)
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import positions, some, untrained

Weights = dict[str, NDArray[np.float32]]


HIDDEN = [24, 16]


KINDS = tuple(ARCHITECTURES.values())


def random_weights(game: Game, seed: int = 0, kind: type[TrainedPolicy] = NetworkPolicy) -> Weights:
    return dict(untrained(game, kind, HIDDEN, seed=seed).weights)


def store(folder: Path, policy: TrainedPolicy) -> None:
    golden = decisions_at(policy.game, some(positions(policy.game), 32))
    save_network(folder, policy, golden, training={"steps": 1}, strength=[])


def saved(game: Game, folder: Path, seed: int = 0, kind: type[TrainedPolicy] = NetworkPolicy) -> Path:
    store(folder, kind(game, random_weights(game, seed, kind)))
    return folder


@pytest.mark.parametrize("shift", [-1e3, -1e30, 1e30])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_only_legal_moves_count_however_low_their_scores(architecture: str, shift: float) -> None:
    kind = ARCHITECTURES[architecture]  # type: ignore[index]
    weights = random_weights(HIGH_CARD, kind=kind)
    last = f"layer{len(HIDDEN)}.bias"
    weights[last] = np.full_like(weights[last], shift)
    decisions = decisions_at(HIGH_CARD, some(positions(HIGH_CARD), 50))
    policies: list[Policy] = [kind(HIGH_CARD, weights), kind(HIGH_CARD, weights, sampled=False)]
    with contextlib.suppress(ImportError):
        from card_envs.opponents.networks.onnx import OnnxPolicy, to_onnx

        policies += [OnnxPolicy(HIGH_CARD, to_onnx(kind(HIGH_CARD, weights)), sampled) for sampled in (False, True)]
    for policy in policies:
        shares = policy.probabilities(decisions)
        assert not shares[decisions.mask == 0].any() and np.allclose(shares.sum(axis=1), 1)
        decisions.check(policy.act(decisions, np.random.default_rng(0)), "it")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_errors_that_name_the_opponent(value: float) -> None:
    weights = random_weights(HIGH_CARD)
    weights[f"layer{len(HIDDEN)}.bias"][:] = value
    decisions = decisions_at(HIGH_CARD, some(positions(HIGH_CARD), 5))
    for sampled in (False, True):
        opponent = Opponent("broken", HIGH_CARD, NetworkPolicy(HIGH_CARD, weights, sampled))
        with pytest.raises(ValueError, match="policy broken: ValueError: NetworkPolicy: expected finite scores"):
            opponent.policy.act(decisions, np.random.default_rng(0))
        with pytest.raises(ValueError, match="policy broken: ValueError: NetworkPolicy: expected finite scores"):
            opponent.policy.probabilities(decisions)


@pytest.mark.mechanics
def test_a_network_is_the_formula(game: Game) -> None:
    weights = random_weights(game)
    decisions = decisions_at(game, some(positions(game), 20))
    policy = NetworkPolicy(game, weights, sampled=False)
    scale = input_scale(game.input_fields)
    x = np.hstack([decisions.obs, decisions.mask]).astype(np.float64) * scale
    assert np.abs(x).max() <= 1 + 1e-6  # float32
    for i in range(3):
        x = x @ weights[f"layer{i}.weight"].T + weights[f"layer{i}.bias"]
        x = np.maximum(x, 0) if i < 2 else x
    legal = decisions.mask != 0
    logits = policy.logits_at(decisions)
    assert np.allclose(logits[legal], x[legal], rtol=1e-4, atol=1e-4)
    exponentials = np.exp(x - x.max(axis=1, keepdims=True)) * legal
    assert np.allclose(
        policy.probabilities(decisions), exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-4
    )
    assert np.array_equal(policy.act(decisions, np.random.default_rng(0)), np.where(legal, x, -np.inf).argmax(axis=1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.mechanics
def test_networks_survive_the_disk(game: Game, kind: type[TrainedPolicy], tmp_path: Path) -> None:
    folder = saved(game, tmp_path / "mine", kind=kind)
    decisions = decisions_at(game, some(positions(game), 50, seed=1))
    opponent = load_opponent(folder)
    assert (opponent.name, opponent.game) == ("mine", game)
    half = {name: weight.astype(np.float16) for name, weight in random_weights(game, kind=kind).items()}
    assert np.allclose(opponent.probabilities(decisions), kind(game, half).probabilities(decisions), atol=1e-5)
    rng = [np.random.default_rng(2) for _ in range(2)]
    assert np.array_equal(opponent.act(decisions, rng[0]), load_opponent(str(folder), game.name).act(decisions, rng[1]))
    best = load_opponent(folder, game, sampled=False)
    assert np.array_equal(best.act(decisions, rng[0]), best.probabilities(decisions).argmax(axis=1))
    likeliest = kind(game, random_weights(game, kind=kind), sampled=False)
    store(tmp_path / "other" / "likeliest", likeliest)
    fixed = load_opponent(tmp_path / "other" / "likeliest")
    assert np.array_equal(fixed.act(decisions, rng[0]), fixed.probabilities(decisions).argmax(axis=1))
    card = load_card(folder)
    assert (card.game, card.version, card.hidden, card.training) == (game.name, game.version, HIDDEN, {"steps": 1})
    saved(game, folder, 1, kind)  # replaced in one step
    assert not np.allclose(load_opponent(folder).probabilities(decisions), opponent.probabilities(decisions))
    assert [path.name for path in tmp_path.iterdir() if path.name != "other"] == ["mine"]


def edit_card(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        card = json.loads((folder / CARD_FILE).read_text())
        change(card)
        (folder / CARD_FILE).write_text(json.dumps(card))

    return edit


def edit_tensors(change: Callable[[dict[str, NDArray[Any]]], object]) -> Callable[[Path], None]:
    """Other tensors, with the card's hash set right: what only the checks behind it can find."""

    def edit(folder: Path) -> None:
        tensors = dict(load((folder / WEIGHTS_FILE).read_bytes()))
        change(tensors)
        write_weights(folder, save(tensors))

    return edit


def write_weights(folder: Path, data: bytes) -> None:
    (folder / WEIGHTS_FILE).write_bytes(data)
    edit_card(lambda card: card.update(weights_sha256=hashlib.sha256(data).hexdigest()))(folder)


def retype(folder: Path, dtype: str) -> None:
    """Declare the first golden logits' tensor as of another type of two bytes."""
    data = (folder / WEIGHTS_FILE).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    found = header["golden.logits"]
    found |= {"dtype": dtype, "shape": [(found["data_offsets"][1] - found["data_offsets"][0]) // 2]}
    text = json.dumps(header).encode()
    write_weights(folder, len(text).to_bytes(8, "little") + text + data[8 + size :])


def flip(folder: Path) -> None:
    data = bytearray((folder / WEIGHTS_FILE).read_bytes())
    data[-10] ^= 1
    (folder / WEIGHTS_FILE).write_bytes(bytes(data))


def spoil(name: str, value: float) -> Callable[[dict[str, NDArray[Any]]], object]:
    def change(tensors: dict[str, NDArray[Any]]) -> None:
        tensors[name] = tensors[name].copy()
        tensors[name].flat[0] = value

    return change


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no card": (lambda folder: (folder / CARD_FILE).unlink(), CARD_FILE),
    "half a card": (lambda folder: os.truncate(folder / CARD_FILE, 99), CARD_FILE),
    "unknown game": (edit_card(lambda card: card.update(game="no_such_game")), "no_such_game"),
    "other version": (edit_card(lambda card: card.update(version=99)), "99"),
    "not a number": (edit_tensors(spoil("layer0.weight", np.nan)), WEIGHTS_FILE),
    "unknown key": (edit_card(lambda card: card.update(surprise=1)), "surprise"),
    "unknown architecture": (edit_card(lambda card: card.update(architecture="lstm")), "architecture"),
    "other layers": (edit_card(lambda card: card.update(hidden=[24, 17])), WEIGHTS_FILE),
    "no layers": (edit_card(lambda card: card.update(hidden=[])), "hidden"),
    "other layout": (edit_card(lambda card: card.update(layout="0" * 16)), "layout"),
    "tampered": (flip, WEIGHTS_FILE),
    "truncated with its hash": (
        lambda folder: write_weights(folder, (folder / WEIGHTS_FILE).read_bytes()[:-100]), WEIGHTS_FILE,
    ),
    "extra tensor": (edit_tensors(lambda tensors: tensors.update(extra=np.zeros(3, np.float16))), "extra"),
    "missing tensor": (edit_tensors(lambda tensors: tensors.pop("layer1.bias")), "layer1.bias"),
    "other shape": (
        edit_tensors(lambda tensors: tensors.update({"layer1.bias": np.zeros(17, np.float16)})), "layer1.bias",
    ),
    "no golden rows": (edit_tensors(lambda tensors: tensors.pop("golden.logits")), "golden"),
    "golden logits of no number": (edit_tensors(spoil("golden.logits", np.nan)), "golden"),
    "another network": (
        edit_tensors(lambda tensors: tensors.update({"layer2.bias": tensors["layer2.bias"] + np.float16(1)})), "golden",
    ),
    "float64": (
        edit_tensors(lambda tensors: tensors.update({"layer0.bias": np.zeros(HIDDEN[0])})),
        "expected float16 or float32",
    ),
    "bfloat16": (lambda folder: retype(folder, "BF16"), WEIGHTS_FILE),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_opponents_are_refused(fault: str, tmp_path: Path) -> None:
    game, folder = HIGH_CARD, saved(HIGH_CARD, tmp_path / "broken")
    load_network(folder, game)
    spoil_it, named = FAULTS[fault]
    spoil_it(folder)
    for load_it in (load_network, load_opponent):
        with pytest.raises(ValueError, match=named) as error:
            load_it(folder, game)
        assert str(folder) in str(error.value) or fault == "unknown game"


@pytest.mark.parametrize("name", [CARD_FILE, WEIGHTS_FILE])
def test_oversized_files_are_not_read(name: str, tmp_path: Path) -> None:
    game = HIGH_CARD
    folder = saved(game, tmp_path / "large")
    os.truncate(folder / name, 1 << 40)
    with pytest.raises(ValueError, match=rf"{folder / name}.*bytes"):
        load_network(folder, game)


def test_opponents_of_another_game_are_refused(tmp_path: Path) -> None:
    one, other = list(GAMES.values())[:2]
    folder = saved(one, tmp_path / "mine")
    with pytest.raises(ValueError, match=f"{folder}.*{one.name}, not {other.name}"):
        load_opponent(folder, other)
    assert layout_digest(one.rules) != layout_digest(other.rules)


def test_saving_refuses_what_loading_would(tmp_path: Path) -> None:
    """Weights beyond float16 or not finite: better found when they are written."""
    for value in (np.nan, 1e6):
        weights = random_weights(HIGH_CARD)
        weights["layer0.weight"][0, 0] = value
        with pytest.raises(ValueError, match="finite"), np.errstate(over="ignore", invalid="ignore"):
            store(tmp_path / "mine", NetworkPolicy(HIGH_CARD, weights))
    assert not (tmp_path / "mine").exists()


def test_what_a_user_adds_to_an_opponent_stays(tmp_path: Path) -> None:
    """A note, a folder, and a model that was exported beside the weights; and the folder's access rights."""
    folder = saved(HIGH_CARD, tmp_path / "opponent")
    names = ("notes.txt", "model.onnx", "value/weights.safetensors")
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    folder.chmod(0o755)
    (folder / WEIGHTS_FILE).write_bytes(b"broken")  # ours, and replaced
    for _ in range(2):
        saved(HIGH_CARD, folder)
        assert all((folder / name).read_text() == name for name in names) and folder.stat().st_mode & 0o777 == 0o755
    assert load_opponent(folder).game == HIGH_CARD
    with pytest.raises(ValueError, match="contains other files"):
        saved(HIGH_CARD, tmp_path)
