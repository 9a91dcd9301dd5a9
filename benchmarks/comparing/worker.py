"""The process of a column, seen from outside: one order at a time, one answer each (`columns/worker.py`)."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import attrs

from comparing.programs import HERE, Program

ANSWER_S = 120
"""A column that owes an answer for so long hangs."""


@attrs.define
class Worker:
    """A context manager that ends the process."""

    program: Program
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, program: Program) -> Worker:
        """Start it on the cores that are allowed to this process now."""
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(HERE.parent)]))
        pipe = subprocess.PIPE
        environment = {
            **os.environ,
            "PYTHONPATH": path,
        }  # an installed package and one beside this folder are both found
        return cls(program, subprocess.Popen(program.argv, stdin=pipe, stdout=pipe, env=environment, cwd=HERE))

    def ask(self, order: str, number: int) -> dict[str, Any]:
        """Give an order and wait for its answer.

        Raises:
          RuntimeError: The column ended (its message is on stderr), or gave no answer for `ANSWER_S`.
        """
        assert self.process.stdin and self.process.stdout  # noqa: PT018 - both are pipes
        try:
            self.process.stdin.write(f"{order} {number}\n".encode())
            self.process.stdin.flush()
            is_ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_S)
            line = self.process.stdout.readline() if is_ready else None
        except BrokenPipeError:
            line = b""
        if not line:
            why = f"gave no answer for {ANSWER_S} s" if line is None else f"ended with status {self.process.wait()}"
            raise RuntimeError(f"the column {self.program.column} {why}; it had been asked for: {order} {number}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Where all went well the end of its stdin ends it; its extensions end with it either way, at the end of theirs."""
        assert self.process.stdin and self.process.stdout  # noqa: PT018 - both are pipes
        if kind is not None:
            self.process.kill()
        self.process.communicate()


@contextmanager
def affinity(*, pinned: bool) -> Iterator[None]:
    """Processes started within run on one core, the last of those allowed, or on all of them."""
    allowed = os.sched_getaffinity(0)
    if pinned:
        os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
