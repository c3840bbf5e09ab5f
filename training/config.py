"""All settings of a training run: flat, documented, validated. An unknown key is an error."""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from card_envs.files import read_utf8, reason, short_repr, user_path
from card_envs.games import get_game
from training.recipes import recipe

MAX_BYTES = 1 << 20  # of a file of settings
MAX_DOTS = 200  # between two =
Width = Annotated[int, Field(ge=1, le=4096)]


class Stage(BaseModel):
    """The beginning of a run under other options of the game."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    until: float = Field(gt=0, lt=1, description="share of the run at which the stage ends")
    options: dict[str, Any] = Field(description="of the game, over those of the run")


class Config(BaseModel):
    """The settings of a run. A TOML file holds what differs from these defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    game: str = Field(description="what is played: a name from `python -m card_envs games`")
    options: dict[str, Any] = Field(default={}, description='of the game while training, such as {deals = "single"}')
    stages: list[Stage] = Field(
        default=[], description="what comes first: other options, such as small hands or a denser reward, for a while"
    )
    name: str = Field(
        default="run", pattern=r"^\w[\w.-]*$", description="of the run's folder (default: the config file's)"
    )
    runs: Annotated[Path, AfterValidator(user_path)] = Field(
        default=Path("runs"), description="the folder that holds the folders of runs"
    )
    seed: int = Field(default=0, ge=0, lt=1 << 63, description="of deals, weights and draws")

    minutes: float | None = Field(
        default=None, gt=0, description="time to train; with `decisions`: whichever comes first"
    )
    decisions: int | None = Field(default=None, ge=1, description="decisions to learn from in all")
    save_minutes: float = Field(
        default=1, gt=0, description="time between checkpoints, which a killed run goes on from"
    )
    strength_minutes: float = Field(default=2, gt=0, description="time between quick measurements of strength")
    quick_pairs: int = Field(default=50, ge=1, description="mirrored pairs of a quick measurement against each anchor")
    final_pairs: int = Field(default=500, ge=1, description="mirrored pairs of the last one")
    sampled: bool = Field(
        default=True, description="the opponent draws its moves; false: it plays the likeliest (training always draws)"
    )
    device: str = Field(
        default="cpu",
        pattern=r"^(cpu|cuda(:\d+)?)$",
        description="where tables are played and networks learn: cpu, cuda (of torchrun's processes: one GPU each) or "
        "cuda:1",
    )
    threads: int = Field(default=1, ge=1, le=256, description="torch's threads in each process; more seldom pay")
    bf16: bool | None = Field(
        default=None, description="16-bit arithmetic in the inner layers (default: where the processor or GPU has it)"
    )

    network: str = Field(
        default="flat",
        pattern=r"^(flat|afterstates|lookahead|[\w.]+:\w+)$",
        description="what the actor is: a perceptron from observation to all moves (flat), one that scores each legal "
        "move by what it would change (afterstates), the same by what `greedy` would make of it in a few drawn worlds "
        "(settled: games of many moves a turn), or module:Class, a torch module of your own",
    )
    hint: float = Field(
        default=0.0,
        ge=0,
        le=100,
        description="initial bonus of `greedy`'s move (afterstates and lookahead only); 0: nothing is added",
    )
    hidden: list[Width] = Field(
        default=[256, 256], min_length=1, max_length=16, description="widths of the actor's layers"
    )
    critic_hidden: list[Width] | None = Field(
        default=None, min_length=1, max_length=16, description="widths of the critic's layers (default: the actor's)"
    )
    warm_start: str = Field(
        default="",
        description="what the networks begin with: a run's folder (actor, critic and Adam's memory, from its "
        "checkpoint) or a trained opponent, by name or folder (the actor alone)",
    )
    critic_first: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share of the run at its beginning in which the critic learns alone (after a warm start)",
    )
    tables: int = Field(default=2048, ge=1, le=1 << 20, description="B: tables that each process plays at once")
    steps: int = Field(default=64, ge=2, le=1 << 16, description="T: decisions at each table between updates")
    skip_forced: bool = Field(
        default=True, description="decisions with one legal action are played unasked, not learned"
    )
    past_share: float = Field(default=0.2, ge=0, le=1, description="share of tables with a past self on one side")
    past_selves: int = Field(default=30, ge=0, le=1000, description="past selves that are kept, evenly over the run")
    rivals: list[str] = Field(
        default=[], description="trained opponents, by name or folder, who sit at the tables of past selves, too"
    )
    rivals_share: float = Field(
        default=0.5, ge=0, le=1, description="how often one of them sits there where there are past selves as well"
    )
    greedy_share: float = Field(default=0.1, ge=0, le=1, description="share of tables with `greedy` on one side")

    lr: float = Field(
        default=1e-3, gt=0, le=1, description="Adam's learning rate at the beginning; it falls to a tenth"
    )
    epochs: int = Field(default=1, ge=1, le=100, description="how often a batch is gone through")
    minibatch: int = Field(default=4096, ge=1, description="decisions in a gradient step of each process")
    clip: float = Field(default=0.2, gt=0, lt=1, description="PPO's limit for the change of a probability ratio")
    entropy: float = Field(default=0.05, ge=0, description="weight of the entropy at the beginning")
    entropy_end: float = Field(default=0.01, ge=0, description="its weight at the end")
    entropy_by_width: bool = Field(
        default=True,
        description="entropy as a share of the largest possible, so that wide and narrow choices weigh the same",
    )
    kl: float = Field(default=0.0, ge=0, description="weight of the divergence from a slow copy of the policy")
    kl_follow: float = Field(default=0.05, gt=0, le=1, description="how far the slow copy follows at each update")
    imitation: float = Field(
        default=0.0, ge=0, description="weight of behaviour cloning (of `greedy`) at the start; it falls to 0"
    )
    imitation_until: float = Field(default=0.2, gt=0, le=1, description="share of the run at which it has fallen to 0")
    leads_until: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of the run at its beginning in which the actor learns from what every legal move would have "
        "gained, had `greedy` played the deal to its end; then from its own games alone (PPO)",
    )
    leads_worlds: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="worlds in which each move is then tried: the deal as it was played and drawn ones, which mislead "
        "where play tells of hidden cards",
    )
    imitation_fields: list[str] = Field(
        default=[], description="copy only moves of these ranges of actions, such as bids (default: all)"
    )
    gae_lambda: float = Field(default=0.95, ge=0, le=1, description="decay of later errors in the advantages")
    reward_scale: float = Field(
        default=0.02, gt=0, description="what rewards are multiplied with; usual returns: about 1"
    )
    value_bins: int = Field(
        default=0, ge=0, le=1001, description="number of bins of a distributional critic; 0: it predicts the mean"
    )
    value_range: float = Field(default=12, gt=0, description="largest scaled return that the bins tell apart")
    huber_delta: float = Field(
        default=2.0, gt=0, description="error of a value beyond which its loss is linear (no bins)"
    )
    max_grad_norm: float = Field(
        default=0.5, gt=0, description="limit of a gradient's norm, for actor and critic apart"
    )

    @property
    def reads_moves(self) -> bool:
        """Whether the actor reads what moves change."""
        return self.network in ("afterstates", "lookahead")

    @field_validator("game")
    @classmethod
    def _known_game(cls, name: str) -> str:
        return get_game(name).name

    @model_validator(mode="after")
    def _fits_together(self) -> Config:
        if self.minutes is None and self.decisions is None:
            raise ValueError("say when to stop: minutes or decisions, or both")
        if self.value_bins == 1:
            raise ValueError("value_bins = 1: expected 0 for a number, or several")
        if self.past_share + self.greedy_share > 1:
            raise ValueError("past_share and greedy_share: expected at most 1 together")
        if self.hint and not self.reads_moves:
            raise ValueError(f"hint = {self.hint}: only network = 'afterstates' and 'lookahead' read it")
        if self.reads_moves and self.device != "cpu":
            raise ValueError(f"network = {self.network!r}: learned on the CPU only (device = 'cpu')")
        if self.leads_until and self.device != "cpu":
            raise ValueError(f"leads_until = {self.leads_until}: moves are tried on the CPU alone: device = 'cpu'")
        untils = [stage.until for stage in self.stages]
        if untils != sorted(set(untils)):
            raise ValueError(f"stages: expected rising ends, got {untils}")
        game = get_game(self.game)
        if self.rivals and (game.is_solitaire or not (self.past_share and self.rivals_share)):
            raise ValueError(
                "rivals would sit at no table: expected a game for several, past_share and rivals_share above 0"
            )
        for number in range(len(self.stages) + 1):
            game.validated(self.options_of_stage(number))
        fields = [field.name for field in game.rules.ACTION_FIELDS]
        if not set(self.imitation_fields) <= set(fields):
            raise ValueError(f"imitation_fields = {self.imitation_fields}: {self.game} has {', '.join(fields)}")
        return self

    def stage(self, progress: float) -> int:
        """The number of the stage at that share of the run; `len(stages)` after them all."""
        return sum(progress >= stage.until for stage in self.stages)

    def options_of_stage(self, number: int) -> dict[str, Any]:
        """The game's options in a stage."""
        return {**self.options, **self.stages[number].options} if number < len(self.stages) else dict(self.options)


