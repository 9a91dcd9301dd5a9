"""What the host answers to `hello`: the session, and to those that speak the effect dialect its terms."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from trio_exthost.effects import MAX_EFFECTS
from trio_exthost.hooks import LIFE_POINTS, MAX_ACTIONS
from trio_exthost.runtime.declarations import MAX_HOOKS
from trio_exthost.runtime.results import clean_text
from trio_exthost.wire import effects_to_extension, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance


def hello_ack(instance: Instance) -> to_extension.HelloAck:
    """The acknowledgement for one instance."""
    session, config = instance.session, instance.host.config
    directory = clean_text(str(instance.candidate.directory))
    return to_extension.HelloAck(
        protocol_version=1,
        zot_version=config.host_version or package_version(),
        capabilities=("call_tool",),
        provider=session.model.provider,
        model=session.model.model,
        cwd=clean_text(str(session.cwd)),
        extension_dir=directory,
        data_dir=directory,
        host=config.host_name,
        dialect=_terms(instance) if "effects" in instance.capabilities else None,
    )


def _terms(instance: Instance) -> effects_to_extension.DialectTerms:
    limits, deadlines = instance.limits, instance.deadlines
    return effects_to_extension.DialectTerms(
        session_id=instance.session.id,
        instance=instance.number,
        events=tuple(event.value for event in LIFE_POINTS if event in instance.session.points),
        granted=tuple(sorted(instance.registrant.granted)),
        limits={
            "frame_bytes": limits.frame_bytes,
            "effects": MAX_EFFECTS,
            "hooks": MAX_HOOKS,
            "actions": MAX_ACTIONS,
            "pending_calls": limits.pending_calls,
            "waiting_work": limits.waiting_work,
            "command_s": deadlines.command_s,
            "tool_s": deadlines.tool_s,
            "tool_maximum_s": deadlines.tool_maximum_s,
            "gate_s": deadlines.intercept_s,
            "transform_s": deadlines.transform_s,
            "chain_s": deadlines.chain_s,
        },
    )


@functools.cache
def package_version() -> str:
    """This package's version, as installed; read once (parsing its metadata took a sixth of an extension's start)."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - 10 ms that most imports never need

    try:
        return version("trio-exthost")
    except PackageNotFoundError:
        return "0"
