"""Opponents on disk: a folder with `weights.safetensors` and a JSON card, checked before anything is used."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from card_envs.game import Game, layout_digest
from card_envs.games import get_game
from card_envs.opponents.network import NetworkPolicy, Weights, weight_shapes

CARD_FILE = "opponent.json"
WEIGHTS_FILE = "weights.safetensors"
MAX_BYTES = 64 << 20
GOLDEN = ("golden.obs", "golden.mask", "golden.logits")
GOLDEN_TOLERANCE = 1e-3


class Card(BaseModel):
    """What is known of a trained opponent."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    game: str
    version: int  # of the game's rules
    layout: str  # digest of the observation and action layout
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
    half = {name: np.asarray(weight).astype(np.float16) for name, weight in weights.items()}
    if not all(np.isfinite(weight).all() for weight in half.values()):
        raise ValueError(f"{folder}: not saved: the weights must be finite and below float16's 65,504")
    obs, mask = golden
    logits = NetworkPolicy(game, half).logits(obs, mask)
    tensors = {**half, **dict(zip(GOLDEN, (obs, mask, logits)))}
    data = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    card = Card(
        game=game.name,
        version=game.version,
        layout=layout_digest(game.rules),
        hidden=[len(half[f"layer{i}.bias"]) for i in range(len(half) // 2 - 1)],
        weights_sha256=hashlib.sha256(data).hexdigest(),
        training=training,
        strength=strength,
    )
    fresh, old = (folder.with_name(f"{folder.name}.{word}-{os.getpid()}") for word in ("new", "old"))
    try:
        fresh.mkdir(parents=True)
        (fresh / WEIGHTS_FILE).write_bytes(data)
        (fresh / CARD_FILE).write_text(card.model_dump_json(indent=1) + "\n")
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        for leftover in (fresh, old):
            shutil.rmtree(leftover, ignore_errors=True)


def load_card(folder: Path) -> Card:
    """The card of an opponent's folder. Raises ValueError if it has none or it is broken."""
    path = folder / CARD_FILE
    try:
        return Card.model_validate_json(_read(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{path}: broken card: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path}: {path.stat().st_size} bytes; opponents' files have at most {MAX_BYTES}")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path.parent}: no opponent: {path.name}: {error.strerror}") from None


def load_network(folder: Path, game: Game | None = None, sampled: bool = True) -> NetworkPolicy:
    """The network of an opponent's folder, after every check.

    Raises:
        ValueError: a missing, truncated, tampered or oversized file; another game, rules version or layout; golden
            rows that come out differently.
    """
    card = load_card(folder)
    if game is not None and card.game != game.name:
        raise ValueError(f"{folder}: this opponent plays {card.game}, not {game.name}")
    game = get_game(card.game)
    if card.version != game.version:
        raise ValueError(f"{folder}: trained for version {card.version} of {game.name}; this is {game.version}")
    if card.layout != layout_digest(game.rules):
        raise ValueError(
            f"{folder}: trained for layout {card.layout} of observations and actions; {game.name} has "
            f"{layout_digest(game.rules)}: train it anew"
        )
    tensors = _read_tensors(folder / WEIGHTS_FILE, card)
    golden = [tensors.pop(name, None) for name in GOLDEN]
    shapes = weight_shapes([game.rules.OBS_SIZE + game.rules.NUM_ACTIONS, *card.hidden, game.rules.NUM_ACTIONS])
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if found != shapes:
        differing = sorted(set(found.items()) ^ set(shapes.items()))
        raise ValueError(f"{folder}: {WEIGHTS_FILE} does not hold the network of the card: see {differing[0][0]}")
    if not all(tensor.dtype in (np.float16, np.float32) and np.isfinite(tensor).all() for tensor in tensors.values()):
        raise ValueError(f"{folder}: {WEIGHTS_FILE}: weights must be finite float16 or float32")
    policy = NetworkPolicy(game, tensors, sampled)
    obs, mask, logits = golden
    sizes = (game.rules.OBS_SIZE, game.rules.NUM_ACTIONS, game.rules.NUM_ACTIONS)
    rows = -1 if obs is None else len(obs)
    if (
        obs is None
        or mask is None
        or logits is None
        or [getattr(rows_of, "shape", None) for rows_of in golden] != [(rows, n) for n in sizes]
    ):
        raise ValueError(f"{folder}: {WEIGHTS_FILE}: the golden rows are missing or misshapen")
    replayed = policy.logits(obs, mask)
    if not np.allclose(replayed, logits, rtol=GOLDEN_TOLERANCE, atol=GOLDEN_TOLERANCE):
        raise ValueError(f"{folder}: golden rows differ by {np.abs(replayed - logits).max():.2g}: not the same network")
    return policy


def _read_tensors(path: Path, card: Card) -> dict[str, NDArray[Any]]:
    data = _read(path)
    if hashlib.sha256(data).hexdigest() != card.weights_sha256:
        raise ValueError(f"{path}: truncated or altered: its SHA-256 is not the card's")
    try:
        tensors: dict[str, NDArray[Any]] = load(data)
    except SafetensorError as error:
        raise ValueError(f"{path}: no safetensors file: {error}") from None
    return tensors
