"""All settings of a training run: flat, documented, validated. An unknown key is an error.

A setting that only some algorithms read says so, and giving it to another one is an error, too.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from card_envs.compare.contests import MOST_PAIRS
from card_envs.games import get_game
from card_envs.system.files import printable, read_utf8, reason, short_repr, user_path

MAX_BYTES = 1 << 20  # of a file of settings
HERE = Path(__file__).parent
FOLDERS = (HERE / "configs", HERE.parent / "configs")  # of recipes: in an installed package, in a checkout


def _check_folder_name(folder: Any) -> Any:
    if folder == "":  # which Path takes for the current folder
        raise ValueError("expected a folder, got an empty text")
    return folder


Width = Annotated[int, Field(ge=1, le=4096)]
Margin = Annotated[float, Field(ge=-1000, le=1000)]
NETWORKS = ("ppo", "advantages")  # the algorithms that train networks in self-play


def setting(default: Any, description: str, only: tuple[str, ...] = (), **limits: Any) -> Any:
    """Return a field with its description and, in `only`, the algorithms that read it; empty: all do."""
    return Field(default=default, description=description, json_schema_extra={"only": list(only)}, **limits)


class Stage(BaseModel):
    """The beginning of a run under other options of the game."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    until: float = Field(gt=0, lt=1, description="share of the run at which the stage ends")
    options: dict[str, Any] = Field(description="of the game, over those of the run")


