"""Networks on disk: a folder with `weights.safetensors` and a JSON card, checked before anything is used.

An opponent's folder holds its policy; a folder `value` within it may hold what search asks about positions.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from card_envs.files import check_output_folder, check_replaceable, read_file, replace_folder
from card_envs.game import Game, layout_digest
from card_envs.games import get_game
from card_envs.opponents.network import NetworkPolicy, Weights, weight_shapes
from card_envs.opponents.value import ValueNetwork

CARD_FILE = "opponent.json"
WEIGHTS_FILE = "weights.safetensors"
MAX_BYTES = {CARD_FILE: 1 << 20, WEIGHTS_FILE: 64 << 20}
VALUE_FOLDER = "value"
Kind: TypeAlias = Literal["policy", "value"]
GOLDEN_ROWS = {  # rows stored to be replayed on loading, the results last
    "policy": ("golden.obs", "golden.mask", "golden.logits"),
    "value": ("golden.full", "golden.values"),
}
MAX_GOLDEN_ROWS = 4096
GOLDEN_TOLERANCE = 1e-3
READINGS = 10  # of a folder that is replaced again and again meanwhile


class Card(BaseModel):
    """What is known of a trained network."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    game: str
    version: int  # of the game's rules
    layout: str  # digest of the layout of what it reads, and of the actions
    kind: Kind = "policy"
    architecture: Literal["mlp-relu"] = "mlp-relu"
    hidden: list[int] = Field(min_length=1, max_length=16)
    weights_sha256: str = ""
    training: dict[str, Any] = {}
    strength: list[dict[str, Any]] = []


def save_network(
    folder: Path,
    game: Game,
    weights: Weights,
    golden: tuple[NDArray[np.int8], NDArray[np.int8]],
    *,
    training: dict[str, Any],
    strength: list[dict[str, Any]],
) -> None:
    """Write an opponent's folder in one step: it is there whole, or not at all.

    Args:
        folder: its place; an older opponent there is replaced.
        game: what it plays.
        weights: as `NetworkPolicy` takes them; stored as float16.
        golden: observations [n, D] and masks [n, A] whose logits are stored to be replayed on loading.
        training: how it was trained, for people.
        strength: measured results, for people.
    """
    half = _half(folder, weights)
    logits = NetworkPolicy(game, half).logits(*golden)
    _save(folder, game, "policy", half, (*golden, logits), training, strength)


def save_value(
    folder: Path, game: Game, weights: Weights, golden: NDArray[np.int8], *, training: dict[str, Any]
) -> None:
    """Write a value network's folder in one step.

    Args:
        folder: its place, `VALUE_FOLDER` within an opponent's folder.
        game: what it judges.
        weights: as `ValueNetwork` takes them; stored as float16.
        golden: full states [n, FULL_SIZE] whose values are stored to be replayed on loading.
        training: how it was fitted, for people.
    """
    half = _half(folder, weights)
    values = ValueNetwork(game, half).values(golden)[:, None]
    _save(folder, game, "value", half, (golden, values), training, [])


def check_place(folder: Path) -> None:
    """Make sure that a network can be saved there: better before training than after. Raises ValueError."""
    check_replaceable(folder, (WEIGHTS_FILE, CARD_FILE))
    check_output_folder(folder.parent)


def _half(folder: Path, weights: Weights) -> dict[str, NDArray[np.float16]]:
    half = {name: np.asarray(weight).astype(np.float16) for name, weight in weights.items()}
    if not all(np.isfinite(weight).all() for weight in half.values()):
        raise ValueError(f"{folder}: not saved: the weights must be finite and below float16's 65,504")
    return half


