"""Trained networks in NumPy, so that playing needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import INT8, check_bool, check_game, checked
from card_envs.game import Field, Game, Rules, bounds, total
from card_envs.opponents.networks._afterstate_network import (
    AfterstateNetwork,
    lookahead_moves,
    move_scores,
    network_moves,
    new_scorer,
)
from card_envs.opponents.networks._sparse import SparseRows, compress, sum_weights
from card_envs.opponents.networks.afterstates import Afterstates, afterstates, move_fields
from card_envs.opponents.policy import Decisions, Policy, sample
from card_envs.system.files import short_repr

Weights = Mapping[str, NDArray[np.floating]]
Layers: TypeAlias = list[tuple[NDArray[np.float32], NDArray[np.float32]]]  # weights [inputs, outputs], biases
Inputs: TypeAlias = dict[str, NDArray[Any]]
Outputs: TypeAlias = Literal["logits", "values"]
Architecture: TypeAlias = Literal["mlp-relu", "afterstates", "lookahead", "n-tuple", "onnx"]
ILLEGAL = np.float32(-1e9)  # part of the golden rows; play does not depend on it
NEVER = np.float32(-np.inf)
STEADY = np.errstate(all="ignore")  # tiny probabilities underflow to 0, whatever NumPy's error state


def input_scale(fields: tuple[Field, ...]) -> NDArray[np.float32]:
    """Return the factors that scale every entry of the input to [-1, 1]."""
    low, high = bounds(fields)
    return (1 / np.maximum(np.abs(low.astype(np.float32)), high)).astype(np.float32)


def weight_shapes(sizes: list[int]) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the tensors of a network with these layer sizes, input and output included."""
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        shapes[f"layer{i}.weight"] = (outputs, inputs)
        shapes[f"layer{i}.bias"] = (outputs,)
    return shapes


def not_finite(expected: str, scores: NDArray[np.float32], mask: NDArray[np.int8]) -> ValueError:
    """Return the error for scores [n, A], one of which is not finite: says which, among those of legal actions."""
    bad = np.argwhere((mask != 0) & ~np.isfinite(scores))
    if not len(bad):
        return ValueError(f"{expected}, got a decision without legal moves")
    row, action = bad[0]
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    return ValueError(f"{expected}, got {scores[row, action]} at [{row}, {action}]{more}, of shape {scores.shape}")


