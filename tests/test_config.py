"""The configuration refuses what no host can run with."""

import math
from pathlib import Path

import attrs
import platformdirs
import pytest

from trio_exthost import ConfigError, Deadlines, HostConfig, Limits
from trio_exthost.config import default_data_dir

KINDS = [(kind, field) for kind in (Deadlines, Limits) for field in attrs.fields(kind)]
COUNTS = [field.name for field in attrs.fields(Limits) if isinstance(field.default, int)]


@pytest.mark.parametrize(
    ("kind", "field"), KINDS, ids=lambda each: getattr(each, "name", getattr(each, "__name__", ""))
)
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, True, "5", None])
def test_number_that_is_not_above_zero_and_finite_is_refused_by_name(kind, field, value):
    with pytest.raises(ConfigError, match=f"^{field.name} must be .* above 0, not ") as caught:
        kind(**{field.name: value})
    assert caught.value.code == "config_invalid"


@pytest.mark.parametrize("name", COUNTS)
def test_count_is_a_whole_number(name):
    with pytest.raises(ConfigError, match=f"{name} must be a whole number"):
        Limits(**{name: 1.5})
    assert getattr(Limits(**{name: 1}), name) == 1


def test_deadline_may_be_whole_or_a_fraction():
    assert Deadlines(hello_s=1, intercept_s=0.5) == attrs.evolve(Deadlines(), hello_s=1, intercept_s=0.5)


def test_busy_share_is_at_most_the_whole_second():
    assert Limits(inbound_busy_share=1).inbound_busy_share == 1
    with pytest.raises(ConfigError, match="inbound_busy_share must be at most 1"):
        Limits(inbound_busy_share=1.01)


def test_configuration_cannot_be_changed():
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        HostConfig().limits.panels = 3


def test_paths_are_taken_as_text_or_path_and_kept_in_order(tmp_path):
    config = HostConfig(
        data_dir=str(tmp_path), extensions=["b", Path("a")], project_roots=["p"], user_roots=iter(["u", "v"])
    )
    assert config.data_dir == tmp_path
    assert config.extensions == (Path("b"), Path("a"))
    assert (config.project_roots, config.user_roots) == ((Path("p"),), (Path("u"), Path("v")))


def test_data_directory_is_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert HostConfig(data_dir="data").data_dir == tmp_path / "data"


def test_data_directory_is_the_environments_else_the_platforms(tmp_path, monkeypatch):
    monkeypatch.setenv("EXTHOST_HOME", str(tmp_path))
    assert default_data_dir() == HostConfig().data_dir == tmp_path
    monkeypatch.setenv("EXTHOST_HOME", "")
    assert default_data_dir() == Path(platformdirs.user_data_dir("exthost", appauthor=False))


def test_user_roots_not_given_stay_none():
    assert HostConfig().user_roots is None


def test_text_stream_is_one_of_two_words():
    assert HostConfig(text_stream="show").text_stream == "show"
    with pytest.raises(ValueError, match="text_stream"):
        HostConfig(text_stream="stream")