class Config(BaseModel):
    """The settings of a run. A TOML file holds what differs from these defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    # The run

    algorithm: Literal["ppo", "advantages", "td"] = setting(
        "ppo",
        "how to learn: ppo, proximal policy optimization; advantages, what every legal move gains over greedy's; td, "
        "n-tuple networks by temporal differences (games with a planner.py)",
    )
    game: str = Field(description="what is played: a name from `python -m card_envs games`")
    options: dict[str, Any] = setting({}, 'of the game while training, such as {deals = "single"}')
    name: str = setting("run", "of the run's folder (default: the config file's)", pattern=r"^\w[\w.-]*$")
    runs: Annotated[Path, BeforeValidator(_check_folder_name), AfterValidator(user_path)] = setting(
        Path("runs"), "the folder that holds the runs' folders"
    )
    seed: int = setting(0, "of deals, weights and draws", ge=0, lt=1 << 63)
    minutes: float | None = setting(
        None, "time to train, besides compiling and measuring; with `decisions`: whichever comes first", gt=0
    )
    decisions: int | None = setting(None, "decisions to learn from in all", ge=1)
    save_minutes: float = setting(1, "time between checkpoints, which a killed run resumes from", gt=0)
    quick_pairs: int = setting(50, "mirrored pairs of a quick measurement against each anchor", ge=1, le=MOST_PAIRS)
    final_pairs: int = setting(500, "mirrored pairs of the last measurement", ge=1, le=MOST_PAIRS)
    sampled: bool = setting(
        True, "the opponent draws its moves; false: it plays the likeliest (training always draws)", NETWORKS
    )
    device: str = setting(
        "cpu",
        "where tables are and networks learn: cpu, cuda (of torchrun's processes: one GPU each) or cuda:1",
        NETWORKS,
        pattern=r"^(cpu|cuda(:\d+)?)$",
    )
    bf16: bool | None = setting(
        None, "16-bit arithmetic in the inner layers (default: where the processor or GPU has it)", NETWORKS
    )

    graphs: bool = setting(
        True, "on a GPU, repeat steps of play and learning as CUDA graphs, where networks read no moves", NETWORKS
    )

    # The networks

    network: str = setting(
        "flat",
        "the actor: a perceptron from observation to all moves (flat), one that scores each legal move by what it "
        "would change (afterstates), the same by what `greedy` would make of it in a few drawn worlds (lookahead: "
        "games of many moves a turn), or module:Class, a torch module of your own",
        NETWORKS,
        pattern=r"^(flat|afterstates|lookahead|[\w.]+:\w+)$",
    )
    baseline_bonus: float = setting(
        0.0,
        "initial bonus of the baseline action, greedy's (afterstates and lookahead); 0: the network is not shown it",
        NETWORKS,
        ge=0,
        le=100,
    )
    hidden: list[Width] = setting([256, 256], "widths of each network's layers", NETWORKS, min_length=1, max_length=16)
    warm_start: str = setting(
        "",
        "initial networks: a run's folder (networks and Adam's state, from its checkpoint) or a trained opponent, by "
        "name or folder (the actor alone)",
        NETWORKS,
    )

    # Self-play

    num_envs: int = setting(2048, "B: tables that each process plays at once", NETWORKS, ge=1, le=1 << 20)
    num_steps: int = setting(64, "T: decisions at each table between updates", NETWORKS, ge=2, le=1 << 16)
    stages: list[Stage] = setting(
        [], "what comes first: other options, such as small hands or a denser reward, for a while", NETWORKS
    )
    greedy_share: float = setting(0.1, "share of tables (td: of deals) with `greedy` on the other side", ge=0, le=1)
    pool_share: float = setting(
        0.2, "share of tables with a policy of the opponent pool on one side", NETWORKS, ge=0, le=1
    )
    pool_size: int = setting(30, "snapshots that the pool keeps, evenly over the run", NETWORKS, ge=0, le=1000)
    pool_opponents: list[str] = setting([], "opponents in the pool: names, folders or module:Class", NETWORKS)

    # Gradient steps

    learning_rate: float = setting(1e-3, "Adam's, at the beginning; it falls to a tenth", NETWORKS, gt=0, le=1)
    update_epochs: int = setting(1, "passes over a batch", NETWORKS, ge=1, le=100)
    minibatch_size: int = setting(4096, "decisions in a gradient step of each process", NETWORKS, ge=1)
    max_grad_norm: float = setting(0.5, "limit of a gradient's norm, for each network", NETWORKS, gt=0)

    # PPO

    clip_coef: float = setting(0.2, "limit for the change of a probability ratio", ("ppo",), gt=0, lt=1)
    gae_lambda: float = setting(0.95, "decay of later errors in the advantages", ("ppo",), ge=0, le=1)
    ent_coef: float = setting(0.05, "weight of the entropy at the beginning", ("ppo",), ge=0, le=1000)
    ent_coef_end: float = setting(0.01, "its weight at the end", ("ppo",), ge=0, le=1000)
    bc_coef: float = setting(
        0.0, "weight of behaviour cloning of `greedy` at the start; falls to 0", ("ppo",), ge=0, le=1000
    )
    bc_until: float = setting(0.2, "share of the run at which it has fallen to 0", ("ppo",), gt=0, le=1)
    critic_first: float = setting(
        0.0, "share of the run at its beginning in which the critic learns alone (after a warm start)", ("ppo",),
        ge=0, lt=1,
    )  # fmt: skip
    reward_scale: float = setting(0.02, "factor of rewards; usual returns: about 1", ("ppo",), gt=0, le=1e6)

    # Advantages

    advantage_worlds: int = setting(
        1,
        "worlds in which each move is tried: the deal as it was played and drawn ones, which mislead where play tells "
        "of hidden cards",
        ("advantages",),
        ge=1,
        le=1000,
    )
    advantage_player: Literal["greedy", "learner"] = setting(
        "greedy",
        "who plays each tried move's deal to its end in all seats: greedy, or the network as it has learned so far, "
        "whose moves are drawn",
        ("advantages",),
    )
    advantage_stride: int = setting(
        1,
        "label only one of this number of decisions, at random: more different positions where labels are expensive",
        ("advantages",),
        ge=1,
        le=1000,
    )
    margins: list[Margin] = setting(
        [],
        "extra bonuses of the baseline action to try at the end, in standard deviations of the best alternative's "
        "advantage; the best bonus is kept (afterstates and lookahead)",
        ("advantages",),
        max_length=16,
    )

    @property
    def reads_moves(self) -> bool:
        """Return whether the actor reads what moves change."""
        return self.network in ("afterstates", "lookahead")

    @property
    def start(self) -> str:
        """What the actor is before it has learned anything, in words; empty if it plays at random."""
        if self.warm_start:
            return f"untrained: it begins as {self.warm_start}"
        if not self.baseline_bonus:
            return ""
        return "untrained: " + ("greedy's moves have a bonus" if self.sampled else "it begins with greedy's own moves")

    @field_validator("game")
    @classmethod
    def _known_game(cls, name: str) -> str:
        return get_game(name).name

    @model_validator(mode="after")
    def _fits_together(self) -> Config:
        for name in sorted(self.model_fields_set):
            if not self.reads(name):
                readers = " and ".join(_only(name))
                raise ValueError(f"{name}: algorithm = {self.algorithm!r} does not read it, only {readers}")
        if self.minutes is None and self.decisions is None:
            raise ValueError("say when to stop: minutes or decisions, or both")
        game = get_game(self.game)
        if self.algorithm == "td":
            if game.planner is None:
                raise ValueError(f"algorithm = 'td': there is no planner for this game ({self.game})")
        else:
            self._check_networks()
            self._check_pool()
        untils = [stage.until for stage in self.stages]
        if untils != sorted(set(untils)):
            raise ValueError(f"stages: expected rising ends, got {untils}")
        for number in range(len(self.stages) + 1):
            game.validated(self.options_of_stage(number))
        return self

    def _check_networks(self) -> None:
        for name, value in (("baseline_bonus", self.baseline_bonus), ("margins", self.margins)):
            if value and not self.reads_moves:
                raise ValueError(f"{name} = {value}: only network = 'afterstates' and 'lookahead' read it")

    def _check_pool(self) -> None:
        if self.pool_share + self.greedy_share > 1:
            raise ValueError("pool_share and greedy_share: expected at most 1 together")
        if self.pool_opponents and (not self.pool_share or get_game(self.game).is_solitaire):
            raise ValueError("pool_opponents would play at no table: expected a game for several, pool_share above 0")

    def reads(self, name: str) -> bool:
        """Return whether the run's algorithm reads that setting."""
        return self.algorithm in (_only(name) or [self.algorithm])

    def as_dict(self, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """Return all settings that the algorithm reads."""
        return {name: value for name, value in self.model_dump(mode=mode).items() if self.reads(name)}

    def changed(self, **settings: Any) -> Config:
        """Return validated settings that differ in these."""
        return Config(**{**self.as_dict(), **settings})

    def shared_by(self, number: int) -> Config:
        """Return the settings of each of `number` processes that share a run: its part of tables and minibatches."""
        sizes = {"num_envs": self.num_envs // number, "minibatch_size": self.minibatch_size // number}
        return self.changed(**sizes) if number > 1 else self

    def stage(self, progress: float) -> int:
        """Return the number of the stage at that share of the run; `len(stages)` after them all."""
        return sum(progress >= stage.until for stage in self.stages)

    def options_of_stage(self, number: int) -> dict[str, Any]:
        """Return the game's options in a stage."""
        return {**self.options, **self.stages[number].options} if number < len(self.stages) else dict(self.options)


def recipes() -> dict[str, Path]:
    """Return the files of settings by name; those that train a shipped network are called as it is, after its game."""
    files = {
        file.relative_to(folder).with_suffix("").as_posix(): file
        for folder in FOLDERS
        for file in sorted(folder.rglob("*.toml"))
    }
    return dict(sorted(files.items(), key=lambda item: ("/" in item[0], item[0])))


def recipe(name: Path) -> Path:
    """Return the file of settings by name. Raises ValueError, listing the names, if it is unknown."""
    files = recipes()
    if name.as_posix() in files:
        return files[name.as_posix()]
    near = difflib.get_close_matches(name.stem, files, 1, 0.5)
    hint = f"did you mean --config {near[0]}? " if near else ""
    raise ValueError(f"{name}: no such file, and no settings of that name; {hint}there are: {', '.join(files)}")


def _only(name: str) -> list[str]:
    """Return the algorithms that a setting is for; empty: all."""
    extra = Config.model_fields[name].json_schema_extra
    return list(extra.get("only", [])) if isinstance(extra, dict) else []  # type: ignore[arg-type]


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
        data = read_utf8(path, MAX_BYTES)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        settings = tomllib.loads(data.decode())
    except ValueError as error:  # wrong encodings are ValueErrors, too
        raise ValueError(f"{path}: no TOML: {reason(error)}") from None
    source = dict.fromkeys(settings, str(path))
    for override in overrides or []:
        key, equals, text = override.partition("=")
        if not equals:
            raise ValueError(f"{override!r}: expected key=value")
        if override != printable(override):
            raise ValueError(f"{override!r}: expected UTF-8, in which settings are kept; a relative path may do")
        settings[key.strip()] = _value(key.strip(), text.strip())
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
    """Return all settings that the algorithm reads, with their descriptions, for `load_config`."""
    lines = []
    for key, value in config.as_dict("json").items():
        if value is not None:
            lines += [f"# {Config.model_fields[key].description}", f"{key} = {_toml(value)}", ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # TOML writes texts, numbers and booleans as JSON does


def _value(key: str, text: str) -> Any:
    """Return the value of an override; for settings that are texts, values such as 7 are taken as text."""
    is_text = key in Config.model_fields and Config.model_fields[key].annotation in (str, str | None, Path)
    try:
        value = tomllib.loads(f"value = {text}")["value"]
        return text if is_text and not isinstance(value, str) else value
    except tomllib.TOMLDecodeError:
        return text


def _problem(problem: Any, source: dict[str, str], path: Path) -> str:
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if not problem["loc"]:
        return f"{path}: {message}"
    key = str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"{path}: {key} is missing: {Config.model_fields[key].description}"
    value = short_repr(problem["input"])
    return f"{source.get(key, path)}: {key} = {value}: {message} ({key}: {Config.model_fields[key].description})"
