"""The configuration refuses what no host can run with."""

import math
from pathlib import Path

import attrs
import platformdirs
import pytest

from trio_exthost import ConfigError, Deadlines, HostConfig, Limits
from trio_exthost.config import LEAST_FRAME_BYTES, default_data_dir

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
    least = LEAST_FRAME_BYTES if name == "frame_bytes" else 1
    assert getattr(Limits(**{name: least}), name) == least


@pytest.mark.parametrize("value", [10**400, 2**40 + 1])
def test_a_number_beyond_all_sense_is_refused_by_name(value):
    for name in COUNTS:
        with pytest.raises(
            ConfigError, match=f"^{name} must be a whole number above 0 and at most 1099511627776, not "
        ):
            Limits(**{name: value})
    with pytest.raises(ConfigError, match=r"^hello_s must be a finite number above 0 and at most 1000000000, not "):
        Deadlines(hello_s=value)


def test_a_frame_has_room_for_what_every_extension_is_told():
    with pytest.raises(ConfigError, match="frame_bytes must be at least 1024, not 1023"):
        Limits(frame_bytes=1023)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env": {"A=B": "x"}}, "'A=B', which cannot name"),
        ({"env": {"": "x"}}, "'', which cannot name"),
        ({"env": {"A\0": "x"}}, "which cannot name"),
        ({"env": {1: "x"}}, "1, which cannot name"),
        ({"env": {"\ud800": "x"}}, "which cannot name"),
        ({"env": {"A": "secret\0"}}, r"env\['A'\] must be text without NUL$"),
        ({"env": {"A": 1}}, r"env\['A'\] must be text"),
        ({"host_name": None}, "host_name must be text"),
        ({"host_version": "\ud800"}, "host_version '.ud800' holds half of a surrogate pair"),
        ({"extensions": ["a\0b"]}, "can be no path"),
        ({"project_roots": ["\ud800"]}, "can be no path"),
        ({"user_roots": ["\0"]}, "can be no path"),
        ({"data_dir": "\0"}, "can be no path"),
        ({"text_stream": []}, "text_stream must be hold or show"),
    ],
)
def test_what_no_extension_can_be_started_with_is_refused_when_it_is_set(settings, message):
    with pytest.raises(ConfigError, match=message):
        HostConfig(**settings)


def test_names_and_values_that_the_system_gave_may_be_passed_on():
    config = HostConfig(env={"A": "b\udc80"}, extensions=["c\udc80"])
    assert (config.env, config.extensions) == ({"A": "b\udc80"}, (Path("c\udc80"),))


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
