"""Panels both ways: what extensions show, and the keys that go back to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import attrs

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import ClosedError
from trio_exthost.wire import to_extension
from trio_exthost.wire.from_extension import PanelSpec

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session

Key = Literal[
    "up",
    "down",
    "left",
    "right",
    "enter",
    "esc",
    "tab",
    "pageup",
    "pagedown",
    "home",
    "end",
    "backspace",
    "delete",
    "rune",
]
"""Keys a panel is told; `rune` comes with its text."""


@attrs.define(eq=False)
class Panel:
    """An open panel: what it shows, and the user's way back to the extension that opened it."""

    _panels: Panels = attrs.field(repr=False)
    instance: Instance = attrs.field(repr=False)
    spec: PanelSpec
    """What it shows now."""

    @property
    def extension(self) -> str:
        """Whose it is."""
        return self.instance.name

    def key(self, key: Key, text: str = "") -> None:
        """Tell the extension that a key was pressed; `text` only with `rune`. Synchronous, never blocks.

        Raises:
          ClosedError: The panel is not open any more.
          ValueError: There is no such key.
        """
        if key not in get_args(Key):
            raise ValueError(f"{key!r} is no key of a panel; keys are {', '.join(get_args(Key))}")
        self._post(to_extension.PanelKey(self.spec.id, key, text if key == "rune" else ""))

    def resize(self, width: int, height: int) -> None:
        """Tell the extension the panel's size in cells.

        Raises:
          ClosedError: The panel is not open any more.
        """
        self._post(to_extension.PanelResize(self.spec.id, width, height))

    def close(self) -> None:
        """The user closed it: the extension is told and stops rendering it. Idempotent."""
        if self._panels.find(self.spec.id) is self:
            self._post(to_extension.PanelClose(self.spec.id))
            self._panels.remove(self)

    def _post(self, frame: to_extension.Frame) -> None:
        self._panels.session.host.check_thread()
        if self._panels.find(self.spec.id) is not self:
            raise ClosedError(f"panel {self.spec.id!r} is not open any more", extension=self.extension)
        self.instance.post(frame)


class Panels:
    """The open panels of a session; an id belongs to whoever opened it first."""

    def __init__(self, session: Session) -> None:
        """None yet."""
        self.session = session
        self._open: dict[str, Panel] = {}
        self._held: dict[Instance, dict[str, PanelSpec]] = {}  # of those that are to take over, and have not

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def find(self, panel_id: str) -> Panel | None:
        """The open panel of this id."""
        return self._open.get(panel_id)

    def open(self, instance: Instance, spec: PanelSpec) -> None:
        """An extension opens a panel, or opens its own anew. That of one that is to take over is shown when it has."""
        if self.session.loader.is_in_waiting(instance):
            self._hold(instance, spec)
            return
        panel = self._open.get(spec.id)
        if panel is not None and panel.instance is not instance:
            self._refuse(instance, f"panel {spec.id!r} is open and belongs to {panel.extension}")
            return
        mine = sum(1 for each in self._open.values() if each.instance is instance)
        if panel is None and mine >= instance.limits.panels:
            self._refuse(instance, f"panel {spec.id!r}: it has {mine} panels open already")
            return
        self._open[spec.id] = Panel(self, instance, spec)
        instance.tell_client("open_panel", instance.name, spec)

    def _hold(self, instance: Instance, spec: PanelSpec) -> None:
        held = self._held.setdefault(instance, {})
        if spec.id not in held and len(held) >= instance.limits.panels:
            self._refuse(instance, f"panel {spec.id!r}: it has {len(held)} panels already")
            return
        held[spec.id] = spec

    def show_held(self, instance: Instance) -> None:
        """It has taken over: what it has opened so far is shown, as it is now."""
        for spec in self._held.pop(instance, {}).values():
            self.open(instance, spec)

    def render(self, instance: Instance, spec: PanelSpec) -> None:
        """New content of an open panel; for any other id it is dropped, as users close panels while programs draw."""
        held = self._held.get(instance, {})
        if spec.id in held:
            held[spec.id] = spec
            return
        panel = self._open.get(spec.id)
        if panel is not None and panel.instance is instance:
            panel.spec = spec
            instance.tell_client("update_panel", instance.name, spec)

    def close_by_extension(self, instance: Instance, panel_id: str) -> None:
        """The extension closes its panel."""
        self._held.get(instance, {}).pop(panel_id, None)
        panel = self._open.get(panel_id)
        if panel is not None and panel.instance is instance:
            self.remove(panel)
            instance.tell_client("close_panel", instance.name, panel_id)

    def remove(self, panel: Panel) -> None:
        """It is open no more."""
        self._open.pop(panel.spec.id, None)

    def close_all_of(self, instance: Instance) -> None:
        """The extension is gone, its panels with it."""
        self._held.pop(instance, None)
        for panel_id in reversed([id for id, panel in self._open.items() if panel.instance is instance]):  # noqa: A001 - the wire's word
            self.close_by_extension(instance, panel_id)

    def _refuse(self, instance: Instance, why: str) -> None:
        instance.report(Code.PANEL_REFUSED, Severity.WARNING, why)