class LogitsPolicy(Policy):
    """A policy with a masked softmax over scores of the actions.

    Attributes:
        sampled: whether actions are drawn from the probabilities; otherwise the likeliest is played.
    """

    sampled: bool

    def __init__(self, sampled: bool = True) -> None:
        self.sampled = sampled

    def logits_at(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return [n, A] scores of the actions; those of illegal actions are ignored."""
        raise NotImplementedError

    def scores(self, decisions: Decisions) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return [n, A] scores of the actions, lowest where illegal, and [n, 1] their maxima.

        Raises ValueError if the maximum is not finite: a score is not, or no action is legal.
        """
        scores = np.where(decisions.mask != 0, self.logits_at(decisions), NEVER)
        highest = scores.max(axis=1, keepdims=True)
        if not np.isfinite(highest).all():
            raise not_finite(f"{type(self).__name__}: expected finite scores of legal moves", scores, decisions.mask)
        return scores, highest

    def likeliest(self) -> LogitsPolicy:
        """Return the network playing its likeliest moves."""
        if not self.sampled:
            return self
        twin = copy(self)
        twin.sampled = False
        return twin

    @STEADY
    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return the probability [n, A] of each action."""
        return self._shares(decisions)

    def _shares(self, decisions: Decisions) -> NDArray[np.float32]:
        scores, highest = self.scores(decisions)
        weights = np.exp(scores - highest)
        return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)

    @STEADY
    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose an action [n] for each decision."""
        if self.sampled:
            return sample(self._shares(decisions), rng)
        return self.scores(decisions)[0].argmax(axis=1)


class TrainedPolicy(LogitsPolicy):
    """A network that is stored in an opponent's folder.

    Attributes:
        architecture: its id in the cards of opponents.
        game: the game.
        weights: its tensors, by name.
        lookahead: True if `greedy` continues from each action before it is scored.
        max_positions: number that an n-tuple network values per decision; None: it is another network.
        model: content of an ONNX file; empty: it is another network.
    """

    architecture: ClassVar[Architecture]
    lookahead: ClassVar[bool] = False
    max_positions: int | None = None
    model: bytes = b""

    def __init__(self, game: Game, weights: Weights, sampled: bool = True) -> None:
        check_game(game)
        super().__init__(check_bool(sampled, "sampled"))
        check_weights(weights, self.shapes(game, hidden_sizes(weights)))
        self.game = game
        self.weights = weights

    def describe(self) -> str:
        return "asks a neural network"

    def definition(self) -> list[Any]:
        return [repr((self.architecture, self.sampled, self.max_positions)).encode(), [self.weights, self.model]]

    @staticmethod
    def shapes(game: Game, hidden: list[int]) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the tensors of a network with these hidden layers; empty if it has none."""
        return {}

    @property
    def reads_moves(self) -> bool:
        """True if afterstates are among its inputs."""
        return self.num_entries > 0

    @property
    def num_entries(self) -> int:
        """Return the number of entries that represent an action; 0 if afterstates are not among its inputs."""
        return 0

    def inputs(self, decisions: Decisions) -> Inputs:
        """Return its inputs for some decisions, by name, as golden rows store them."""
        if not self.reads_moves:
            return {"obs": decisions.obs, "mask": decisions.mask}
        decisions = decisions.copy()  # fresh arrays: the changes are relative to the true observations
        after = self.afterstates(decisions)
        moves = {"first": after.first, "action": after.action, **after.rows._asdict()}
        return {"obs": decisions.obs, "mask": decisions.mask, **moves}

    def afterstates(self, decisions: Decisions) -> Afterstates:
        """Return the afterstates of some decisions, if they are among its inputs."""
        return afterstates_of(decisions)

    def check_inputs(self, inputs: Inputs) -> None:
        """Raise ValueError if arrays from a file are not valid inputs by name, dtype, shape or range."""
        check_inputs(self.game.rules, inputs, self.num_entries)

    def logits(self, inputs: Inputs) -> NDArray[np.float32]:
        """Return [n, A] scores of the actions, -1e9 where illegal."""
        raise NotImplementedError

    def logits_at(self, decisions: Decisions) -> NDArray[np.float32]:
        return self.logits(self.inputs(decisions))


class NetworkPolicy(TrainedPolicy):
    """A multi-layer perceptron with ReLU that maps an observation to the scores of all actions."""

    architecture = "mlp-relu"
    is_quick = True

    def __init__(self, game: Game, weights: Weights, sampled: bool = True) -> None:
        """Take weights named and shaped as in `shapes`, in float16 or float32.

        Args:
            game: the game; determines the scale of the input.
            weights: `layer{i}.weight` [outputs, inputs] and `layer{i}.bias` [outputs].
            sampled: draw actions from the probabilities; False: play the likeliest.
        """
        super().__init__(game, weights, sampled)
        self._layers = layers_of(weights)
        first, bias = self._layers[0]
        self._layers[0] = (first * input_scale(game.input_fields)[:, None], bias)

    @staticmethod
    def shapes(game: Game, hidden: list[int]) -> dict[str, tuple[int, ...]]:
        return weight_shapes([total(game.input_fields), *hidden, game.rules.NUM_ACTIONS])

    def logits(self, inputs: Inputs) -> NDArray[np.float32]:
        obs, mask = inputs["obs"], inputs["mask"]
        x = np.concatenate([obs, mask], axis=1, dtype=np.float32)
        (weight, bias), *rest = self._layers
        return np.where(mask != 0, through(rest, x @ weight + bias), ILLEGAL).astype(np.float32)


class AfterstatePolicy(TrainedPolicy):
    """A multi-layer perceptron with ReLU that scores each legal action from the observation and its changes.

    Attributes:
        network: the compiled network; None unless it has two hidden layers.
    """

    architecture: ClassVar[Architecture] = "afterstates"
    is_quick = True

    def __init__(self, game: Game, weights: Weights, sampled: bool = True) -> None:
        """Take weights named and shaped as in `shapes`, in float16 or float32.

        Args:
            game: the game; determines the scale of the input.
            weights: `layer{i}.weight` and `layer{i}.bias` of a perceptron with one output, `move.weight` [H, M] for the
                changes, `own` [1] a bonus for the action of `greedy`.
            sampled: draw actions from the probabilities; False: play the likeliest.
        """
        super().__init__(game, weights, sampled)
        (first, self._bias), *self._rest = layers_of(weights)
        self._scale = input_scale(game.input_fields)
        self._first = np.ascontiguousarray(first)
        self._moves = np.ascontiguousarray(weights["move.weight"].astype(np.float32).T)
        self._no_bias = np.zeros_like(self._bias)
        self._baseline_bonus = float(weights["own"][0])
        self.network = self._to_compiled() if len(self._rest) == 2 else None

    def _to_compiled(self) -> AfterstateNetwork:
        """Return the network for compiled code."""
        (second, second_bias), (last, last_bias) = self._rest
        ends = np.array([last_bias[0], self._baseline_bonus])
        arrays = self._first * self._scale[:, None], self._moves, self._bias, second, second_bias, last[:, 0], ends
        return AfterstateNetwork(*(np.ascontiguousarray(array, np.float32) for array in arrays))

    @property
    def is_compiled(self) -> bool:  # type: ignore[override]
        return self.network is not None and not self.sampled

    def compiled_moves(self, positions: int | None = None) -> tuple[Any, Any]:
        network: Any = self.network
        return lookahead_moves if self.lookahead else network_moves, new_scorer(self.game, network)

    def logits_at(self, decisions: Decisions) -> NDArray[np.float32]:
        if self.network is None or decisions.game != self.game:
            return super().logits_at(decisions)
        logits = np.full((len(decisions), self.game.rules.NUM_ACTIONS), ILLEGAL, np.float32)
        move_scores(self.game, decisions._trusted_states(), self.network, logits, self.lookahead)
        return logits

    @staticmethod
    def shapes(game: Game, hidden: list[int]) -> dict[str, tuple[int, ...]]:
        shapes = weight_shapes([total(game.input_fields), *hidden, 1])
        return shapes | {"move.weight": (*hidden[:1], total(move_fields(game.rules))), "own": (1,)}

    @property
    def num_entries(self) -> int:
        return total(move_fields(self.game.rules))

    def afterstates(self, decisions: Decisions) -> Afterstates:
        return afterstates_of(decisions, self.lookahead)

    def logits(self, inputs: Inputs) -> NDArray[np.float32]:
        seen = np.concatenate([inputs["obs"], inputs["mask"]], axis=1)
        all_rows, after = np.arange(len(seen)), afterstates_in(inputs)
        rows, decision = after.rows, after.decision()
        x = sum_weights(compress(seen, all_rows, self._scale), all_rows, self._first, self._bias)[decision]
        x += sum_weights(rows, np.arange(len(after.action)), self._moves, self._no_bias)
        scores = through(self._rest, x)[:, 0]
        is_baseline = rows.entry[rows.starts[1:] - 1] == len(self._moves) - 1  # the baseline flag is the last entry
        logits = np.full((len(seen), self.game.rules.NUM_ACTIONS), ILLEGAL, np.float32)
        logits[decision, after.action] = scores + self._baseline_bonus * is_baseline
        return logits


class LookaheadPolicy(AfterstatePolicy):
    """Like `AfterstatePolicy`, with lookahead: `greedy` continues from each action in a few determinizations.

    Of actions with the same afterstate, it plays the one that represents them. It suits games with many actions per
    turn whose order seldom matters.
    """

    architecture = "lookahead"
    lookahead = True


ARCHITECTURES: dict[Architecture, type[TrainedPolicy]] = {
    kind.architecture: kind for kind in (NetworkPolicy, AfterstatePolicy, LookaheadPolicy)
}


MOVE_INPUTS = {"first": np.int64, "action": np.int64, "starts": np.int64, "entry": np.int32, "value": np.float32}


def check_inputs(rules: Rules, inputs: Inputs, num_entries: int) -> None:
    """Raise ValueError if golden rows are not valid inputs: compiled code would trust them."""
    names = {"obs", "mask"} | (set(MOVE_INPUTS) if num_entries else set())
    if set(inputs) != names:
        raise ValueError(f"golden rows: expected {', '.join(sorted(names))}, got {', '.join(sorted(inputs))}")
    number = len(inputs["obs"]) if np.ndim(inputs["obs"]) else 0
    checked("golden.obs", inputs["obs"], (number, rules.OBS_SIZE), INT8, written=False)
    checked("golden.mask", inputs["mask"], (number, rules.NUM_ACTIONS), INT8, written=False)
    if not num_entries:
        return
    for name, dtype in MOVE_INPUTS.items():
        checked(f"golden.{name}", inputs[name], (np.size(inputs[name]),), np.dtype(dtype), written=False)
    first, action, starts, entry, value = (inputs[name] for name in MOVE_INPUTS)
    check_ends("golden.first", first, number, len(action))
    check_ends("golden.starts", starts, len(action), len(entry))
    for name, bound in (("action", rules.NUM_ACTIONS), ("entry", num_entries)):
        if inputs[name].min(initial=0) < 0 or inputs[name].max(initial=0) >= bound:
            raise ValueError(f"golden.{name}: expected numbers below {bound}")
    if len(value) != len(entry) or not np.isfinite(value).all() or np.diff(starts).min(initial=1) < 1:
        raise ValueError("golden.value: expected a finite number for each entry, and an entry for each move")


def afterstates_in(inputs: Inputs) -> Afterstates:
    """Return the afterstates among the inputs of a network."""
    rows = SparseRows(inputs["starts"], inputs["entry"], inputs["value"])
    return Afterstates(inputs["first"], inputs["action"], rows)


def afterstates_of(decisions: Decisions, lookahead: bool = False) -> Afterstates:
    """Return the afterstates of the legal actions, in worlds derived from each seat's observation."""
    return afterstates(decisions.game, decisions._trusted_states(), np.arange(len(decisions)), lookahead=lookahead)


def check_ends(name: str, ends: NDArray[Any], number: int, last: int) -> None:
    """Raise ValueError if these do not divide `last` entries into `number` ranges."""
    if len(ends) != number + 1 or ends[0] != 0 or ends[-1] != last or np.diff(ends).min(initial=0) < 0:
        raise ValueError(f"{name}: expected {number + 1} rising numbers from 0 to {last}")


def layers_of(weights: Weights) -> Layers:
    """Return the weights [inputs, outputs] and biases of the layers of a perceptron."""
    number = len(hidden_sizes(weights)) + 1
    return [
        (weights[f"layer{i}.weight"].astype(np.float32).T, weights[f"layer{i}.bias"].astype(np.float32))
        for i in range(number)
    ]


def hidden_sizes(weights: Weights) -> list[int]:
    """Return the sizes of the hidden layers of stored weights. Raises ValueError unless they are arrays by name."""
    if not isinstance(weights, Mapping) or not all(isinstance(tensor, np.ndarray) for tensor in weights.values()):
        raise ValueError(f"weights: expected arrays by name, got {short_repr(weights)}")
    layers = sum(str(name).endswith(".bias") for name in weights)
    return [np.size(weights.get(f"layer{i}.bias", ())) for i in range(layers - 1)]


def check_weights(weights: Weights, shapes: dict[str, tuple[int, ...]], what: str = "weights") -> None:
    """Raise ValueError if stored weights have other names, shapes or dtypes; `what` is their name in messages."""
    stored = {name: tensor.shape for name, tensor in weights.items()}
    if stored != shapes:
        name = min((str(name) for name, _ in set(stored.items()) ^ set(shapes.items())))
        raise ValueError(f"{what}: {name}: expected {shapes.get(name, 'none')}, got {stored.get(name, 'none')}")
    if not all(tensor.dtype in (np.float16, np.float32) for tensor in weights.values()):
        raise ValueError(f"{what}: expected float16 or float32")


def through(layers: Layers, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the output of these layers for the first layer's output before its ReLU, which is overwritten."""
    for weight, bias in layers:
        x = np.maximum(x, 0, out=x) @ weight + bias
    return x
