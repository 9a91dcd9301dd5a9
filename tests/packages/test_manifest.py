"""The keys that other hosts read too, and how mistakes are located."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from package_files import make_extension, manifest_of

from trio_exthost.errors import ManifestError
from trio_exthost.packages import HostSection, Manifest, load_manifest, parse_manifest


def refused(data: bytes | dict[str, object]) -> ManifestError:
    raw = data if isinstance(data, bytes) else json.dumps({"name": "x", "exec": "./run", **data}).encode()
    with pytest.raises(ManifestError) as caught:
        parse_manifest(raw, path="/d/extension.json")
    assert caught.value.path == "/d/extension.json"
    assert str(caught.value)
    return caught.value


def test_full_manifest_is_read():
    data = {
        "name": "guard", "version": "1.0", "exec": "./guard", "args": ["-v"], "language": "go", "description": "d",
        "enabled": False, "skills": ["skills", "./one/SKILL.md"], "some_future_key": [1],
    }  # fmt: skip
    manifest, warnings = parse_manifest(json.dumps(data).encode())
    assert manifest == Manifest(
        name="guard", version="1.0", exec="./guard", args=("-v",), language="go", description="d", enabled=False,
        skills=("skills", "./one/SKILL.md"),
    )  # fmt: skip
    assert warnings == ()
    assert not manifest.static


def test_least_manifest_gets_defaults():
    assert manifest_of() == Manifest(name="x", exec="./run")
    assert manifest_of().enabled
    assert manifest_of().exthost == HostSection()


def test_null_in_shared_keys_counts_as_absent():
    nulls = dict.fromkeys(("version", "args", "language", "description", "enabled", "skills"))
    assert manifest_of(**nulls) == Manifest(name="x", exec="./run")


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbf{"name": "x", "exec": "./run"}',
        b'{\r\n  "name": "x",\r\n  "exec": "./run"\r\n}\r\n',
        b'\xef\xbb\xbf{\r\n"name": "x",\r\n"exec": "./run"}',
    ],
)
def test_byte_order_mark_and_crlf_are_accepted(data):
    assert parse_manifest(data)[0] == Manifest(name="x", exec="./run")


@pytest.mark.parametrize(
    ("data", "where", "words"),
    [
        (b'\xef\xbb\xbf\xef\xbb\xbf{"name": "x"}', "line 1, column 1", "second byte order mark"),
        (b"nope", "line 1, column 1", "expecting value"),
        ('{"name": "x"}'.encode("utf-16"), "line 1, column 1", "UTF-16"),
        ('{"name": "x"}'.encode("utf-16-le"), "line 1, column 1", "UTF-16"),
        ('{"name": "x"}'.encode("utf-16-be"), "line 1, column 1", "UTF-16"),
        (b'{\n  // who\n  "name": "x"}', "line 2, column 3", "comments"),
        (b'{"name": "x", /* who */ "exec": "y"}', "line 1, column 15", "comments"),
        (b'{"name": "x" # who\n}', "line 1, column 14", "comments"),
        (b"", "", "empty"),
        (b" \r\n ", "", "empty"),
        (b"\xef\xbb\xbf", "", "empty"),
        (b"[]", "$", "must be an object, not an array"),
        (b"null", "$", "not null"),
        (b'"x"', "$", "not text"),
        (b"7", "$", "not a number"),
        (b"true", "$", "not true or false"),
        (b'{"name": "x"} {}', "line 1, column 15", "extra data"),
        (b'{"name": "x\n"}', "line 1, column 12", "control character"),
        (b'{"name": "\xff"}', "line 1, column 11", "0xff is not UTF-8"),
        (b'{\n"\xc3\xa4": "\xff"}', "line 2, column 7", "0xff is not UTF-8"),
        (b'{"name": NaN}', "", "NaN is not JSON"),
        (b'{"name": 1' + b"0" * 5000 + b"}", "", "too many digits"),
        (b'{"name": "x", "name": "y"}', "$.name", '"name" stands twice'),
        (b'{"name": "x", "exthost": {"env": {"A": "1", "A": "2"}}}', "$.exthost.env.A", '"A" stands twice'),
        (b'{"name": "x", "list": [0, {"a b": 1, "a b": 2}]}', '$.list[1]["a b"]', "stands twice"),
        (b'{"name": 7}', "$.name", "must be text, not a number"),
        (b'{"exec": "y"}', "$.name", "is missing"),
        (b'{"name": null, "exec": "y"}', "$.name", "is missing"),
        (b'{"Name": "x", "exec": "y"}', "$.name", 'there is "Name"; did you mean name?'),
        (b'{"name": "x"}', "$.exec", "is missing"),
        (b'{"name": "x", "exec": ""}', "$.exec", "name the program"),
        (b'{"name": "x", "exce": "y"}', "$.exec", "is missing"),
        (b'{"name": "x", "execs": "y"}', "$.exec", "did you mean exec?"),
    ],
)
def test_unusable_text_is_refused_with_its_place(data, where, words):
    error = refused(data)
    assert error.where == where
    assert words in str(error)


@pytest.mark.parametrize("text", ['{"name": "x",\n}', '{"name": "x",\n "args": ["a",]}', '{"name": "x", \n\n }'])
def test_trailing_comma_is_named_with_its_line(text):
    error = refused(text.encode())
    assert "comma before the closing bracket" in error.message
    assert error.where.startswith("line ")


def test_deep_nesting_is_refused_or_ignored_but_never_escapes():
    deep = b'{"name": "x", "exec": "y", "z": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert "too deeply" in str(refused(deep))
    assert parse_manifest(b'{"name": "x", "exec": "y", "z": ' + b"[" * 400 + b"]" * 400 + b"}")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("version", 1, "$.version: must be text, not a number"),
        ("exec", ["./run"], "$.exec: must be text, not an array"),
        ("exec", "./r\0un", "$.exec: holds a NUL"),
        ("args", "-v", "$.args: must be an array, not text"),
        ("args", ["-v", 3], "$.args[1]: must be text"),
        ("args", ["\0"], "$.args[0]: holds a NUL"),
        ("args", ["\ud800"], "$.args[0]: holds half of a surrogate pair"),
        ("language", {}, "$.language: must be text, not an object"),
        ("description", False, "$.description: must be text, not true or false"),
        ("enabled", "yes", "$.enabled: must be true or false, not text"),
        ("enabled", 0, "$.enabled: must be true or false, not a number"),
        ("skills", {"a": 1}, "$.skills: must be an array"),
        ("skills", ["a", ""], "$.skills[1]: must not be empty"),
        ("skills", ["../other"], '$.skills[0]: "../other" must stay inside'),
        ("skills", ["a/../../b"], "must stay inside"),
        ("skills", ["/etc"], "must stay inside"),
    ],
)
def test_wrong_type_in_shared_keys_is_an_error_with_path(key, value, words):
    error = refused({key: value})
    assert words in str(error)
    assert error.extension == "x"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/", "a\nb", "a\x1b[0m", "a\u202eb", "a\u2028b", " a", "a ", "n" * 129, "ä" * 101, "\x00"],
)
def test_name_that_is_no_plain_path_element_is_refused(name):
    assert refused({"name": name}).where == "$.name"


@pytest.mark.parametrize("name", ["a", "Über-Guard 2", "n" * 128, "...", "a.b", "守", "-x"])
def test_plain_names_are_accepted(name):
    assert manifest_of(name=name).name == name


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("timout_s", "exthost.tool_timeout_s"),
        ("timeout", "exthost.tool_timeout_s"),
        ("enable", "enabled"),
        ("Version", "version"),
        ("priority", "exthost.priority"),
        ("exthosts", "exthost"),
    ],
)
def test_misspelt_key_gives_a_warning_with_the_nearest(key, meant):
    data = json.dumps({"name": "x", "exec": "y", key: 5}).encode()
    (warning,) = parse_manifest(data)[1]
    assert f"$.{key} " in warning
    assert f"did you mean {meant}?" in warning


@pytest.mark.parametrize(
    "key", ["permissions", "config", "connector", "data_secrets", "author", "tags", "main", "$schema"]
)
def test_keys_of_other_programs_give_no_warning(key):
    assert parse_manifest(json.dumps({"name": "x", "exec": "y", key: 5}).encode())[1] == ()


def test_manifest_is_loaded_from_its_directory(tmp_path):
    directory = make_extension(tmp_path / "guard", timout_s=5)
    manifest, warnings = load_manifest(directory)
    assert manifest.name == "guard"
    assert len(warnings) == 1


def test_errors_of_a_loaded_manifest_name_the_file(tmp_path):
    (tmp_path / "extension.json").write_text("{")
    with pytest.raises(ManifestError) as caught:
        load_manifest(tmp_path)
    assert caught.value.path == str(tmp_path / "extension.json")
    assert str(caught.value).startswith(f"{tmp_path}/extension.json at line 1, column 2: ")


def test_missing_manifest_says_what_an_extension_is(tmp_path):
    with pytest.raises(ManifestError, match=r"no such file.*an extension is a directory"):
        load_manifest(tmp_path)


def test_manifest_that_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "extension.json")
    with pytest.raises(ManifestError, match="is no regular file"):
        load_manifest(tmp_path)


def test_manifest_that_is_a_directory_is_refused(tmp_path):
    (tmp_path / "extension.json").mkdir()
    with pytest.raises(ManifestError, match=r"is a directory|Is a directory"):
        load_manifest(tmp_path)


def test_huge_manifest_is_refused_unread(tmp_path):
    (tmp_path / "extension.json").write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(ManifestError, match="longer than 1048576 bytes"):
        load_manifest(tmp_path)


@pytest.mark.parametrize("theme", ["theme.json", "themes/theme.json"])
def test_theme_needs_no_exec_and_is_static(tmp_path, theme):
    directory = make_extension(tmp_path / "t", exec=None)
    with pytest.raises(ManifestError):
        load_manifest(directory)
    (directory / theme).parent.mkdir(exist_ok=True)
    (directory / theme).write_text("{}")
    assert load_manifest(directory)[0].static


def test_skills_need_no_exec_and_are_static():
    assert manifest_of(exec="", skills=["skills"]).static


def test_skill_that_leaves_by_a_link_is_refused(tmp_path):
    directory = make_extension(tmp_path / "s", skills=["inside", "outside"])
    (directory / "inside").mkdir()
    assert load_manifest(directory)
    (directory / "outside").symlink_to(tmp_path)
    with pytest.raises(ManifestError) as caught:
        load_manifest(directory)
    assert caught.value.where == "$.skills[1]"


def test_importing_the_package_does_not_import_packages():
    program = "import sys, trio_exthost; sys.exit('trio_exthost.packages' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
