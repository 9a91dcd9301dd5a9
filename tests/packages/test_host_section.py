"""The object `exthost` of a manifest: strict inside."""

from __future__ import annotations

import json

import pytest
from package_files import manifest_of

from trio_exthost.errors import ManifestError
from trio_exthost.packages import PERMISSIONS, HostSection, parse_manifest


def refused(section: object) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        manifest_of(exthost=section)
    assert caught.value.extension == "x"
    return caught.value


def test_full_section_is_read():
    section = manifest_of(
        exthost={
            "dialect": "effects", "scope": "run", "priority": -5, "permissions": ["tools.register", "secrets.read:a.b-c_1"],
            "optional_permissions": ["tools.override"], "overrides": ["bash"], "state_schema": 2, "startup_timeout_s": 20,
            "tool_timeout_s": 1.5, "tool_result_bytes": 9, "env": {"A": "1"}, "env_from": ["KEY"], "on_failure": "block", "restart": "on_crash",
            "adapter": "mcp", "watch_ignore": ["state.json", "out/*.js"],
        }
    ).exthost  # fmt: skip
    assert section == HostSection(
        dialect="effects", scope="run", priority=-5, permissions=("tools.register", "secrets.read:a.b-c_1"),
        optional_permissions=("tools.override",), overrides=("bash",), state_schema=2, startup_timeout_s=20.0,
        tool_timeout_s=1.5, tool_result_bytes=9, env={"A": "1"}, env_from=("KEY",), on_failure="block", restart="on_crash", adapter="mcp",
        watch_ignore=("state.json", "out/*.js"),
    )  # fmt: skip


def test_empty_section_gives_the_defaults():
    section = manifest_of(exthost={}).exthost
    assert section == HostSection()
    assert (section.dialect, section.scope, section.priority, section.restart) == ("zot", "session", 0, "never")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("dialect", ["zot", "effects"]),
        ("scope", ["process", "session", "run", "request"]),
        ("restart", ["never", "on_crash"]),
        ("on_failure", ["block"]),
        ("adapter", ["zot", "effects", "claude_hook", "mcp"]),
        ("priority", [-1_000_000, 0, 1_000_000]),
        ("state_schema", [1, 2**32 - 1]),
        ("tool_timeout_s", [0.001, 86400]),
        ("tool_result_bytes", [1, 2**40]),
        ("startup_timeout_s", [0.001, 86400]),
    ],
)
def test_each_value_in_range_is_kept(key, values):
    for value in values:
        assert getattr(manifest_of(exthost={key: value}).exthost, key) == value


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("dialect", "mcp", 'must be one of zot, effects, not "mcp"'),
        ("dialect", 1, "must be text, not a number"),
        ("dialect", None, "must be text, not null"),
        ("scope", "turn", "must be one of process, session, run, request"),
        ("restart", "always", "must be one of never, on_crash"),
        ("on_failure", "allow", "must be one of block"),
        ("adapter", "x", "must be one of zot, effects, claude_hook, mcp"),
        ("priority", 1_000_001, "must be from -1000000 to 1000000, not 1000001"),
        ("priority", -1_000_001, "must be from"),
        ("priority", 10**400, "not 100000000000000000000000..."),
        ("priority", 1.5, "must be a whole number, not 1.5"),
        ("priority", 1.0, "must be a whole number, not 1.0"),
        ("priority", "1", "must be a whole number, not text"),
        ("priority", True, "must be a whole number, not true or false"),
        ("priority", None, "must be a whole number, not null"),
        ("state_schema", 0, "must be from 1"),
        ("state_schema", -1, "must be from 1"),
        ("tool_result_bytes", 0, "must be from 1 to 1099511627776, not 0"),
        ("tool_result_bytes", 1.5, "must be a whole number, not 1.5"),
        ("tool_timeout_s", "5", "must be a number of seconds, not text"),
        ("tool_timeout_s", -1, "must be above 0 and at most 86400 seconds, not -1"),
        ("tool_timeout_s", 0, "must be above 0"),
        ("tool_timeout_s", 1e9, "must be above 0 and at most 86400 seconds"),
        ("tool_timeout_s", True, "must be a number of seconds"),
        ("startup_timeout_s", 86401, "not 86401"),
        ("permissions", "tools.register", "must be an array, not text"),
        ("permissions", None, "must be an array, not null"),
        ("overrides", {}, "must be an array, not an object"),
        ("env", [], "must be an object, not an array"),
        ("env", None, "must be an object, not null"),
        ("env_from", "KEY", "must be an array, not text"),
        ("watch_ignore", "state.json", "must be an array, not text"),
    ],
)
def test_value_out_of_range_or_type_is_an_error_with_path(key, value, words):
    error = refused({key: value})
    assert error.where == f"$.exthost.{key}"
    assert words in str(error)


