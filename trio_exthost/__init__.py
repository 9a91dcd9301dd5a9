"""An extension host on trio: people extend a Python agent with programs in any language.

Begin with `open_host`. Everything public is here, and nothing heavy is imported for it: what reads manifests, draws tables or
compiles schemas comes in where it is used.
"""

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
from trio_exthost.runtime.session import Session
from trio_exthost.runtime.status import ExtensionRow, LoadReport
from trio_exthost.runtime.text import AssistantText
from trio_exthost.runtime.toolcall import ToolCall
from trio_exthost.runtime.tools import HostTool, Progress, SimpleTool, ToolContext, ToolInfo
from trio_exthost.wire.from_extension import ContentBlock, PanelSpec

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
