"""What a record of the effect dialect holds for the runtime: tools and commands that can be run, the others as they are."""

from __future__ import annotations

from typing import Any

from trio_exthost.effects import Command, Tool
from trio_exthost.runtime.commands import EffectCommand
from trio_exthost.runtime.extension_tools import EffectTool


def offered(descriptor: Any) -> Any:
    """The descriptor, or what runs it."""
    if isinstance(descriptor, Tool):
        return EffectTool(descriptor)
    if isinstance(descriptor, Command):
        return EffectCommand(descriptor)
    return descriptor
