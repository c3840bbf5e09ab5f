"""The networks that training improves: those of `card_envs.opponents.networks.policies` in torch."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from card_envs.compiling import specialize
from card_envs.engine.sums import add_rows
from card_envs.game import Field, Game, Int64s
from card_envs.opponents.networks._sparse import SparseRows, compress, sum_weights
from card_envs.opponents.networks.afterstates import move_fields, move_scale
from card_envs.opponents.networks.onnx import OnnxPolicy, check_installed, module_to_onnx
from card_envs.opponents.networks.policies import (
    ILLEGAL,
    AfterstatePolicy,
    LogitsPolicy,
    LookaheadPolicy,
    NetworkPolicy,
    TrainedPolicy,
    Weights,
    hidden_sizes,
    input_scale,
)
from card_envs.opponents.networks.torch_policy import TorchPolicy

from .ahead import ahead_columns
from .config import Config
from .moves import Moves, MoveSource, Selection, take

HEAD_GAIN = {"policy": 0.01, "value": 1.0}  # a small policy head begins near uniform play
CPU = torch.device("cpu")
ROWS_PER_EVALUATION = {"cpu": 2048, "cuda": 1 << 16}
DENSE = 64  # width from which a dense product in 16 bits is faster than a sparse one in 32
FAINT = 0.1  # spread of the first weights of entries that are not the observation's
DECISIONS_PER_PASS = 1 << 14  # whose moves a network scores at once on a GPU
ROWS_PER_PASS = 512  # rows whose gradients stay in the processor's cache


class GradientWorkspace(NamedTuple):
    """Memory of `_gather_gradient`.

    Attributes:
        ends: [D + 1] where the entries of each column end.
        row_of, times: the entries of ROWS_PER_PASS rows by column: the row and the value of each.
    """

    ends: Int64s
    row_of: NDArray[np.int32]
    times: NDArray[np.float32]


def _gather_gradient(
    sparse: SparseRows, rows: Int64s, gradient: Any, workspace: GradientWorkspace, out: NDArray[np.float32]
) -> None:
    """Add rows.T @ gradient to `out`: some rows at a time become columns, whose sums then stay in registers."""
    starts, entry, value = sparse
    ends, row_of, times = workspace
    for first in range(0, len(rows), ROWS_PER_PASS):
        last = min(first + ROWS_PER_PASS, len(rows))
        ends[:] = 0
        for i in range(first, last):
            for k in range(starts[rows[i]], starts[rows[i] + 1]):
                ends[entry[k] + 1] += 1
        for j in range(len(out)):
            ends[j + 1] += ends[j]  # where column j begins, until its entries are placed
        for i in range(first, last):
            for k in range(starts[rows[i]], starts[rows[i] + 1]):
                place = ends[entry[k]]
                row_of[place], times[place] = i, value[k]
                ends[entry[k]] = place + 1
        begin = 0
        for j in range(len(out)):
            add_rows(gradient, row_of, times, begin, ends[j], out[j])
            begin = ends[j]


class SparseLinear(torch.autograd.Function):
    """`sparse[rows] @ weight + bias` for sparse rows, some of them [n], and weight [D, H]."""

    @staticmethod
    def forward(
        ctx: Any, weight: torch.Tensor, bias: torch.Tensor, sparse: SparseRows, rows: torch.Tensor
    ) -> torch.Tensor:
        ctx.sparse, ctx.rows = sparse, rows.numpy()
        ctx.shape = weight.shape
        return torch.from_numpy(sum_weights(sparse, ctx.rows, weight.detach().numpy(), bias.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        gradient = gradients[0].contiguous()
        out = np.zeros(ctx.shape, np.float32)
        most = ROWS_PER_PASS * int(np.diff(ctx.sparse.starts).max(initial=0))
        workspace = GradientWorkspace(
            np.empty(len(out) + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.float32)
        )
        specialize(_gather_gradient)(ctx.sparse, ctx.rows, gradient.numpy(), workspace, out)
        return torch.from_numpy(out), gradient.sum(0), None, None


class Observations:
    """Observations [N, D] int8 as they are stored, and how first layers read them.

    Attributes:
        obs: [N, W] int8, on any device; the entries from D on are zero.
        size: D.
        dense: first layers multiply whole rows, which is faster on a GPU; else what is not zero, found once.
    """

    def __init__(
        self, obs: torch.Tensor, dense: bool = False, parts: Sequence[Observations] = (), size: int | None = None
    ) -> None:
        """Take the rows.

        Args:
            obs, dense: see the attributes.
            parts: the same rows in stretches, whose entries that are not zero may be known already; or none.
            size: D; None: all entries.
        """
        self.obs = obs
        self.size = obs.shape[1] if size is None else size
        self.dense = dense
        self.parts = parts
        self._sparse: SparseRows | None = None

    def sparse(self, scale: NDArray[np.float32]) -> SparseRows:
        """Return the entries that are not zero, times the scale [D], which is the same in every call."""
        if self._sparse is None and self.parts:
            first, *others = (part.sparse(scale) for part in self.parts)
            self._sparse = first.concatenate(others)
        elif self._sparse is None:
            self._sparse = compress(self.obs.numpy(), np.arange(len(self.obs)), scale)
        return self._sparse

    def take(self, rows: Selection) -> torch.Tensor:
        """Return [n, W] int8, the observations of some decisions."""
        return take(self.obs, rows)

    @property
    def unpadded(self) -> torch.Tensor:
        """[N, D] int8, a view without padding."""
        return self.obs[:, : self.size]


class Inputs(NamedTuple):
    """Inputs of actors for N decisions.

    Attributes:
        seen: [N, D + A] observation and mask side by side.
        after: what the moves change, for networks that read it.
    """

    seen: Observations
    after: MoveSource | None


class ActorNetwork(nn.Module):
    """A module that scores the actions of decisions.

    Attributes:
        reads_moves: it reads `Inputs.after`.
        lookahead: it reads there what `greedy` makes of moves; all networks at a table must read alike.
        shows_baseline: it is shown there which move is `greedy`'s.
        replayable: whether its launches on a GPU depend on the number of decisions alone: see `training.graphs`.
        bf16: multiply in 16 bits where that is faster.
    """

    reads_moves = False
    lookahead = False
    shows_baseline = False
    replayable = True
    bf16 = False

    def logits(self, inputs: Inputs, rows: Selection) -> torch.Tensor:
        """Return [n, A] scores of some of the N decisions, anything where illegal."""
        raise NotImplementedError

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the weights, named and shaped as its policy takes them."""
        return {name: tensor.detach().cpu().contiguous().numpy().copy() for name, tensor in self._tensors().items()}

    def set_weights(self, weights: Weights) -> None:
        """Copy such weights into the network. Raises ValueError where they are of other layers."""
        tensors = self._tensors()
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        stored = {name: tuple(weight.shape) for name, weight in weights.items()}
        if shapes != stored:
            name = sorted(set(shapes.items()) ^ set(stored.items()))[0][0]
            raise ValueError(f"{name} has the shape {stored.get(name)}, in this run {shapes.get(name)}")
        with torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(torch.from_numpy(np.asarray(weights[name], np.float32)))

    def policy(self, game: Game) -> LogitsPolicy:
        """Return the network as a player."""
        return self.stored_policy(game)

    def stored_policy(self, game: Game) -> TrainedPolicy:
        """Return the network as an opponent's folder holds it."""
        raise NotImplementedError

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return the parameters, or views of them, as policies name and shape them."""
        raise NotImplementedError


class Network(ActorNetwork):
    """A perceptron with ReLU that reads int8 observations as they are stored.

    In 16 bits, products are; sums, weights and outputs stay in 32. A narrow first layer stays sparse, in 32 bits.
    """

    def __init__(self, fields: tuple[Field, ...], hidden: list[int], outputs: int, head_gain: float) -> None:
        """Set orthogonal weights and zero biases; `head_gain` is the gain of the last layer's weights."""
        super().__init__()
        self.scale = input_scale(fields)
        self.num_outputs = outputs
        sizes = [len(self.scale), *hidden, outputs]
        layers = [nn.Linear(inputs, size) for inputs, size in pairwise(sizes)]
        for layer in layers:
            nn.init.orthogonal_(layer.weight, head_gain if layer is layers[-1] else 2**0.5)
            nn.init.zeros_(layer.bias)
        # The first layer's weight stands transposed, [D, H], so that an entry's weights are adjacent.
        self.first_weight = nn.Parameter(layers[0].weight.detach().t().contiguous())
        self.first_bias = layers[0].bias
        self._column_scale: torch.Tensor
        self.register_buffer("_column_scale", torch.from_numpy(self.scale)[:, None], persistent=False)
        self.rest = nn.ModuleList(layers[1:])

    def forward(self, seen: Observations, rows: Selection) -> torch.Tensor:
        """Return [n, outputs] for some of the observations."""
        return self.apply_rest(self.first(seen, rows))

    def first(self, seen: Observations, rows: Selection, weight: torch.Tensor | None = None) -> torch.Tensor:
        """Return [n, H] the first layer's sums, before its ReLU; of dense rows also with another weight [D, H]."""
        if seen.dense or (self.bf16 and len(self.first_bias) >= DENSE):
            kind = torch.bfloat16 if self.bf16 else torch.float32
            rows_seen = seen.take(rows)
            if not seen.dense:  # padding is for a GPU
                rows_seen = rows_seen[:, : seen.size]
            dense = rows_seen.to(kind)  # whole numbers up to 256 are exact in 16 bits
            weight = self.first_weight if weight is None else weight
            weight = pad_weight(weight * self._column_scale, dense).to(kind)
            known = pad_rows(dense) if self.bf16 else dense
            return torch.addmm(self.first_bias.to(kind), known, weight)[: len(dense)]
        x: torch.Tensor = SparseLinear.apply(self.first_weight, self.first_bias, seen.sparse(self.scale), rows)  # type: ignore[no-untyped-call]
        return x

    def apply_rest(self, x: torch.Tensor) -> torch.Tensor:
        """Return [n, outputs], given the first layer's sums, which are overwritten."""
        size = len(x)
        if self.bf16:
            x = pad_rows(x)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.bf16):
            for layer in self.rest:
                assert isinstance(layer, nn.Linear)
                x = functional.linear(torch.relu_(x), layer.weight, layer.bias)
        return x[:size].float()

    def logits(self, inputs: Inputs, rows: Selection) -> torch.Tensor:
        scores: torch.Tensor = self(inputs.seen, rows)
        return scores

    def stored_policy(self, game: Game) -> TrainedPolicy:
        return NetworkPolicy(game, self.weights())

    def _tensors(self) -> dict[str, torch.Tensor]:
        tensors = {"layer0.weight": self.first_weight.t(), "layer0.bias": self.first_bias}
        for i, layer in enumerate(self.rest, start=1):
            assert isinstance(layer, nn.Linear)
            tensors |= {f"layer{i}.weight": layer.weight, f"layer{i}.bias": layer.bias}
        return tensors


