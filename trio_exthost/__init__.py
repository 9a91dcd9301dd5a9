"""An extension host on trio: people extend a Python agent with programs in any language.

Begin with `open_host`. Everything public is here; a name's module is imported when the name is first asked for, so that
`import trio_exthost` costs nothing and a program that only needs the ledger does not load the runtime.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trio_exthost.config import Deadlines, HostConfig, Limits
    from trio_exthost.diagnostics import Code, Diagnostic, DiagnosticLog, Severity
    from trio_exthost.effects import (
        EffectKind,
        EffectLedger,
        EffectOwner,
        EffectRecord,
        Scope,
        ScopeBinding,
    )
    from trio_exthost.errors import (
        CallAborted,
        CallError,
        CallTimedOut,
        ClosedError,
        ConfigError,
        Conflict,
        DisposedHandle,
        ExtensionExited,
        HostError,
        LedgerError,
        LoadError,
        MalformedReply,
        ManifestError,
        MissingScopeId,
        Overloaded,
        OverrideDenied,
        PayloadError,
        ProtocolError,
        RemoteError,
        TrustError,
        UnknownCommand,
        UnknownHandle,
        UnknownTool,
        WrongThread,
    )
    from trio_exthost.hooks import Event
    from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict
    from trio_exthost.runtime.client import HostClient
    from trio_exthost.runtime.commands import (
        CommandFailed,
        CommandInfo,
        CommandOutcome,
        Display,
        Insert,
        Noop,
        OpenPanel,
        Prompt,
        ToolPrompt,
    )
    from trio_exthost.runtime.host import Host, ModelRef, open_host
    from trio_exthost.runtime.instrument import HostInstrument
    from trio_exthost.runtime.panels import Panel
    from trio_exthost.runtime.results import ToolResult, ToolStatus, text_block
    from trio_exthost.runtime.run import AgentRef, Compaction, Run
    from trio_exthost.runtime.session import Confirm, Session
    from trio_exthost.runtime.status import ExtensionRow, LoadReport
    from trio_exthost.runtime.text import AssistantText
    from trio_exthost.runtime.toolcall import ToolCall
    from trio_exthost.runtime.tools import HostTool, Progress, SimpleTool, ToolContext, ToolInfo
    from trio_exthost.wire.from_extension import ContentBlock, PanelSpec
else:

    def __getattr__(name: str) -> object:
        """Import the module of a public name, once (PEP 562)."""
        module = _HOMES.get(name)
        if module is None:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        value = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


_HOMES = {
    "AgentRef": "runtime.run",
    "AssistantText": "runtime.text",
    "CallAborted": "errors",
    "CallError": "errors",
    "CallTimedOut": "errors",
    "ClosedError": "errors",
    "Code": "diagnostics",
    "CommandFailed": "runtime.commands",
    "CommandInfo": "runtime.commands",
    "CommandOutcome": "runtime.commands",
    "Compaction": "runtime.run",
    "ConfigError": "errors",
    "Confirm": "runtime.session",
    "Conflict": "errors",
    "ContentBlock": "wire.from_extension",
    "Deadlines": "config",
    "Diagnostic": "diagnostics",
    "DiagnosticLog": "diagnostics",
    "Display": "runtime.commands",
    "DisposedHandle": "errors",
    "EffectKind": "effects",
    "EffectLedger": "effects",
    "EffectOwner": "effects",
    "EffectRecord": "effects",
    "Event": "hooks",
    "ExtensionExited": "errors",
    "ExtensionRow": "runtime.status",
    "Host": "runtime.host",
    "HostClient": "runtime.client",
    "HostConfig": "config",
    "HostError": "errors",
    "HostInstrument": "runtime.instrument",
    "HostTool": "runtime.tools",
    "Insert": "runtime.commands",
    "LedgerError": "errors",
    "Limits": "config",
    "LoadError": "errors",
    "LoadReport": "runtime.status",
    "MalformedReply": "errors",
    "ManifestError": "errors",
    "MissingScopeId": "errors",
    "ModelRef": "runtime.host",
    "Noop": "runtime.commands",
    "OnFailure": "policy",
    "OpenPanel": "runtime.commands",
    "Outcome": "policy",
    "Overloaded": "errors",
    "OverrideDenied": "errors",
    "Panel": "runtime.panels",
    "PanelSpec": "wire.from_extension",
    "PayloadError": "errors",
    "Progress": "runtime.tools",
    "Prompt": "runtime.commands",
    "ProtocolError": "errors",
    "RemoteError": "errors",
    "Run": "runtime.run",
    "Scope": "effects",
    "ScopeBinding": "effects",
    "Session": "runtime.session",
    "Severity": "diagnostics",
    "SimpleTool": "runtime.tools",
    "Step": "policy",
    "StepKind": "policy",
    "ToolCall": "runtime.toolcall",
    "ToolContext": "runtime.tools",
    "ToolInfo": "runtime.tools",
    "ToolPrompt": "runtime.commands",
    "ToolResult": "runtime.results",
    "ToolStatus": "runtime.results",
    "TrustError": "errors",
    "UnknownCommand": "errors",
    "UnknownHandle": "errors",
    "UnknownTool": "errors",
    "Verdict": "policy",
    "WrongThread": "errors",
    "open_host": "runtime.host",
    "text_block": "runtime.results",
}

__all__ = [
    "AgentRef",
    "AssistantText",
    "CallAborted",
    "CallError",
    "CallTimedOut",
    "ClosedError",
    "Code",
    "CommandFailed",
    "CommandInfo",
    "CommandOutcome",
    "Compaction",
    "ConfigError",
    "Confirm",
    "Conflict",
    "ContentBlock",
    "Deadlines",
    "Diagnostic",
    "DiagnosticLog",
    "Display",
    "DisposedHandle",
    "EffectKind",
    "EffectLedger",
    "EffectOwner",
    "EffectRecord",
    "Event",
    "ExtensionExited",
    "ExtensionRow",
    "Host",
    "HostClient",
    "HostConfig",
    "HostError",
    "HostInstrument",
    "HostTool",
    "Insert",
    "LedgerError",
    "Limits",
    "LoadError",
    "LoadReport",
    "MalformedReply",
    "ManifestError",
    "MissingScopeId",
    "ModelRef",
    "Noop",
    "OnFailure",
    "OpenPanel",
    "Outcome",
    "Overloaded",
    "OverrideDenied",
    "Panel",
    "PanelSpec",
    "PayloadError",
    "Progress",
    "Prompt",
    "ProtocolError",
    "RemoteError",
    "Run",
    "Scope",
    "ScopeBinding",
    "Session",
    "Severity",
    "SimpleTool",
    "Step",
    "StepKind",
    "ToolCall",
    "ToolContext",
    "ToolInfo",
    "ToolPrompt",
    "ToolResult",
    "ToolStatus",
    "TrustError",
    "UnknownCommand",
    "UnknownHandle",
    "UnknownTool",
    "Verdict",
    "WrongThread",
    "open_host",
    "text_block",
]
