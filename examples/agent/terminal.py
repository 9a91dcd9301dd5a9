"""The person at the terminal: sees what extensions tell, and answers what they and the host ask, one question at a time."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import trio

from trio_exthost import AskKind, HostClient, Question


async def read_line(prompt: str) -> str:
    """A line of the terminal. Its end raises EOFError."""
    return await trio.to_thread.run_sync(input, prompt, abandon_on_cancel=True)


class Terminal(HostClient):
    """Prints notes; `answer_all` is the task that answers. Who closes the terminal declines."""

    def __init__(self, read: Callable[[str], Awaitable[str]] = read_line) -> None:
        self._read = read
        self._send, self._questions = trio.open_memory_channel[Question](math.inf)  # the host bounds what is open

    def notify(self, session, extension, level, message) -> None:
        print(f"[{extension}] {printable(message)}")

    def ask_user(self, session, question) -> None:
        self._send.send_nowait(question)

    async def answer_all(self) -> None:
        """Answer every question, until cancelled. One that is withdrawn while the person thinks takes no answer."""
        async for question in self._questions:
            while question.is_open:
                try:
                    answer(question, (await self._read(prompt_for(question))).strip())
                except EOFError:
                    question.decline()
                except ValueError as exc:
                    print(printable(str(exc)))


def answer(question: Question, line: str) -> None:
    """Answer with what was typed; nothing takes the default. A ValueError leaves the question open."""
    if not line and question.default is not None:
        question.answer(question.default)
    elif question.kind is AskKind.CONFIRM:
        question.answer(line.lower() in ("y", "yes"))
    elif question.kind is AskKind.SELECT and line.isdecimal() and 0 < int(line) <= len(question.options):
        question.answer(question.options[int(line) - 1])
    else:
        question.answer(line)


def prompt_for(question: Question) -> str:
    """The question in lines, with who asks it."""
    lines = [f"[{question.extension}] {question.title}" if question.extension else question.title]
    lines += [question.message] if question.message else []
    lines += [f"{number}. {option}" for number, option in enumerate(question.options, 1)]
    if question.kind is AskKind.CONFIRM:
        hint = "[Y/n]" if question.default is True else "[y/N]"
    else:
        hint = f"[{question.default}]" if question.default else ""
    text = printable("\n".join(lines)).replace("\n", "\n  ")  # indented, so that none of it looks like another question
    return f"{text}\n{printable(hint)}> "


def printable(text: str) -> str:
    """The text without what would move the cursor: control characters come as an extension sent them."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