class AfterstateActor(Network):
    """Scores moves from the observation and what each changes: see `AfterstatePolicy` and `LookaheadPolicy`."""

    reads_moves = True
    replayable = False  # as many rows as there are moves

    def __init__(
        self, game: Game, hidden: list[int], baseline_bonus: float, head_gain: float, lookahead: bool = False
    ) -> None:
        """Set weights so that a move's first layer gives what the observation's would give after the move.

        `baseline_bonus` is the initial bonus of `greedy`'s move; 0: the network is not shown that move.
        """
        rules = game.rules
        super().__init__(game.input_fields, hidden, 1, head_gain)
        self.lookahead = lookahead
        self.num_actions = rules.NUM_ACTIONS
        self.shows_baseline = baseline_bonus != 0
        size = rules.OBS_SIZE
        moves = torch.empty(sum(field.size for field in move_fields(rules)), hidden[0]).normal_(0, FAINT)
        moves[:size] = self.first_weight.detach()[:size]
        if not self.shows_baseline:
            moves[-1] = 0
        self.move_weight = nn.Parameter(moves)
        if self.shows_baseline:
            self.own = nn.Parameter(torch.tensor([float(baseline_bonus)]))  # the name in opponents' files
        else:
            self.register_buffer("own", torch.zeros(1))
        self.register_buffer("no_bias", torch.zeros(hidden[0]), persistent=False)
        self._num_entries = size
        self._move_columns: torch.Tensor
        self._move_shares: torch.Tensor
        scale = move_scale(rules)
        columns, shares = ahead_columns(rules) if lookahead else (np.arange(len(scale)), scale)
        self.register_buffer("_move_columns", torch.from_numpy(columns), persistent=False)
        self.register_buffer("_move_shares", torch.from_numpy(shares)[:, None], persistent=False)

    def logits(self, inputs: Inputs, rows: Selection) -> torch.Tensor:
        """Return [n, A] scores of the moves, -1e9 where illegal."""
        assert inputs.after is not None
        if inputs.seen.dense and not torch.is_grad_enabled():
            numbers = torch.arange(len(inputs.seen.obs), device=self.own.device)[rows]
            return torch.cat([self._logits(inputs, part) for part in torch.split(numbers, DECISIONS_PER_PASS)])
        return self._logits(inputs, rows)

    def _logits(self, inputs: Inputs, rows: Selection) -> torch.Tensor:
        assert inputs.after is not None
        moves = inputs.after.of(rows)
        shows_after = isinstance(moves.changes, torch.Tensor)
        first = self.first(inputs.seen, rows, self._weight_before() if shows_after else None)
        scores = self.apply_rest(first[moves.decision] + self._changes(moves))[:, 0]
        if self.shows_baseline:
            scores = scores + self.own * moves.is_baseline
        logits = torch.full((len(first), self.num_actions), float(ILLEGAL), device=scores.device)
        return logits.index_put((moves.decision, moves.action), scores)

    def _weight_before(self) -> torch.Tensor:
        """Return the first layer's weight for rows that show what is seen after moves.

        What is seen before, b, and a move's change to a add W b + V (a - b) = (W - V) b + V a.
        """
        changed = self.move_weight[: self._num_entries]
        return self.first_weight - functional.pad(changed, (0, 0, 0, len(self.first_weight) - len(changed)))

    def _changes(self, moves: Moves) -> torch.Tensor:
        """Return [R, H] what moves add to the first layer's sums."""
        if isinstance(moves.changes, torch.Tensor):
            kind = torch.bfloat16 if self.bf16 else torch.float32
            weight = self.move_weight.index_select(0, self._move_columns) * self._move_shares
            return moves.changes.to(kind) @ pad_weight(weight, moves.changes).to(kind)
        sums: torch.Tensor = SparseLinear.apply(self.move_weight, self.no_bias, *moves.changes)  # type: ignore[no-untyped-call]
        return sums

    def check_baseline(self) -> None:
        """Raise ValueError where the weights count on `greedy`'s move, and training would not show it."""
        if not self.shows_baseline and (self.own.any() or (not self.lookahead and self.move_weight[-1].any())):
            raise ValueError("its network is shown greedy's move: expected a baseline_bonus above 0")

    def stored_policy(self, game: Game) -> TrainedPolicy:
        return (LookaheadPolicy if self.lookahead else AfterstatePolicy)(game, self.weights())

    def _tensors(self) -> dict[str, torch.Tensor]:
        return super()._tensors() | {"move.weight": self.move_weight.t(), "own": self.own}


