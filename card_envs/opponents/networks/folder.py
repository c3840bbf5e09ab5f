"""Networks on disk: a folder with `weights.safetensors` and a JSON card, validated before use."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from safetensors import SafetensorError
from safetensors.numpy import load, save

from card_envs.compiling import specialize_bot
from card_envs.engine.batch import BatchEnv
from card_envs.engine.kernels import bot_playout
from card_envs.game import GREEDY, Game, layout_digest
from card_envs.games import get_game
from card_envs.opponents.networks.ntuple_policy import MAX_POSITIONS, MOST_POSITIONS, NTuplePolicy
from card_envs.opponents.networks.onnx import OnnxPolicy, check_self_contained
from card_envs.opponents.networks.policies import (
    ARCHITECTURES,
    STEADY,
    Architecture,
    TrainedPolicy,
    Weights,
    check_weights,
    hidden_sizes,
)
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.system.files import check_output_folder, check_replaceable, read_file, replace_folder

CARD_FILE = "opponent.json"
WEIGHTS_FILE = "weights.safetensors"
MODEL_FILE = "model.onnx"
MAX_BYTES = {CARD_FILE: 1 << 20, WEIGHTS_FILE: 64 << 20, MODEL_FILE: 64 << 20}
NETWORK_CLASSES: dict[Architecture, type[TrainedPolicy]] = {**ARCHITECTURES, NTuplePolicy.architecture: NTuplePolicy}
GOLDEN = "golden."  # prefix of the golden rows: inputs and logits, replayed on loading
LOGITS = "logits"
NUM_GOLDEN_ROWS, MAX_GOLDEN_ROWS = 32, 4096
GOLDEN_TOLERANCE = 1e-3


class Card(BaseModel):
    """The metadata of a trained network."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    game: str
    version: int  # of the game's rules
    layout: str  # digest of the layout of its inputs and of the actions
    kind: Literal["policy"] = "policy"
    architecture: Architecture = "mlp-relu"
    hidden: list[int] = Field(max_length=16)  # empty for an n-tuple network and for an ONNX model
    sampled: bool = True  # whether it samples its actions; otherwise it plays the likeliest one
    max_positions: int = Field(default=MAX_POSITIONS, ge=1, le=MOST_POSITIONS)  # per decision
    weights_sha256: str = ""
    model_sha256: str = ""
    training: dict[str, Any] = {}
    strength: list[dict[str, Any]] = []

    @property
    def trained_options(self) -> dict[str, Any] | None:
        """The game's options in training; None: unknown."""
        config = self.training.get("config")
        options = config.get("options") if isinstance(config, dict) else None
        return options if isinstance(options, dict) else None

    @model_validator(mode="after")
    def _has_layers(self) -> Card:
        if bool(self.hidden) == (self.architecture in ("n-tuple", "onnx")):
            raise ValueError(f"hidden: {self.hidden} is no list of layers of the architecture {self.architecture}")
        return self


@STEADY
def save_network(
    folder: Path, policy: TrainedPolicy, golden: Decisions, *, training: dict[str, Any], strength: list[dict[str, Any]]
) -> None:
    """Write an opponent's folder atomically.

    Args:
        folder: its path; an older opponent there is replaced.
        policy: the opponent; its weights are stored as float16.
        golden: decisions whose logits are stored and replayed on loading.
        training: how it was trained, for people.
        strength: measured results, for people.
    """
    if policy.model:
        check_self_contained(policy.model)
    half = {name: np.asarray(weight).astype(np.float16) for name, weight in policy.weights.items()}
    if not all(np.isfinite(weight).all() for weight in half.values()):
        raise ValueError(f"{folder}: not saved: the weights must be finite and below float16's 65,504")
    inputs = policy.inputs(golden)
    stored = policy if policy.model else type(policy)(policy.game, half)
    golden_rows = {**inputs, "logits": stored.logits(inputs)}
    about: dict[str, Any] = {"architecture": policy.architecture, "sampled": policy.sampled}
    about |= {"training": training, "strength": strength}
    if policy.max_positions is not None:
        about["max_positions"] = policy.max_positions
    _save(folder, policy.game, half, golden_rows, about, policy.model)


def save_model(folder: Path, game: Game, model: bytes) -> None:
    """Write the folder of an opponent that plays by an ONNX model, atomically.

    Args:
        folder: its path; an older opponent there is replaced.
        game: the game.
        model: content of the ONNX file: see `card_envs.opponents.networks.onnx`.

    Raises:
        ValueError: not a model, or it does not fit the game.
    """
    save_network(folder, OnnxPolicy(game, model), golden_decisions(game), training={}, strength=[])


def golden_decisions(game: Game, options: dict[str, Any] | None = None) -> Decisions:
    """Return decisions at different stages of deals, to store as golden rows."""
    env = BatchEnv(game, NUM_GOLDEN_ROWS, options=options)
    for table in range(NUM_GOLDEN_ROWS):
        specialize_bot(bot_playout, game, GREEDY)(table, table + 1, env.states, 3 * table)
    return decisions_at(game, env.states)


def check_place(folder: Path) -> None:
    """Check before training that a network can be saved there later. Raises ValueError."""
    check_replaceable(folder, own_files)
    check_output_folder(folder.parent)


