"""An extension host on trio: people extend a Python agent with programs in any language.

Begin with `open_host`. Everything public is here; a name's module is imported when the name is first asked for, so that
`import trio_exthost` costs nothing and a program that only needs the ledger does not load the runtime.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trio_exthost.config import Deadlines, HostConfig, Limits
    from trio_exthost.diagnostics import Code, Diagnostic, DiagnosticLog, Severity
    from trio_exthost.effects import Change, ChangeAction, DisposeCause, EffectKind, EffectLedger, EffectOwner, EffectRecord, EffectView, Registration, Scope, ScopeBinding, ToolPermission
    from trio_exthost.errors import CallAborted, CallError, CallTimedOut, ClosedError, ConfigError, Conflict, DisposedHandle, ExtensionExited, GuardAbsent, HostError, InvalidArguments, LedgerError, LoadError, MalformedReply, ManifestError, MissingScopeId, Overloaded, OverrideDenied, PayloadError, PolicyError, ProtocolError, RegistrationRefused, Reloaded, RemoteError, TrustError, UnknownCommand, UnknownHandle, UnknownTool, WrongThread
    from trio_exthost.hooks import Event, HookClass, HookEvent
    from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict
    from trio_exthost.policy.extension_policy import ExtensionPolicy, PointPolicy, RestartPolicy
    from trio_exthost.policy.policy import Policy
    from trio_exthost.policy.rules import Rule, Ruling
    from trio_exthost.policy.settings import HeadlessAsk
    from trio_exthost.runtime.client import HostClient
    from trio_exthost.runtime.commands import CommandInfo
    from trio_exthost.runtime.follow_ups import FollowUp
    from trio_exthost.runtime.host import Host, ModelRef, open_host
    from trio_exthost.runtime.instrument import HostInstrument
    from trio_exthost.runtime.merging import Clash, Merged
    from trio_exthost.runtime.models import InMemoryModelCatalogue, ModelCatalogue, ProvidedModel
    from trio_exthost.runtime.outcomes import CommandCancelled, CommandFailed, CommandOutcome, Display, Insert, Noop, OpenPanel, Prompt, Rejected, Success, ToolPrompt
    from trio_exthost.runtime.panels import Panel
    from trio_exthost.runtime.questions import Question
    from trio_exthost.runtime.registrations import AcceptedAll, Registrations
    from trio_exthost.runtime.reload_report import ReloadFailure, ReloadReport, Restarted
    from trio_exthost.runtime.results import ToolResult, ToolStatus, text_block
    from trio_exthost.runtime.run import AgentRef, Compaction, Run
    from trio_exthost.runtime.run_points import Input, RunContext
    from trio_exthost.runtime.session import Confirm, Session
    from trio_exthost.runtime.session_points import BranchTarget, SessionTarget
    from trio_exthost.runtime.status import ExtensionRow, LoadReport
    from trio_exthost.runtime.text import AssistantText
    from trio_exthost.runtime.toolcall import ToolCall
    from trio_exthost.runtime.tools import HostTool, Progress, SimpleTool, ToolContext, ToolInfo
    from trio_exthost.wire.from_extension import ContentBlock, PanelSpec
    from trio_exthost.wire.words import AskKind, AskOutcome
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
    "AcceptedAll": "runtime.registrations",
    "AgentRef": "runtime.run",
    "AskKind": "wire.words",
    "AskOutcome": "wire.words",
    "AssistantText": "runtime.text",
    "BranchTarget": "runtime.session_points",
    "CallAborted": "errors",
    "CallError": "errors",
    "CallTimedOut": "errors",
    "Change": "effects",
    "ChangeAction": "effects",
    "Clash": "runtime.merging",
    "ClosedError": "errors",
    "Code": "diagnostics",
    "CommandCancelled": "runtime.outcomes",
    "CommandFailed": "runtime.outcomes",
    "CommandInfo": "runtime.commands",
    "CommandOutcome": "runtime.outcomes",
    "Compaction": "runtime.run",
    "ConfigError": "errors",
    "Confirm": "runtime.session",
    "Conflict": "errors",
    "ContentBlock": "wire.from_extension",
    "Deadlines": "config",
    "Diagnostic": "diagnostics",
    "DiagnosticLog": "diagnostics",
    "Display": "runtime.outcomes",
    "DisposeCause": "effects",
    "DisposedHandle": "errors",
    "EffectKind": "effects",
    "EffectLedger": "effects",
    "EffectOwner": "effects",
    "EffectRecord": "effects",
    "EffectView": "effects",
    "Event": "hooks",
    "ExtensionExited": "errors",
    "ExtensionPolicy": "policy.extension_policy",
    "ExtensionRow": "runtime.status",
    "FollowUp": "runtime.follow_ups",
    "GuardAbsent": "errors",
    "HeadlessAsk": "policy.settings",
    "HookClass": "hooks",
    "HookEvent": "hooks",
    "Host": "runtime.host",
    "HostClient": "runtime.client",
    "HostConfig": "config",
    "HostError": "errors",
    "HostInstrument": "runtime.instrument",
    "HostTool": "runtime.tools",
    "InMemoryModelCatalogue": "runtime.models",
    "Input": "runtime.run_points",
    "Insert": "runtime.outcomes",
    "InvalidArguments": "errors",
    "LedgerError": "errors",
    "Limits": "config",
    "LoadError": "errors",
    "LoadReport": "runtime.status",
    "MalformedReply": "errors",
    "ManifestError": "errors",
    "Merged": "runtime.merging",
    "MissingScopeId": "errors",
    "ModelCatalogue": "runtime.models",
    "ModelRef": "runtime.host",
    "Noop": "runtime.outcomes",
    "OnFailure": "policy",
    "OpenPanel": "runtime.outcomes",
    "Outcome": "policy",
    "Overloaded": "errors",
    "OverrideDenied": "errors",
    "Panel": "runtime.panels",
    "PanelSpec": "wire.from_extension",
    "PayloadError": "errors",
    "PointPolicy": "policy.extension_policy",
    "Policy": "policy.policy",
    "PolicyError": "errors",
    "Progress": "runtime.tools",
    "Prompt": "runtime.outcomes",
    "ProtocolError": "errors",
    "ProvidedModel": "runtime.models",
    "Question": "runtime.questions",
    "Registration": "effects",
    "RegistrationRefused": "errors",
    "Registrations": "runtime.registrations",
    "Rejected": "runtime.outcomes",
    "ReloadFailure": "runtime.reload_report",
    "ReloadReport": "runtime.reload_report",
    "Reloaded": "errors",
    "RemoteError": "errors",
    "RestartPolicy": "policy.extension_policy",
    "Restarted": "runtime.reload_report",
    "Rule": "policy.rules",
    "Ruling": "policy.rules",
    "Run": "runtime.run",
    "RunContext": "runtime.run_points",
    "Scope": "effects",
    "ScopeBinding": "effects",
    "Session": "runtime.session",
    "SessionTarget": "runtime.session_points",
    "Severity": "diagnostics",
    "SimpleTool": "runtime.tools",
    "Step": "policy",
    "StepKind": "policy",
    "Success": "runtime.outcomes",
    "ToolCall": "runtime.toolcall",
    "ToolContext": "runtime.tools",
    "ToolInfo": "runtime.tools",
    "ToolPermission": "effects",
    "ToolPrompt": "runtime.outcomes",
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
    "AcceptedAll",
    "AgentRef",
    "AskKind",
    "AskOutcome",
    "AssistantText",
    "BranchTarget",
    "CallAborted",
    "CallError",
    "CallTimedOut",
    "Change",
    "ChangeAction",
    "Clash",
    "ClosedError",
    "Code",
    "CommandCancelled",
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
    "DisposeCause",
    "DisposedHandle",
    "EffectKind",
    "EffectLedger",
    "EffectOwner",
    "EffectRecord",
    "EffectView",
    "Event",
    "ExtensionExited",
    "ExtensionPolicy",
    "ExtensionRow",
    "FollowUp",
    "GuardAbsent",
    "HeadlessAsk",
    "HookClass",
    "HookEvent",
    "Host",
    "HostClient",
    "HostConfig",
    "HostError",
    "HostInstrument",
    "HostTool",
    "InMemoryModelCatalogue",
    "Input",
    "Insert",
    "InvalidArguments",
    "LedgerError",
    "Limits",
    "LoadError",
    "LoadReport",
    "MalformedReply",
    "ManifestError",
    "Merged",
    "MissingScopeId",
    "ModelCatalogue",
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
    "PointPolicy",
    "Policy",
    "PolicyError",
    "Progress",
    "Prompt",
    "ProtocolError",
    "ProvidedModel",
    "Question",
    "Registration",
    "RegistrationRefused",
    "Registrations",
    "Rejected",
    "ReloadFailure",
    "ReloadReport",
    "Reloaded",
    "RemoteError",
    "RestartPolicy",
    "Restarted",
    "Rule",
    "Ruling",
    "Run",
    "RunContext",
    "Scope",
    "ScopeBinding",
    "Session",
    "SessionTarget",
    "Severity",
    "SimpleTool",
    "Step",
    "StepKind",
    "Success",
    "ToolCall",
    "ToolContext",
    "ToolInfo",
    "ToolPermission",
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