class UserNetwork(ActorNetwork):
    """A module of the user's, from observations and masks, [n, D] and [n, A] float32, to logits [n, A]."""

    replayable = False  # it may do anything

    def __init__(self, game: Game, name: str) -> None:
        """Create it by calling its class, `module:Class`, with the game.

        Raises ValueError if there is no such class, it fails, or it is not a torch module.
        """
        super().__init__()
        check_installed()  # it is saved as an ONNX model: fail before training, not after
        module, _, kind = name.partition(":")
        try:
            instance = getattr(importlib.import_module(module), kind)(game)
        except Exception as error:  # whatever the user's code may do
            raise ValueError(f"network = {name!r}: {type(error).__name__}: {error}") from error
        if not isinstance(instance, nn.Module):
            raise ValueError(f"network = {name!r}: expected a class of torch.nn.Module, got {type(instance).__name__}")
        self.module = instance
        self.size = game.rules.OBS_SIZE

    def logits(self, inputs: Inputs, rows: Selection) -> torch.Tensor:
        seen = inputs.seen.take(rows)[:, : inputs.seen.size].float()
        logits: torch.Tensor = self.module(seen[:, : self.size], seen[:, self.size :])
        expected = (len(seen), seen.shape[1] - self.size)
        if logits.shape != expected:
            got = tuple(logits.shape)
            raise ValueError(f"{type(self.module).__name__}: expected logits of shape {expected}, got {got}")
        logits, illegal = logits.float(), seen[:, self.size :] == 0
        # Where all are low, what stands for illegal moves would be high: the best legal one is at zero.
        return logits - logits.detach().masked_fill(illegal, -torch.inf).amax(dim=1, keepdim=True)

    def policy(self, game: Game) -> TorchPolicy:
        return TorchPolicy(self.module)

    def stored_policy(self, game: Game) -> TrainedPolicy:
        return OnnxPolicy(game, module_to_onnx(self.module, game))

    def _tensors(self) -> dict[str, torch.Tensor]:
        return dict(self.module.state_dict())


