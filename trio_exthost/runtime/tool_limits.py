"""What a tool of an extension may take, in seconds and in bytes: what its manifest asks for, up to the operator's maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_exthost.diagnostics import Code, Severity

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance


def seconds_of(instance: Instance) -> float:
    """How long its tools are waited for."""
    asked_s = instance.manifest.exthost.tool_timeout_s or instance.deadlines.tool_s
    return min(asked_s, instance.deadlines.tool_maximum_s)


def bytes_of(instance: Instance) -> int:
    """How much text a result of its tools may have."""
    asked = instance.manifest.exthost.tool_result_bytes or instance.limits.tool_result_bytes
    return min(asked, instance.limits.tool_result_maximum_bytes)


def hint_of(instance: Instance) -> str:
    """Which limit a tool that took too long has hit, and where it is set."""
    asked_s, maximum_s = instance.manifest.exthost.tool_timeout_s, instance.deadlines.tool_maximum_s
    if asked_s is not None and asked_s > maximum_s:
        return f"its manifest asks for {asked_s:g} s, which the operator's maximum cuts: tool_maximum_s in the host's deadlines"
    return "a slow tool can ask for more: exthost.tool_timeout_s in its manifest"


def tell_cuts(instance: Instance) -> None:
    """Tell what its manifest asks for and does not get."""
    section, limits = instance.manifest.exthost, instance.limits
    for key, asked, where, maximum in (
        ("tool_timeout_s", section.tool_timeout_s, "deadlines.tool_maximum_s", instance.deadlines.tool_maximum_s),
        (
            "tool_result_bytes",
            section.tool_result_bytes,
            "limits.tool_result_maximum_bytes",
            limits.tool_result_maximum_bytes,
        ),
    ):
        if asked is not None and asked > maximum:
            message = f"exthost.{key} asks for {asked:.15g}, and gets {maximum:.15g}: the operator's maximum ({where})"
            instance.report(Code.MANIFEST_WARNING, Severity.WARNING, message)