def test_infinite_number_of_seconds_is_refused():
    with pytest.raises(ManifestError, match="not inf"):
        parse_manifest(b'{"name": "x", "exec": "y", "exthost": {"tool_timeout_s": 1e999}}')


@pytest.mark.parametrize("section", [None, [], "x", 3])
def test_section_that_is_no_object_is_refused(section):
    assert refused(section).where == "$.exthost"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("timout_s", "did you mean tool_timeout_s?"),
        ("timeout_ms", "did you mean tool_timeout_s?"),
        ("tool_timout_s", "did you mean tool_timeout_s?"),
        ("permission", "did you mean permissions?"),
        ("envfrom", "did you mean env_from?"),
        ("zzz", "known are dialect, scope, priority"),
    ],
)
def test_unknown_key_is_an_error_with_the_nearest_known(key, hint):
    error = refused({key: 5})
    assert error.where == f"$.exthost.{key}"
    assert "is not known here" in error.message
    assert hint in error.hint


@pytest.mark.parametrize("key", ["permissions", "optional_permissions"])
@pytest.mark.parametrize(
    ("words", "where", "message"),
    [
        (["tools.registers"], "[0]", "did you mean tools.register?"),
        (["tools.register", "nonsense"], "[1]", "known are session.write"),
        (["tools.register", "tools.register"], "[1]", "stands twice; first at $.exthost."),
        (["tools.register", 5], "[1]", "must be text"),
        ([""], "[0]", "must not be empty"),
        (["secrets.read:"], "[0]", "is no permission"),
        (["secrets.read:*"], "[0]", "is no permission"),
        (["secrets.read:-a"], "[0]", "is no permission"),
        (["secrets.read:a."], "[0]", "is no permission"),
        (["secrets.read:" + "a" * 129], "[0]", "is no permission"),
        (["secrets.read:a\n"], "[0]", "is no permission"),
    ],
)
def test_wrong_permission_is_an_error_with_its_index(key, words, where, message):
    error = refused({key: words})
    assert error.where == f"$.exthost.{key}{where}"
    assert message in str(error)


def test_every_permission_word_and_secret_names_are_accepted():
    words = [*PERMISSIONS, "secrets.read:a", "secrets.read:" + "a" * 128]
    assert manifest_of(exthost={"permissions": words}).exthost.permissions == tuple(words)


def test_permission_required_and_optional_is_an_error():
    error = refused({"permissions": ["network.connect"], "optional_permissions": ["tools.register", "network.connect"]})
    assert error.where == "$.exthost.optional_permissions[1]"


@pytest.mark.parametrize("name", ["", "A=B", "A B", "LC_*", "1A", "A\n"])
def test_wrong_variable_name_is_an_error(name):
    assert refused({"env_from": ["OK", name]}).where == "$.exthost.env_from[1]"
    assert refused({"env": {name: "v"}}).where.startswith("$.exthost.env")


@pytest.mark.parametrize("value", [7, None, ["hush-hush"], {"a": "hush-hush"}, "hush-hush\0", "hush-hush\ud800"])
def test_values_of_variables_appear_in_no_error(value):
    error = refused({"env": {"TOKEN": value}})
    assert error.where == "$.exthost.env.TOKEN"
    assert "hush" not in str(error)


def test_values_of_variables_appear_in_no_repr():
    manifest = manifest_of(exthost={"env": {"TOKEN": "hush-hush"}})
    assert "hush" not in repr(manifest)
    assert "TOKEN" in repr(manifest)


def test_manifest_is_hashable_and_its_environment_frozen():
    source: dict[str, str] = {"A": "1"}
    section = HostSection(env=source)
    source["A"] = "2"
    assert section.env["A"] == "1"
    assert hash(manifest_of(exthost={"env": {"A": "1"}})) == hash(manifest_of(exthost={"env": {"A": "1"}}))
    with pytest.raises(TypeError):
        section.env["A"] = "3"  # type: ignore[index]


def test_settings_are_read_the_same_in_any_order_of_keys():
    keys = {"priority": 3, "scope": "run", "env": {"A": "1"}}
    forwards = json.dumps({"name": "x", "exec": "y", "exthost": keys})
    backwards = json.dumps({"exthost": dict(reversed(keys.items())), "exec": "y", "name": "x"})
    assert parse_manifest(forwards.encode()) == parse_manifest(backwards.encode())