def stored_actor(policy: TrainedPolicy) -> Network:
    """Return the network of an opponent's folder. Raises ValueError where it is not one of these kinds."""
    game, sizes = policy.game, hidden_sizes(policy.weights)
    actor: Network
    if policy.architecture in ("afterstates", "lookahead"):
        actor = AfterstateActor(game, sizes, 1.0, HEAD_GAIN["policy"], policy.lookahead)
    elif policy.architecture == "mlp-relu":
        actor = Network(game.input_fields, sizes, game.rules.NUM_ACTIONS, HEAD_GAIN["policy"])
    else:
        raise ValueError(f"a network of {policy.architecture} can't play at the tables of training")
    actor.set_weights(policy.weights)
    return actor


def initial_networks(game: Game, config: Config, critic: bool) -> dict[str, ActorNetwork]:
    """Return the networks that a run begins with: `actor`, and a `critic` that sees all cards.

    Raises:
        ValueError: the class is not a torch module.
    """
    torch.set_num_threads(1)  # more seldom pay
    torch.manual_seed(config.seed)  # the same first weights on all ranks
    networks = {"actor": new_actor(game, config)}
    if critic:
        networks["critic"] = Network(game.rules.FULL_FIELDS, config.hidden, 1, HEAD_GAIN["value"])
    return networks


