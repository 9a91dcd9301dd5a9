"""Whether a tool call may run: a person's word, or the policy's where somebody wants a person asked and nobody is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import msgspec
import trio

from trio_exthost.effects import EffectRecord, ToolPermission
from trio_exthost.errors import GuardAbsent, UnknownTool
from trio_exthost.policy import Outcome, Verdict
from trio_exthost.policy.settings import HeadlessAsk
from trio_exthost.runtime.invocation import owner_of_tool
from trio_exthost.runtime.questions import MAX_TEXT, Question
from trio_exthost.wire.words import AskKind, AskOutcome

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.toolcall import ToolCall


async def ask_client(call: ToolCall, on_asked: Callable[[], None]) -> str | None:
    """Have the session's client ask a person about a tool call; as `ask_person`."""
    return await ask_person(
        call.session,
        title=f"Run {call.name}?",
        message=_message(call),
        run_id=call.run.id if call.run is not None else "",
        tool_call_id=call.tool_id,
        on_asked=on_asked,
    )


async def ask_person(
    session: Session,
    *,
    title: str,
    message: str,
    run_id: str,
    tool_call_id: str = "",
    on_asked: Callable[[], None] = lambda: None,
) -> str | None:
    """Have the session's client ask a person to confirm something, for as long as that takes.

    If this raises `trio.Cancelled`, the question was withdrawn; it also is where the session ends first.

    Args:
      session: Whose client.
      title: The question.
      message: More about it, as things stand after the chain.
      run_id: The run it belongs to, or nothing.
      tool_call_id: The tool call it belongs to, or nothing.
      on_asked: Told once the client has taken the question; not where it says that nobody is there.

    Returns:
      `approved`, `denied` or `cancelled`; None where nobody is there.
    """
    if session.is_closed:
        await trio.lowlevel.checkpoint()
        return "cancelled"
    settled = trio.Event()
    question = Question(
        session,
        extension=None,
        kind=AskKind.CONFIRM,
        title=title,
        message=message,
        run_id=run_id,
        tool_call_id=tool_call_id,
        on_settled=lambda _outcome, _value: settled.set(),
    )
    session.asked.add(question)
    try:
        question.put()
        if question.outcome is not AskOutcome.UNAVAILABLE:
            on_asked()
        await settled.wait()
    finally:
        session.asked.discard(question)
        question.withdraw("the tool call was given up" if tool_call_id else "what was asked about was given up")
    if question.outcome is AskOutcome.UNAVAILABLE:
        return None
    if question.outcome is AskOutcome.CANCELLED:
        return "cancelled"
    return "approved" if question.value is True else "denied"


async def resolved(session: Session, verdict: Verdict) -> Verdict:
    """A gate's verdict with what a person said, where one was to be asked; the policy's word where nobody is there.

    If this raises `trio.Cancelled`, the question was withdrawn, and nothing was decided.
    """
    if verdict.outcome is not Outcome.ASK:
        return verdict
    who = verdict.by or ""
    said = None
    if session.is_interactive:
        title = f"Go on with {verdict.event.removeprefix('before_').replace('_', ' ')}?"
        reason = f"{who}: {verdict.reason}" if who else verdict.reason
        said = await ask_person(session, title=title, message=reason, run_id=verdict.run_id)
    if said is None:
        approved, why = decide_headless(session, who, verdict.event)
    else:
        approved, why = said == "approved", "the user did not allow this"
    if approved:
        return attrs.evolve(verdict, outcome=Outcome.ALLOW)
    return attrs.evolve(verdict, outcome=Outcome.BLOCK, reason=why)


def _message(call: ToolCall) -> str:
    """What will happen, then who wants it and why a person is asked; each on a line of its own."""
    arguments = msgspec.json.encode(call.arguments).decode()
    if len(arguments) > MAX_TEXT:
        arguments = f"{arguments[:MAX_TEXT]}... ({len(arguments) - MAX_TEXT} more characters)"
    lines = [arguments]
    if call.origin:
        lines.append(f"called by the extension {call.origin}")
    if call.verdict.reason:
        lines.append(f"{call.verdict.by}: {call.verdict.reason}" if call.verdict.by else call.verdict.reason)
    return "\n".join(lines)


def wanted_by(call: ToolCall) -> str | None:
    """The extension that wants a person asked about a call as things stand now; None where nobody does.

    Whoever serves the name now need not be who did when the chain was asked.
    """
    if call.verdict.outcome is Outcome.ASK:
        return call.verdict.by or ""
    return prompting_owner(call)


def prompting_owner(call: ToolCall) -> str | None:
    """The extension that has registered the tool as one whose calls are confirmed; None where it is none of these."""
    try:
        owner = owner_of_tool(call.session, call.name, call.run)
    except (UnknownTool, GuardAbsent):
        return None
    if isinstance(owner, EffectRecord) and owner.registration.value.descriptor.permission is ToolPermission.PROMPT:
        return owner.owner.extension_id
    return None


def decide_headless(session: Session, extension: str, about: str = "this call") -> tuple[bool, str]:
    """What the policy says of an extension that wants a person asked where nobody is there.

    Returns:
      Whether it may happen, and why: which rule says so, and the way out where it may not.
    """
    ruling = session.host.policy.ask_without_client(extension)
    who = f"extension {extension!r}" if extension else "an extension"
    why = f"{who} wants a person asked about {about}, and nobody is there; headless_ask = {ruling.explain()}"
    if ruling.value is HeadlessAsk.ALLOW:
        return True, why
    return False, f'{why}. Run it where somebody can be asked, or let the policy say headless_ask = "allow"'