def load_config(path: Path, overrides: list[str] | None = None) -> Config:
    """Read a TOML file, or the settings of that name that come with the package.

    `key=value` overrides come last, their values in TOML as well (or plain text).

    Raises:
        ValueError: naming the file or override, the key, what was given and what is right.
    """
    path = user_path(path)
    try:
        if path.is_dir() or not path.exists():
            path = recipe(path)
        data = read_utf8(path, MAX_BYTES, pipes=True)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        settings = _parsed(data.decode())
    except (ValueError, RecursionError) as error:  # wrong encodings and endless numbers are ValueErrors, too
        raise ValueError(f"{path}: no TOML: {reason(error)}") from None
    source = dict.fromkeys(settings, str(path))
    for override in overrides or []:
        key, equals, text = override.partition("=")
        if not equals:
            raise ValueError(f"{override!r}: expected key=value")
        settings[key.strip()] = _value(text.strip())
        source[key.strip()] = f"command line, {override!r}"
    for key in settings:
        if key not in Config.model_fields:
            near = difflib.get_close_matches(key, Config.model_fields, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(Config.model_fields)}"
            raise ValueError(f"{source[key]}: unknown key {key!r}; {hint}")
    settings.setdefault("name", path.stem)
    try:
        return Config(**settings)
    except ValidationError as error:
        raise ValueError("\n".join(_problem(problem, source, path) for problem in error.errors())) from None


def as_toml(config: Config) -> str:
    """All settings with their descriptions, for `load_config`."""
    lines = []
    for key, value in config.model_dump(mode="json", exclude_none=True).items():
        lines += [f"# {Config.model_fields[key].description}", f"{key} = {_toml(value)}", ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # TOML writes texts, numbers and truth as JSON does


def _parsed(text: str) -> dict[str, Any]:
    """TOML as a dict, unless it is one that the parser would need gigabytes for: keys.of.hundreds.of.parts."""
    if any(part.count(".") > MAX_DOTS for line in text.splitlines() for part in line.split("=")):
        raise RecursionError
    return tomllib.loads(text)


def _value(text: str) -> Any:
    try:
        return _parsed(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{text:.40}…: no TOML: {reason(error)}") from None


def _problem(problem: Any, source: dict[str, str], path: Path) -> str:
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if not problem["loc"]:
        return f"{path}: {message}"
    key = str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"{path}: {key} is missing: {Config.model_fields[key].description}"
    given = short_repr(problem["input"])
    return f"{source.get(key, path)}: {key} = {given}: {message} ({key}: {Config.model_fields[key].description})"
