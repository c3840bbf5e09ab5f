"""Settings: what is accepted, and what errors say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from card_envs.opponents.names import MODELS
from training.config import Config, as_toml, load_config, recipes

CONFIGS = Path(__file__).parents[2] / "configs"
MINIMAL = 'game = "back_alley"\nminutes = 1\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "my_run.toml"
    path.write_text(text)
    return path


def test_defaults_and_the_name_of_the_file(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, MINIMAL))
    assert config == Config(game="back_alley", minutes=1, name="my_run")


def test_overrides_come_last_and_are_toml_or_text(tmp_path: Path) -> None:
    path = written(tmp_path, MINIMAL + "learning_rate = 0.1\n")
    overrides = [
        "learning_rate=1e-3",
        "hidden=[8, 9]",
        "name=other",
        'options={deals = "single"}',
        "minutes=2",
        "runs=a/b",
    ]
    config = load_config(path, overrides)
    assert (config.learning_rate, config.hidden, config.name, config.minutes) == (1e-3, [8, 9], "other", 2)
    assert (config.options, config.runs) == ({"deals": "single"}, Path("a/b"))


ERRORS = [
    (
        MINIMAL + "minibach_size = 3",
        [],
        ["my_run.toml", "unknown key 'minibach_size'", "did you mean minibatch_size"],
    ),
    (MINIMAL, ["ent_coeff=0.1"], ["command line, 'ent_coeff=0.1'", "did you mean ent_coef"]),
    (MINIMAL, ["kl_coef=0.1"], ["unknown key 'kl_coef'", "did you mean"]),
    (MINIMAL, ["zzz=1"], ["unknown key 'zzz'", "there are: algorithm, game, options"]),
    (MINIMAL, ["seed"], ["'seed': expected key=value"]),
    (MINIMAL, ["learning_rate=-1"], ["command line", "learning_rate = -1: expected greater than 0", "Adam's"]),
    (MINIMAL, ["learning_rate=nan"], ["learning_rate = nan"]),
    (MINIMAL + "num_envs = 2.5", [], ["my_run.toml", "num_envs = 2.5", "integer"]),
    (MINIMAL + "hidden = []", [], ["hidden = []", "at least 1 item"]),
    (MINIMAL, ["hidden=[0]"], ["hidden = 0: expected greater than or equal to 1"]),
    (MINIMAL, ["gae_lambda=1.5"], ["less than or equal to 1"]),
    (MINIMAL, ["runs="], ["'runs='", "expected a folder, got an empty text"]),
    (MINIMAL, ['runs=""'], ["expected a folder, got an empty text"]),
    ('runs = ""\n' + MINIMAL, [], ["my_run.toml", "expected a folder, got an empty text"]),
    (MINIMAL, ["runs=a\udcff/b"], ["'runs=a\\udcff/b': expected UTF-8, in which settings are kept"]),
    (MINIMAL, ["name=../elsewhere"], ["name = '../elsewhere'"]),
    (MINIMAL, ["game=back_aley"], ["did you mean back_alley?"]),
    (MINIMAL, ["options={deals = 3}"], ["back_alley: option deals=3"]),
    (MINIMAL, ["options={deal = 3}"], ["deal=3"]),
    ("minutes = 1", [], ["my_run.toml: game is missing: what is played"]),
    ('game = "back_alley"', [], ["say when to stop: minutes or decisions"]),
    (MINIMAL, ["algorithm=sarsa"], ["algorithm = 'sarsa': expected 'ppo', 'advantages' or 'td'"]),
    (
        MINIMAL,
        ["algorithm=advantages", "clip_coef=0.2"],
        ["clip_coef: algorithm = 'advantages' does not read it, only ppo"],
    ),
    (MINIMAL, ["margins=[0.1]"], ["margins: algorithm = 'ppo' does not read it, only advantages"]),
    (MINIMAL, ["algorithm=td", "hidden=[8]"], ["algorithm = 'td' does not read it, only ppo and advantages"]),
    (MINIMAL, ["algorithm=td"], ["algorithm = 'td': there is no planner for this game"]),
    (MINIMAL, ["algorithm=advantages", "margins=[0.1]"], ["margins = [0.1]: only network = 'afterstates'"]),
    ("game = back_alley", [], ["my_run.toml: no TOML"]),
]


def test_errors_say_where_what_and_what_is_right(tmp_path: Path) -> None:
    for text, overrides, parts in ERRORS:
        with pytest.raises(ValueError, match=re.escape(parts[0])) as error:
            load_config(written(tmp_path, text), overrides)
        assert all(part in str(error.value) for part in parts)


@pytest.mark.parametrize("text", ["7", "2026-11-27", "true", "nan", "007", "run"])
def test_names_that_look_like_other_values_are_texts(text: str, tmp_path: Path) -> None:
    """An override of a text is one, quoted or not."""
    path = written(tmp_path, MINIMAL)
    for given in (text, f'"{text}"', f"'{text}'"):
        config = load_config(path, [f"name={given}", f"runs={given}"])
        assert (config.name, config.runs) == (text, Path(text))
    assert load_config(written(tmp_path, as_toml(config))) == config
    with pytest.raises(ValueError, match="name"):
        load_config(written(tmp_path, f"name = 7\n{MINIMAL}"))


@pytest.mark.parametrize("path", ["nowhere.toml", "."])
def test_what_is_no_file(path: str) -> None:
    with pytest.raises(ValueError, match="no such file, and no settings of that name"):
        load_config(Path(path))


def test_settings_that_come_with_the_package_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # outside the checkout, and a folder of the name is no file
    for path in CONFIGS.glob("*.toml"):
        (tmp_path / path.stem).mkdir()
        assert load_config(Path(path.stem)) == load_config(path)
    assert load_config(Path("back_alley/ppo")) == load_config(CONFIGS / "back_alley" / "ppo.toml")
    names = ", ".join(recipes())
    assert list(recipes()) == sorted(recipes(), key=lambda name: ("/" in name, name))
    assert {"back_alley", "best_response", "quickstart", "back_alley/ppo"} <= set(recipes())
    for wrong in ("configs/quickstart.toml", "quikstart"):
        with pytest.raises(ValueError, match=rf"did you mean --config quickstart\? there are: {names}$"):
            load_config(Path(wrong))
    (tmp_path / "mine").write_text(MINIMAL)
    assert load_config(Path("mine")).name == "mine"


def test_files_with_a_byte_order_mark_and_home_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "marked.toml").write_bytes(b'\xef\xbb\xbfgame = "high_card"\r\n')
    config = load_config(Path("~/marked.toml"), ["runs=~/runs", "minutes=1"])
    assert config.game == "high_card" and config.runs == tmp_path / "runs"


def test_only_files_of_settings_are_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"/dev/zero: .* bytes or more"):
        load_config(Path("/dev/zero"))
    (tmp_path / "my_run.toml").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"my_run\.toml: no TOML"):
        load_config(tmp_path / "my_run.toml")


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Config.model_fields.values())


def test_settings_of_other_algorithms_are_left_out(tmp_path: Path) -> None:
    config = Config(game="big_ben", minutes=1, algorithm="td", greedy_share=0.25)
    assert "hidden" not in config.as_dict() and config.changed(seed=3).greedy_share == 0.25
    assert load_config(written(tmp_path, as_toml(config)), ["name=run"]) == config


def test_every_shipped_network_has_a_config() -> None:
    networks = {f"{card.parts[-3]}/{card.parts[-2]}" for card in MODELS.glob("*/*/opponent.json")}
    assert {name for name in networks if not name.endswith("/value")} <= set(recipes())


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("**/*.toml")), ids=str)
def test_shipped_configs_hold_only_what_differs_and_survive_writing(path: Path, tmp_path: Path) -> None:
    config = load_config(path)
    lines = {line.split("=")[0].strip() for line in path.read_text().splitlines() if "=" in line and line[0] != "#"}
    assert not {key for key in lines if getattr(config, key) == Config.model_fields[key].default}
    assert config.name == (path.stem if path.parent.name in ("configs", "gpu") else f"{path.parent.name}_{path.stem}")
    assert load_config(written(tmp_path, as_toml(config))) == config
