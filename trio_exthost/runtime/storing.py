"""`state_commit`: what an extension stores outside of any answer, in tasks that outlive it.

What it has sent before it ends, for whatever reason, is stored like everything else: nobody may be left to be told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import HostError, PayloadError, StateError, StateRefused
from trio_exthost.wire import Phase
from trio_exthost.wire import effects_to_extension as outbound
from trio_exthost.wire.values import ErrorDetail

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.turns import Turn
    from trio_exthost.state import Action

MAX_ID = 1024
"""Characters of the id of a request; the answer would have no room for one that fills a frame."""


class Storing:
    """The commits of one session that are on their way."""

    def __init__(self, session: Session) -> None:
        """None."""
        self._session = session
        self._scopes: set[trio.CancelScope] = set()
        self._done = trio.Event()

    def start(self, store: Callable[[], Awaitable[None]], name: str) -> None:
        """Run what stores something, in a task of the host's."""
        scope = trio.CancelScope()
        self._scopes.add(scope)
        self._session.host.nursery.start_soon(self._run, scope, store, name=name)

    async def _run(self, scope: trio.CancelScope, store: Callable[[], Awaitable[None]]) -> None:
        try:
            with scope:
                await store()
        finally:
            self._scopes.remove(scope)
            done, self._done = self._done, trio.Event()
            done.set()

    async def finish(self) -> None:
        """Wait until all is stored, `deadlines.commit_s` at most; what is not by then is given up, and that is told."""
        limit_s = self._session.host.config.deadlines.commit_s
        with trio.move_on_after(limit_s):  # noqa: ASYNC912 - nothing to wait for is no wait
            while self._scopes:
                await self._done.wait()
        if self._scopes:
            message = (
                f"{len(self._scopes)} commits were not on the disk {limit_s:g} s after the session's end: given up"
            )
            self._session.host.report(Code.STATE_REFUSED, Severity.ERROR, message, session=self._session)
        for scope in self._scopes:
            scope.cancel("the session has ended")


def commit(instance: Instance, id: str, space: str, actions: tuple[Mapping[str, Any], ...]) -> None:
    """`state_commit`: store a batch, in a task, and answer once it is stored or refused."""
    if is_too_long(instance, "state_commit", id):
        return
    persistence = instance.session.persistence
    try:
        if instance.connection.phase is Phase.STOPPING and not instance.registering.is_complete:
            raise StateRefused("it was never ready", code="not_ready", extension=instance.name)
        if instance.commits >= instance.limits.waiting_work:
            message = f"{instance.commits} commits of it wait already"
            raise StateRefused(message, code="resource_limit", extension=instance.name)
        checked = persistence.read_actions(instance, actions)
    except StateError as exc:
        _refuse(instance, id, exc)
        return
    instance.commits += 1
    turn = instance.brokers.turns.take(space)
    persistence.storing.start(lambda: _store(instance, id, space, checked, turn), f"commit of {instance.name}")


async def _store(instance: Instance, id: str, space: str, actions: tuple[Action, ...], turn: Turn) -> None:
    persistence = instance.session.persistence
    store = persistence.commit if space == "session" else persistence.shared.commit
    try:
        committed = await store(instance, actions, turn)
    except HostError as exc:
        _refuse(instance, id, exc)
    else:
        try:
            instance.post(outbound.StateResult(id, ok=True, revision=committed.revision, values=committed.values))
        except PayloadError:
            instance.post(outbound.StateResult(id, ok=True, revision=committed.revision))
    finally:
        turn.end()
        instance.commits -= 1


def refuse_unreadable(instance: Instance, id: str, code: str, why: str) -> None:
    """A frame that cannot be read, or comes when it must not, is answered, too; unless nothing fits under its id."""
    if outbound.StateResult.TYPE in instance.connection.dialect.outbound and len(id) <= MAX_ID:
        instance.post(outbound.StateResult(id, ok=False, error=ErrorDetail(code, why)))


def is_too_long(instance: Instance, what: str, id: str) -> bool:
    """Whether nothing could be answered under this id; then its extension is told in its diagnostics."""
    if len(id) <= MAX_ID:
        return False
    message = f"{what} with an id of {len(id)} characters, of {MAX_ID} allowed: ignored"
    instance.report(Code.FRAME_INVALID, Severity.WARNING, message)
    return True


def _refuse(instance: Instance, id: str, error: HostError) -> None:
    message = error.message + (f" ({error.hint})" if error.hint else "")
    instance.report(Code.STATE_REFUSED, Severity.WARNING, f"state_commit: {message}")
    instance.post(outbound.StateResult(id, ok=False, error=ErrorDetail(error.code, message)))
