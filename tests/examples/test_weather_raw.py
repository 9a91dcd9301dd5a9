"""Weather, and hostile JSON for its parser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from raw_extension import EXTENSIONS


def weather(args: object, id_: str = "7") -> dict[str, Any]:
    return {"type": "tool_call", "id": id_, "name": "weather", "args": args}


def test_weather_has_text_and_structure_and_is_the_same_each_time(ready):
    extension = ready("weather")
    first, second = (
        extension.ask(weather({"city": "Oslo"})),
        extension.ask(weather({"city": "Oslo", "unit": "celsius"})),
    )
    assert first == second
    structure = first["structured_content"]
    assert structure == {
        "city": "Oslo",
        "sky": structure["sky"],
        "temperature": structure["temperature"],
        "unit": "celsius",
    }
    text = f"Oslo: {structure['sky']}, {structure['temperature']} °C (invented)"
    assert first == {
        "type": "tool_result", "id": "7", "content": [{"type": "text", "text": text}], "structured_content": structure
    }  # fmt: skip
    warm = extension.ask(weather({"city": "Oslo", "unit": "fahrenheit"}))["structured_content"]
    assert (warm["unit"], warm["temperature"]) == ("fahrenheit", int(structure["temperature"] * 9 / 5) + 32)


@pytest.mark.parametrize(
    "city",
    ['"', "\\", 'a"b\\c/', "Zürich", "東京", "🌧 Oslo 🌧", "\0", "a\0b", "\t\r\n\b\f\x1f\x7f", "</script>", "%s%n%d", "x" * 200, "🌧" * 50],
    ids=lambda city: ascii(city)[:20],
)  # fmt: skip
def test_a_hostile_city_comes_back_as_it_was(shared, city):
    extension = shared("weather")
    for ensure_ascii in (True, False):
        answer = extension.ask(json.dumps(weather({"city": city}), ensure_ascii=ensure_ascii).encode())
        assert answer["structured_content"]["city"] == city
        assert answer["content"][0]["text"].startswith(city + ": ")


@pytest.mark.parametrize(
    ("raw", "city"),
    [
        (rb"\ud800", "\ufffd"),
        (rb"\udc00x", "\ufffdx"),
        (rb"\ud83dx", "\ufffdx"),
        (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
        (rb"\uD83D\uDE00\u00e9\/", "😀é/"),
        (b"\xff", "\ufffd"),
        (b"\xc3", "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
    ],
)
def test_what_is_no_character_becomes_the_replacement_character(shared, raw, city):
    answer = shared("weather").ask(b'{"type":"tool_call","id":"7","name":"weather","args":{"city":"' + raw + b'"}}')
    assert answer["structured_content"]["city"] == city


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({}, "city is missing"),
        ({"city": ""}, "city is missing"),
        ({"city": 5}, "city is missing"),
        ({"city": ["Oslo"]}, "city is missing"),
        ({"town": {"city": "Oslo"}}, "city is missing"),
        ([], "city is missing"),
        (None, "city is missing"),
        ({"city": "x" * 201}, "at most 200 bytes"),
        ({"city": "x" * 257}, "at most 200 bytes"),
        ({"city": "x" * 500_000}, "at most 200 bytes"),
        ({"city": '"\\' * 250_000}, "at most 200 bytes"),
        ({"city": "x" * 2_000_000}, "longer than 1 MiB"),
        ({"city": "Oslo", "unit": "kelvin"}, "unit must be"),
        ({"city": "Oslo", "unit": None}, "unit must be"),
        ({"city": "Oslo", "unit": "celsius\0"}, "unit must be"),
    ],
    ids=[
        "none", "empty", "number", "list", "nested", "args-list", "args-null", "201", "257", "500-KB", "500-KB-escaped", "2-MB",
        "kelvin", "unit-null", "unit-nul",
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_an_error_in_words(shared, args, says):
    extension = shared("weather")
    answer = extension.ask(weather(args))
    assert (answer["type"], answer["id"], answer["is_error"]) == ("tool_result", "7", True)
    assert says in answer["content"][0]["text"]
    assert extension.ask(weather({"city": "Oslo"}, "8"))["id"] == "8"


@pytest.mark.parametrize(
    "raw",
    [rb"\x", rb"\u12", rb"\u12g4", rb"\u-123", b"a\x01", b"\\u\x00\x00\x00\x00"],
)
def test_a_city_that_is_no_json_string_is_refused(shared, raw):
    answer = shared("weather").ask(b'{"type":"tool_call","id":"7","name":"weather","args":{"city":"' + raw + b'"}}')
    assert (answer["id"], answer["is_error"]) == ("7", True)


def test_every_beginning_of_a_frame_is_passed_over(ready):
    extension = ready("weather")
    line = (
        rb'{"type":"tool_call","id":"7","x":[{"a":-1.5e+3},null],"name":"weather","args":{"city":"\ud83d\ude00\"\\"}}'
    )
    extension.send(*(line[:end] for end in range(len(line))))
    extension.send(*(line[:at] + b"\0" + line[at:] for at in range(0, line.index(b'"args"'), 3)))
    while (answer := extension.ask(weather({"city": "Oslo"}, "8")))["id"] != "8":
        assert answer["id"] == "7"  # a NUL inside a string that is not used does no harm
    assert answer["structured_content"]["city"] == "Oslo"


def test_members_are_found_by_their_decoded_name_and_the_last_counts(ready):
    line = rb' { "args" : { "city":"a", "cit\u0079" : "b" } , "id":"7","name":"weather", "type" : "tool_call" } '
    assert ready("weather").ask(line)["structured_content"]["city"] == "b"


def test_a_cancel_after_the_answer_changes_nothing(ready):
    extension = ready("weather")
    extension.ask(weather({"city": "Oslo"}))
    extension.send({"type": "tool_cancel", "id": "7"})
    assert extension.ask(weather({"city": "Oslo"}, "8"))["id"] == "8"


def test_a_call_of_another_tool_is_an_error(ready):
    assert ready("weather").ask({**weather({"city": "Oslo"}), "name": "climate"})["is_error"] is True


def test_make_builds_the_program_the_manifest_names(tmp_path: Path):
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("make or cc is not installed")
    directory = shutil.copytree(EXTENSIONS / "weather", tmp_path / "weather", ignore=shutil.ignore_patterns("weather"))
    subprocess.run(["make"], cwd=directory, check=True, capture_output=True)
    manifest = json.loads((directory / "extension.json").read_text(encoding="utf-8"))
    run = subprocess.run([directory / manifest["exec"]], input=b"", capture_output=True, check=True)
    assert json.loads(run.stdout)["type"] == "hello"