def _save(
    folder: Path,
    game: Game,
    kind: Kind,
    half: Weights,
    golden: tuple[NDArray[Any], ...],
    training: dict[str, Any],
    strength: list[dict[str, Any]],
) -> None:
    if not 0 < len(golden[0]) <= MAX_GOLDEN_ROWS:
        raise ValueError(f"{folder}: not saved: {len(golden[0])} golden rows; expected 1 to {MAX_GOLDEN_ROWS}")
    tensors = {**half, **dict(zip(GOLDEN_ROWS[kind], golden))}
    data = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    card = Card(
        game=game.name,
        version=game.version,
        layout=layout_digest(game.rules, kind == "value"),
        kind=kind,
        hidden=[len(half[f"layer{i}.bias"]) for i in range(len(half) // 2 - 1)],
        weights_sha256=hashlib.sha256(data).hexdigest(),
        training=training,
        strength=strength,
    )
    replace_folder(folder, {WEIGHTS_FILE: data, CARD_FILE: (card.model_dump_json(indent=1) + "\n").encode()})


def load_card(folder: Path) -> Card:
    """The card of an opponent's folder. Raises ValueError if it has none or it is broken."""
    return _card(folder, _read(folder / CARD_FILE))


def _card(folder: Path, data: bytes) -> Card:
    try:
        return Card.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{folder / CARD_FILE}: broken card: {where}: {first['msg']}") from None


def _read(path: Path) -> bytes:
    try:
        return read_file(path, MAX_BYTES[path.name])
    except OSError as error:
        raise ValueError(f"{path.parent}: no opponent: {path.name}: {error.strerror}") from None


def _read_both(folder: Path) -> tuple[bytes, bytes]:
    """Card and weights that belong together, also while training replaces the folder."""
    card = _read(folder / CARD_FILE)
    for _ in range(READINGS):
        weights, before, card = _read(folder / WEIGHTS_FILE), card, _read(folder / CARD_FILE)
        if card == before:
            break
    return card, weights


def load_network(folder: Path, game: Game | None = None, sampled: bool = True) -> NetworkPolicy:
    """The network of an opponent's folder, after every check.

    Raises:
        ValueError: a missing, truncated, tampered or oversized file; another game, rules version or layout; golden
            rows that come out differently.
    """
    game, tensors, (obs, mask, logits) = _load(folder, game, "policy")
    policy = NetworkPolicy(game, tensors, sampled)
    _compare(folder, policy.logits(obs, mask), logits)
    return policy


def load_value(folder: Path, game: Game) -> ValueNetwork:
    """The value network of a folder, after the same checks. Raises ValueError as `load_network` does."""
    game, tensors, (full, values) = _load(folder, game, "value")
    network = ValueNetwork(game, tensors)
    _compare(folder, network.values(full)[:, None], values)
    return network


def _load(folder: Path, game: Game | None, kind: Kind) -> tuple[Game, dict[str, NDArray[Any]], list[NDArray[Any]]]:
    """The game, weights and golden rows of a folder, each of the right shape."""
    read, weights = _read_both(folder)
    card = _card(folder, read)
    if card.kind != kind:
        raise ValueError(f"{folder}: holds a {card.kind} network; expected a {kind} network")
    if game is not None and card.game != game.name:
        raise ValueError(f"{folder}: this opponent plays {card.game}, not {game.name}")
    game = get_game(card.game)
    rules = game.rules
    if card.version != game.version:
        raise ValueError(f"{folder}: trained for version {card.version} of {game.name}; this is {game.version}")
    if card.layout != layout_digest(rules, kind == "value"):
        raise ValueError(
            f"{folder}: trained for layout {card.layout} of observations and actions; {game.name} has "
            f"{layout_digest(rules, kind == 'value')}: train it anew"
        )
    tensors = _tensors(folder / WEIGHTS_FILE, weights, card)
    golden = [tensors.pop(name, np.zeros(0)) for name in GOLDEN_ROWS[kind]]
    widths = (rules.OBS_SIZE, rules.NUM_ACTIONS, rules.NUM_ACTIONS) if kind == "policy" else (rules.FULL_SIZE, 1)
    shapes = weight_shapes([sum(widths[:-1]), *card.hidden, widths[-1]])
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if found != shapes:
        differing = sorted(set(found.items()) ^ set(shapes.items()))
        raise ValueError(f"{folder}: {WEIGHTS_FILE} does not hold the network of the card: see {differing[0][0]}")
    if not all(tensor.dtype in (np.float16, np.float32) and np.isfinite(tensor).all() for tensor in tensors.values()):
        raise ValueError(f"{folder}: {WEIGHTS_FILE}: weights must be finite float16 or float32")
    number = golden[0].shape[0] if golden[0].ndim else 0
    if not 0 < number <= MAX_GOLDEN_ROWS or [rows.shape for rows in golden] != [(number, width) for width in widths]:
        raise ValueError(f"{folder}: {WEIGHTS_FILE}: the golden rows are missing, too many or misshapen")
    if any(rows.dtype != np.int8 for rows in golden[:-1]) or golden[-1].dtype.kind != "f":
        raise ValueError(f"{folder}: {WEIGHTS_FILE}: golden rows must be int8, their results floats")
    return game, tensors, golden


def _compare(folder: Path, replayed: NDArray[np.float32], stored: NDArray[np.float32]) -> None:
    if not np.allclose(replayed, stored, rtol=GOLDEN_TOLERANCE, atol=GOLDEN_TOLERANCE):
        raise ValueError(f"{folder}: golden rows differ by {np.abs(replayed - stored).max():.2g}: not the same network")


def _tensors(path: Path, data: bytes, card: Card) -> dict[str, NDArray[Any]]:
    if hashlib.sha256(data).hexdigest() != card.weights_sha256:
        raise ValueError(f"{path}: truncated or altered: its SHA-256 is not the card's")
    try:
        tensors: dict[str, NDArray[Any]] = load(data)
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path}: no safetensors file: {error}") from None
    except (KeyError, TypeError) as error:  # safetensors' own words for a type that NumPy has not
        raise ValueError(f"{path}: a tensor of type {error}; expected float16 or float32") from None
    return tensors
