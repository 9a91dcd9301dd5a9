"""A to-do list that the user and the model share: a panel, a command and a tool over one list, kept in memory."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator

PANEL = "todo"
USAGE = "try /todo, /todo add TEXT, /todo list, /todo done NUMBER"
SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["add", "list", "done"]},
        "text": {"type": "string", "description": "What to do; for add"},
        "number": {"type": "integer", "minimum": 1, "description": "Position in the list; for done"},
    },
    "required": ["action"],
    "additionalProperties": False,
}


class Mistake(Exception):
    """What the caller did wrong, in words for the caller."""


class Todo:
    """The list, which of its lines the panel's cursor is on, and whether the panel is open."""

    def __init__(self) -> None:
        self.items: list[dict] = []
        self.cursor = 0
        self.open = False

    def add(self, text: object) -> str:
        """Append an item; line breaks in it become spaces, since a panel's line is one line."""
        words = " ".join(text.split()) if isinstance(text, str) else ""
        if not words:
            raise Mistake("add needs a text")
        self.items.append({"text": words, "done": False})
        return f"added {len(self.items)}. {words}"

    def done(self, number: object) -> str:
        """Mark an item, counted from 1."""
        # A bool is an int in Python, and not a position.
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(self.items):
            raise Mistake(f"done needs a number from 1 to {len(self.items)}" if self.items else "the list is empty")
        item = self.items[number - 1]
        item["done"] = True
        return f"done {number}. {item['text']}"

    def act(self, action: object, text: object, number: object) -> str:
        """Do one of the schema's actions and return what to tell whoever asked."""
        if action == "add":
            return self.add(text)
        if action == "done":
            return self.done(number)
        if action == "list":
            return "\n".join(self.listing()) or "the list is empty"
        raise Mistake("the action must be add, list or done")

    def listing(self) -> list[str]:
        """Return a line for each item."""
        return [f"[{'x' if item['done'] else ' '}] {n}. {item['text']}" for n, item in enumerate(self.items, 1)]

    def panel(self) -> dict:
        """Return what the panel shows."""
        lines = [("> " if n == self.cursor else "  ") + line for n, line in enumerate(self.listing())]
        left = sum(not item["done"] for item in self.items)
        return {
            "title": f"To do: {left} of {len(self.items)} left",
            "lines": lines or ["  nothing yet; /todo add TEXT"],
            "footer": "up/down move, space toggles, d deletes, esc closes",
        }

    def key(self, key: object, text: object) -> None:
        """Do what a key of the panel means; other keys do nothing."""
        if key == "esc":
            self.open = False
        elif not self.items:
            return
        elif key in {"up", "down"}:
            self.cursor += 1 if key == "down" else -1
        elif key == "enter" or (key == "rune" and text == " "):
            item = self.items[self.cursor]
            item["done"] = not item["done"]
        elif key == "rune" and text == "d":
            del self.items[self.cursor]
        self.cursor = max(0, min(self.cursor, len(self.items) - 1))


def send(kind: str, **fields: object) -> None:
    """Write one frame: one line, flushed at once, because the host waits for it."""
    print(json.dumps({"type": kind, **fields}), flush=True)


def frames() -> Iterator[dict]:
    """Yield the host's frames until end of input. What is no frame is logged and skipped; stderr is the log."""
    for line in sys.stdin.buffer:
        try:
            frame = json.loads(line)
        except (ValueError, RecursionError) as error:
            print(f"todo: skipped a line: {error}", file=sys.stderr)
            continue
        if isinstance(frame, dict):
            yield frame


def render(todo: Todo) -> None:
    """Bring the panel up to date, if it is open."""
    if todo.open:
        send("panel_render", panel_id=PANEL, **todo.panel())


def registered() -> None:
    """Say what we offer."""
    send("register_command", name="todo", description="The to-do list: /todo, /todo add TEXT, /todo done NUMBER")
    send("register_tool", name="todo", description="Reads and changes the user's to-do list", schema=SCHEMA)
    send("ready")


def command(todo: Todo, frame: dict) -> None:
    """Answer /todo: with the panel, with a message, or with a mistake in `error`."""
    args = frame.get("args")
    action, _, rest = (args.strip() if isinstance(args, str) else "").partition(" ")
    reply: dict = {"id": frame.get("id")}
    if not action:
        todo.open = True
        send("command_response", **reply, action="open_panel", open_panel={"id": PANEL, **todo.panel()})
        return
    try:
        number = int(rest) if rest.strip().isdecimal() and len(rest) < 10 else None
        send("command_response", **reply, action="display", display=todo.act(action, rest, number))
    except Mistake as mistake:
        send("command_response", **reply, action="noop", error=f"{mistake}; {USAGE}")
    render(todo)


def tool(todo: Todo, frame: dict) -> None:
    """Answer the model. Arguments are checked here too: a model does not always keep to the schema."""
    args = frame.get("args") if isinstance(frame.get("args"), dict) else {}
    reply: dict = {"id": frame.get("id")}
    try:
        text = todo.act(args.get("action"), args.get("text"), args.get("number"))
        reply["structured_content"] = {"items": todo.items}
    except Mistake as mistake:
        text = str(mistake)
        reply["is_error"] = True
    send("tool_result", **reply, content=[{"type": "text", "text": text}])
    render(todo)


def key(todo: Todo, frame: dict) -> None:
    """Handle a key; keys may still arrive for a panel that has just been closed."""
    if frame.get("panel_id") != PANEL or not todo.open:
        return
    todo.key(frame.get("key"), frame.get("text"))
    if todo.open:
        render(todo)
    else:
        send("panel_close", panel_id=PANEL)


def main() -> None:
    """Speak with the host until it says shutdown or closes our input."""
    # When the host is gone, writing ends the program quietly, as for any program in a pipe.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    todo = Todo()
    send("hello", name="todo", version="0.1.0", capabilities=["commands", "tools", "panels"])
    for frame in frames():
        kind = frame.get("type")
        if kind == "hello_ack":
            registered()
        elif kind == "command_invoked":
            command(todo, frame)
        elif kind == "tool_call":
            tool(todo, frame)
        elif kind == "panel_key":
            key(todo, frame)
        elif kind == "panel_close" and frame.get("panel_id") == PANEL:
            todo.open = False  # the user closed it: render no more
        elif kind == "shutdown":
            send("shutdown_ack")
            return
        # Anything else is from a newer host, or not for us.


if __name__ == "__main__":
    main()
