"""docs/hooks.md says what the tables say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hook_samples import contract

from trio_exthost.effects import compile_schema
from trio_exthost.hooks import DISPATCHED, LIFE_POINTS, HookClass, HookEvent, read_batch
from trio_exthost.hooks.action_shapes import SHAPES
from trio_exthost.hooks.page import BEGIN, END, points_table, with_table

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
WRITE = [sys.executable, "-m", "trio_exthost.hooks.page"]


def frames(kind: str) -> list[dict]:
    found = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    return [each for each in found if each["type"] == kind]


def test_the_page_has_the_table_of_now():
    page = PAGE.read_text()
    assert page == with_table(page), "the points have changed: python -m trio_exthost.hooks.page docs/hooks.md"


def test_there_is_a_line_for_each_point():
    _head, _rule, *lines = points_table().splitlines()
    assert [line.split("`")[1] for line in lines] == [event.value for event in LIFE_POINTS]
    assert {line.split("`")[1] for line in lines if "never dispatched" not in line} == DISPATCHED


def test_a_line_says_all_that_holds_at_its_point():
    assert (
        "| `tool_call` | gate | `tool_call`, `args`, `assistant_message`? | `replace_arguments` | standard | `deny` "
        "| event `tool_call`, interception `tool_call` |\n" in points_table()
    )
    assert "| `extension_load` | observe, register, waited for | `reason` | | long | `continue` | |\n" in points_table()
    assert "`continue`; the newest only" in points_table()


def test_the_table_is_written_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    subprocess.run([*WRITE, page], check=True, timeout=60)
    assert page.read_text() == f"before\n{BEGIN}\n{points_table()}{END}\nafter\n"


@pytest.mark.parametrize(
    "page", ["", BEGIN, f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{END}\n{END}", f"{BEGIN}\n{END}\n{BEGIN}"]
)
def test_page_without_both_markers_once_is_refused(page):
    with pytest.raises(ValueError, match="once each"):
        with_table(page)


@pytest.mark.parametrize("kind", SHAPES)
def test_the_page_names_every_action_with_its_keys(kind):
    rows = [line for line in PAGE.read_text().splitlines() if f"`{kind}`" in line]
    keys, _ = SHAPES[kind]
    text = " ".join([*rows, PAGE.read_text().rpartition("A hook of class `register`")[2]])
    assert rows
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_frames_on_the_page_are_what_they_are_said_to_be():
    (invoke,) = frames("invoke")
    (event,) = frames("event")
    for name, payload in [
        (invoke["envelope"]["event"], invoke["envelope"]["payload"]),
        (event["event"], event["payload"]),
    ]:
        assert compile_schema(dict(LIFE_POINTS[HookEvent(name)].payload_schema)).explain(payload) == ""
    gate = contract(HookEvent.TOOL_CALL, HookClass.GATE)
    denial, change = frames("invoke_result")
    assert denial["decision"]["kind"] == "deny"
    batch = read_batch(gate, None, change["actions"], extension="guard", what="the page")
    assert batch.primary is not None
    assert batch.primary.fields == {"arguments": {"command": "rm -ri build"}}