def _save(
    folder: Path, game: Game, half: Weights, golden: dict[str, NDArray[Any]], about: dict[str, Any], model: bytes = b""
) -> None:
    """Write a folder; `about` has further fields of the card."""
    number = len(golden[LOGITS])
    if not 0 < number <= MAX_GOLDEN_ROWS:
        raise ValueError(f"{folder}: not saved: {number} golden rows; expected 1 to {MAX_GOLDEN_ROWS}")
    tensors = {**half, **{f"{GOLDEN}{name}": rows for name, rows in golden.items()}}
    data = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    card = Card(
        game=game.name,
        version=game.version,
        layout=layout_digest(game.rules),
        hidden=hidden_sizes(half),
        weights_sha256=hashlib.sha256(data).hexdigest(),
        model_sha256=hashlib.sha256(model).hexdigest() if model else "",
        **about,
    )
    files = {WEIGHTS_FILE: data, CARD_FILE: (card.model_dump_json(indent=1) + "\n").encode()}
    replace_folder(folder, files | ({MODEL_FILE: model} if model else {}), own_files)


def own_files(folder: Path) -> tuple[str, ...]:
    """Return the names of the files of a saved network; none if the folder is not one."""
    try:
        card = load_card(folder)
    except (OSError, ValueError):
        return ()
    return (WEIGHTS_FILE, CARD_FILE, *([MODEL_FILE] if card.model_sha256 else []))


def load_card(folder: Path) -> Card:
    """Return the card of an opponent's folder. Raises ValueError if it is missing or invalid."""
    try:
        return Card.model_validate_json(_read(folder / CARD_FILE))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{folder / CARD_FILE}: broken card: {where}: {first['msg']}") from None


def _read(path: Path) -> bytes:
    try:
        return read_file(path, MAX_BYTES[path.name])
    except OSError as error:
        inside = path.parent / "opponent"  # of a run
        hint = f"; did you mean {inside}?" if (inside / path.name).is_file() else ""
        raise ValueError(f"{path.parent}: no opponent: {path.name}: {error.strerror}{hint}") from None


@STEADY
def load_network(folder: Path, game: Game | None = None, sampled: bool = True) -> TrainedPolicy:
    """Load and validate the network of an opponent's folder.

    Raises:
        ValueError: a missing, truncated, modified or oversized file; another game, rules version or layout; or golden
            rows whose logits differ.
    """
    card, game, tensors, golden = _load(folder, game)
    logits = golden.pop(LOGITS)
    try:
        if card.architecture == "onnx":
            model = _read(folder / MODEL_FILE)
            _check_digest(folder / MODEL_FILE, model, card.model_sha256)
            check_self_contained(model)
            policy: TrainedPolicy = OnnxPolicy(game, model, sampled and card.sampled)
        else:
            policy = NETWORK_CLASSES[card.architecture](game, tensors, sampled and card.sampled)
            if policy.max_positions is not None:
                policy.max_positions = card.max_positions
        policy.check_inputs(golden)
        shape = len(golden["obs"]), game.rules.NUM_ACTIONS
        if logits.shape != shape or logits.dtype.kind != "f":
            raise ValueError(f"golden.{LOGITS}: expected floats of shape {shape}, got {logits.dtype} of {logits.shape}")
        replayed = policy.logits(golden)
    except ValueError as error:
        file = MODEL_FILE if card.architecture == "onnx" else WEIGHTS_FILE
        raise ValueError(f"{folder}: {file}: {error}") from None
    if not np.allclose(replayed, logits, rtol=GOLDEN_TOLERANCE, atol=GOLDEN_TOLERANCE):
        raise ValueError(f"{folder}: golden rows differ by {np.abs(replayed - logits).max():.2g}: not the same network")
    policy.trained_options = card.trained_options
    return policy


def _load(folder: Path, game: Game | None) -> tuple[Card, Game, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the card, game, weights and golden rows of a folder; shapes are checked."""
    card, weights = load_card(folder), _read(folder / WEIGHTS_FILE)
    if game is not None and card.game != game.name:
        raise ValueError(f"{folder}: this opponent plays {card.game}, not {game.name}")
    game = get_game(card.game)
    rules = game.rules
    if card.version != game.version:
        raise ValueError(f"{folder}: trained for version {card.version} of {game.name}; this is {game.version}")
    if card.layout != layout_digest(rules):
        raise ValueError(
            f"{folder}: trained for layout {card.layout} of observations and actions; {game.name} has "
            f"{layout_digest(rules)}: train it again"
        )
    tensors = _tensors(folder / WEIGHTS_FILE, weights, card)
    golden = {name.removeprefix(GOLDEN): tensors.pop(name) for name in list(tensors) if name.startswith(GOLDEN)}
    shapes = {}
    if card.architecture != "onnx":
        shapes = NETWORK_CLASSES[card.architecture].shapes(game, card.hidden)
    try:
        check_weights(tensors, shapes)
        if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
            raise ValueError("weights: expected finite numbers")
    except ValueError as error:
        raise ValueError(f"{folder}: {WEIGHTS_FILE} does not hold the network of the card: {error}") from None
    results = golden.get(LOGITS, np.zeros(()))
    if not 0 < (results.shape[0] if results.ndim else 0) <= MAX_GOLDEN_ROWS:
        raise ValueError(f"{folder}: {WEIGHTS_FILE}: the golden rows are missing or too many")
    return card, game, tensors, golden


def _check_digest(path: Path, data: bytes, digest: str) -> None:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{path}: checksum mismatch: truncated or modified")


def _tensors(path: Path, data: bytes, card: Card) -> dict[str, NDArray[Any]]:
    _check_digest(path, data, card.weights_sha256)
    try:
        tensors: dict[str, NDArray[Any]] = load(data)
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path}: not a safetensors file: {error}") from None
    except (KeyError, TypeError) as error:  # raised by safetensors for dtypes that NumPy lacks
        raise ValueError(f"{path}: a tensor of type {error}; expected float16 or float32") from None
    return tensors