def new_actor(game: Game, config: Config) -> ActorNetwork:
    """Return the initial actor of a run. Raises ValueError if the user's class is not a torch module."""
    if ":" in config.network:
        return UserNetwork(game, config.network)
    if config.reads_moves:
        lookahead = config.network == "lookahead"
        return AfterstateActor(game, config.hidden, config.baseline_bonus, HEAD_GAIN["policy"], lookahead)
    return Network(game.input_fields, config.hidden, game.rules.NUM_ACTIONS, HEAD_GAIN["policy"])


def pad_weight(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the weight [D, H] of a first layer with zeros appended, for rows [n, W] whose entries from D on are zero.

    Products of rows that begin at multiples of 16 bytes are several times as fast on a GPU.
    """
    more = x.shape[1] - len(weight)
    return functional.pad(weight, (0, 0, 0, more)) if more else weight


def pad_rows(x: torch.Tensor) -> torch.Tensor:
    """Return [n, H] with rows of zeros appended, up to one of few sizes, where oneDNN multiplies."""
    more = 0 if x.is_cuda else few_sizes(len(x)) - len(x)
    return functional.pad(x, (0, 0, 0, more)) if more else x


def few_sizes(rows: int) -> int:
    """Return that number of rows, rounded up by at most a sixteenth: one of sixteen sizes between two powers of two.

    oneDNN, which multiplies in 16 bits, compiles code for each new number of rows, which takes milliseconds, and keeps
    it, which takes hundreds of megabytes for thousands of sizes.
    """
    step = 1 << max(0, rows.bit_length() - 5)
    return -(-rows // step) * step


def has_bf16(device: torch.device) -> bool:
    """Return whether 16-bit products are faster there; elsewhere they are emulated, and slower."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    ask = getattr(torch.cpu, "get_capabilities", dict)  # older versions of torch do not tell
    capabilities: dict[str, bool] = ask()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


@torch.no_grad()
def evaluate_in_parts(network: ActorNetwork, seen: Observations, rows: torch.Tensor) -> torch.Tensor:
    """Return [n, outputs] without gradients, in parts that stay in the processor's cache."""
    return torch.cat([network(seen, part) for part in torch.split(rows, ROWS_PER_EVALUATION[rows.device.type])])
