"""The to-do list by command, tool and panel."""

from __future__ import annotations

from typing import Any

import pytest

FOOTER = "up/down move, space toggles, d deletes, esc closes"


def slash(args: str = "") -> dict[str, Any]:
    return {"type": "command_invoked", "id": "7", "name": "todo", "args": args}


def tool(**args: object) -> dict[str, Any]:
    return {"type": "tool_call", "id": "7", "name": "todo", "args": args}


def key(name: str, text: str = "") -> dict[str, Any]:
    return {"type": "panel_key", "panel_id": "todo", "key": name, **({"text": text} if text else {})}


def test_the_command_adds_lists_and_finishes(ready):
    extension = ready("todo")
    answer = extension.ask(slash("add buy  milk\n"))
    assert answer == {"type": "command_response", "id": "7", "action": "display", "display": "added 1. buy milk"}
    extension.ask(slash("add rest"))
    assert extension.ask(slash("done 2"))["display"] == "done 2. rest"
    assert extension.ask(slash("list"))["display"] == "[ ] 1. buy milk\n[x] 2. rest"


@pytest.mark.parametrize(
    "args", ["add", "add  ", "done", "done 0", "done 2", "done x", "done -1", "done ²", "done " + "9" * 5000, "fly"]
)
def test_a_command_that_makes_no_sense_is_an_error_with_the_usage(ready, args):
    extension = ready("todo")
    extension.ask(slash("add one"))
    answer = extension.ask(slash(args))
    assert answer["type"] == "command_response"
    assert "/todo done NUMBER" in answer["error"]


def test_the_tool_shares_the_list_and_gives_it_as_structure(ready):
    extension = ready("todo")
    extension.ask(slash("add one"))
    assert extension.ask(tool(action="add", text="two"))["content"] == [{"type": "text", "text": "added 2. two"}]
    answer = extension.ask(tool(action="done", number=1))
    items = [{"text": "one", "done": True}, {"text": "two", "done": False}]
    assert answer == {
        "type": "tool_result", "id": "7", "content": [{"type": "text", "text": "done 1. one"}],
        "structured_content": {"items": items},
    }  # fmt: skip
    assert extension.ask(tool(action="list"))["content"][0]["text"] == "[x] 1. one\n[ ] 2. two"


@pytest.mark.parametrize(
    "args",
    [{}, {"action": "fly"}, {"action": ["add"]}, {"action": "add"}, {"action": "add", "text": 5}, {"action": "add", "text": " "},
     {"action": "done"}, {"action": "done", "number": 0}, {"action": "done", "number": 1.0}, {"action": "done", "number": True},
     {"action": "done", "number": "1"}],
)  # fmt: skip
def test_a_tool_call_that_makes_no_sense_is_an_error_in_words(ready, args):
    extension = ready("todo")
    extension.ask(slash("add one"))
    answer = extension.ask(tool(**args))
    assert (answer["id"], answer["is_error"]) == ("7", True)
    assert answer["content"][0]["text"]


def test_the_panel_moves_toggles_deletes_and_closes(ready):
    extension = ready("todo")
    for text in ("one", "two", "three"):
        extension.ask(slash(f"add {text}"))
    spec = {
        "id": "todo",
        "title": "To do: 3 of 3 left",
        "lines": ["> [ ] 1. one", "  [ ] 2. two", "  [ ] 3. three"],
        "footer": FOOTER,
    }
    assert extension.ask(slash()) == {"type": "command_response", "id": "7", "action": "open_panel", "open_panel": spec}
    lines = ["  [ ] 1. one", "> [ ] 2. two", "  [ ] 3. three"]
    moved = {
        "type": "panel_render",
        "panel_id": "todo",
        "title": "To do: 3 of 3 left",
        "lines": lines,
        "footer": FOOTER,
    }
    assert extension.ask(key("down")) == moved
    toggled = extension.ask(key("rune", " "))
    assert (toggled["title"], toggled["lines"][1]) == ("To do: 2 of 3 left", "> [x] 2. two")
    assert extension.ask(key("enter"))["lines"][1] == "> [ ] 2. two"
    assert extension.ask(key("rune", "d"))["lines"] == ["  [ ] 1. one", "> [ ] 2. three"]
    assert extension.ask(key("down"))["lines"] == ["  [ ] 1. one", "> [ ] 2. three"]
    assert extension.ask(key("rune", "d"))["lines"] == ["> [ ] 1. one"]
    assert extension.ask(key("up"))["lines"] == ["> [ ] 1. one"]
    assert extension.ask(key("esc")) == {"type": "panel_close", "panel_id": "todo"}


def test_a_panel_without_items_takes_every_key(ready):
    extension = ready("todo")
    assert extension.ask(slash())["open_panel"]["lines"] == ["  nothing yet; /todo add TEXT"]
    for pressed in (key("up"), key("down"), key("enter"), key("rune", "d"), key("rune", "x"), key("home")):
        assert extension.ask(pressed)["lines"] == ["  nothing yet; /todo add TEXT"]


def test_the_model_changing_the_list_renders_an_open_panel(ready):
    extension = ready("todo")
    extension.ask(slash())
    extension.ask(tool(action="add", text="from the model"))
    assert extension.receive()["lines"] == ["> [ ] 1. from the model"]


def test_a_panel_the_user_closed_is_not_rendered(ready):
    extension = ready("todo")
    extension.ask(slash())
    extension.send({"type": "panel_close", "panel_id": "todo"}, key("down"))
    extension.ask(tool(action="add", text="one"))
    assert extension.ask(slash("list"))["display"] == "[ ] 1. one"
