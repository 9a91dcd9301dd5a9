"""The person who uses the agent of a chaos run, and the agent's own tools."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import trio
from chaos.watch import Watch

from trio_exthost import HostClient, Question, Session, SimpleTool
from trio_exthost.wire.from_extension import PanelSpec

OBJECT = {"type": "object"}


class Person(HostClient):
    """Answers questions: at once, after a moment, or by turning them down."""

    def __init__(self, nursery: trio.Nursery, dice: random.Random, watch: Watch) -> None:
        self._nursery = nursery
        self._dice = dice
        self._watch = watch
        self.notes = 0

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:
        self.notes += 1

    def open_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:
        self._watch.screens[session.id].add(panel.id)

    def update_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:
        if panel.id not in self._watch.screens[session.id]:
            self._watch.fault(f"{extension} draws panel {panel.id}, which is not open")

    def close_panel(self, session: Session, extension: str, panel_id: str) -> None:
        if panel_id not in self._watch.screens[session.id]:
            self._watch.fault(f"{extension} closes panel {panel_id}, which is not open")
        self._watch.screens[session.id].discard(panel_id)

    def ask_user(self, session: Session, question: Question) -> None:
        settle = self._dice.choice((question.decline, question.cancel, lambda: question.answer(self._yes(question))))
        if self._dice.random() < 0.5:
            settle()
        else:
            self._nursery.start_soon(self._settle_later, settle, self._dice.uniform(0, 0.4))

    @staticmethod
    def _yes(question: Question) -> Any:
        return question.options[0] if question.options else True

    @staticmethod
    async def _settle_later(settle: Callable[[], bool], seconds: float) -> None:
        await trio.sleep(seconds)
        settle()


def tools_of(watch: Watch, dice: random.Random) -> list[SimpleTool]:
    """The agent's own: what guards keep shut, what a sandbox takes the place of, and one that takes its time."""

    async def vault(arguments: dict[str, Any]) -> str:
        if arguments.get("deny"):
            watch.fault("the vault was opened in spite of its guards")
        await trio.lowlevel.checkpoint()
        return "open"

    async def bash(arguments: dict[str, Any]) -> str:
        watch.fault("the bare bash was run, which the sandbox never gave up")
        await trio.lowlevel.checkpoint()
        return "bare"

    async def slow(arguments: dict[str, Any]) -> str:
        await trio.sleep(dice.uniform(0, 0.5))
        return "done"

    made = (("vault", vault), ("bash", bash), ("slow", slow))
    return [SimpleTool(name, "", OBJECT, function) for name, function in made]
