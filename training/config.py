"""All settings of a training run: flat, documented, validated. An unknown key is an error."""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from card_envs.games import get_game

Width = Annotated[int, Field(ge=1, le=4096)]


class Config(BaseModel):
    """The settings of a run. A TOML file holds what differs from these defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    game: str = Field(description="what is played: a name from `python -m card_envs games`")
    options: dict[str, Any] = Field(default={}, description='of the game while training, such as {deals = "single"}')
    name: str = Field(
        default="run", pattern=r"^\w[\w.-]*$", description="of the run's folder (default: the config file's)"
    )
    runs: Path = Field(default=Path("runs"), description="the folder that holds the folders of runs")
    seed: int = Field(default=0, ge=0, lt=1 << 63, description="of deals, weights and draws")

    minutes: float | None = Field(
        default=None, gt=0, description="time to train; with `decisions`: whichever comes first"
    )
    decisions: int | None = Field(default=None, ge=1, description="decisions to learn from in all")
    save_minutes: float = Field(default=5, gt=0, description="time between saves of the opponent")
    strength_minutes: float = Field(default=2, gt=0, description="time between quick measurements of strength")
    quick_pairs: int = Field(default=50, ge=1, description="mirrored pairs of a quick measurement, against `trivial`")
    final_pairs: int = Field(
        default=500, ge=1, description="mirrored pairs of the last one, against `trivial` and `greedy`"
    )
    threads: int = Field(default=1, ge=1, le=256, description="threads of torch; more than one seldom pays")

    hidden: list[Width] = Field(
        default=[256, 256], min_length=1, max_length=16, description="widths of the actor's layers"
    )
    critic_hidden: list[Width] | None = Field(
        default=None, min_length=1, max_length=16, description="widths of the critic's layers (default: the actor's)"
    )
    tables: int = Field(default=2048, ge=1, le=1 << 20, description="B: tables played at once")
    steps: int = Field(default=64, ge=2, le=1 << 16, description="T: decisions at each table between updates")
    past_share: float = Field(default=0.2, ge=0, le=1, description="share of tables with a past self on one side")
    past_selves: int = Field(default=30, ge=0, le=1000, description="past selves that are kept, evenly over the run")

    lr: float = Field(
        default=5e-4, gt=0, le=1, description="Adam's learning rate at the beginning; it falls to a tenth"
    )
    epochs: int = Field(default=1, ge=1, le=100, description="how often a batch is gone through")
    minibatch: int = Field(default=8192, ge=1, description="decisions in a gradient step")
    clip: float = Field(default=0.2, gt=0, lt=1, description="PPO's limit for the change of a probability ratio")
    entropy: float = Field(default=0.05, ge=0, description="weight of the entropy (1: uniform) at the beginning")
    entropy_end: float = Field(default=0.01, ge=0, description="its weight at the end")
    gae_lambda: float = Field(default=0.95, ge=0, le=1, description="decay of later errors in the advantages")
    reward_scale: float = Field(
        default=0.02, gt=0, description="what rewards are multiplied with; usual returns: about 1"
    )
    huber_delta: float = Field(default=2.0, gt=0, description="error of a scaled value beyond which its loss is linear")
    max_grad_norm: float = Field(
        default=0.5, gt=0, description="limit of a gradient's norm, for actor and critic apart"
    )

    @field_validator("game")
    @classmethod
    def _known_game(cls, name: str) -> str:
        return get_game(name).name

    @model_validator(mode="after")
    def _fits_together(self) -> Config:
        if self.minutes is None and self.decisions is None:
            raise ValueError("say when to stop: minutes or decisions, or both")
        get_game(self.game).validated(self.options)
        return self


def load_config(path: Path, overrides: list[str] | None = None) -> Config:
    """Read a TOML file; `key=value` overrides come last, their values in TOML as well (or plain text).

    Raises:
        ValueError: naming the file or override, the key, what was given and what is right.
    """
    try:
        settings: dict[str, Any] = tomllib.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no TOML: {error}") from None
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


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _problem(problem: Any, source: dict[str, str], path: Path) -> str:
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if not problem["loc"]:
        return f"{path}: {message}"
    key = str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"{path}: {key} is missing: {Config.model_fields[key].description}"
    given = repr(problem["input"])
    return f"{source.get(key, path)}: {key} = {given}: {message} ({key}: {Config.model_fields[key].description})"
