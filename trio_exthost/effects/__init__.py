"""Effects: what extensions may register, what they have registered, where it is active, how it is undone. Pure."""

from trio_exthost.effects.admission import (
    MAX_EFFECTS,
    REGISTRABLE,
    Admitted,
    KindRules,
    KindTable,
    Registrant,
    read_descriptor,
)
from trio_exthost.effects.answers import (
    CommandAnswer,
    CommandStatus,
    ToolAnswer,
    read_command_answer,
    read_tool_answer,
)
from trio_exthost.effects.descriptors import Command, Migration, PromptSection, RequestPolicy, Tool, ToolPermission
from trio_exthost.effects.descriptors_contribution import (
    CommandLink,
    Contribution,
    ContributionContent,
    DetailPanel,
    FormAction,
    Notification,
    NotificationLevel,
    StatusItem,
)
from trio_exthost.effects.descriptors_provider import Model, ModelInput, Provider, ProviderFormat
from trio_exthost.effects.descriptors_wire import Descriptor, to_wire
from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.ledger import EffectLedger
from trio_exthost.effects.permissions import PERMISSION_FAMILIES, PERMISSIONS, is_permission, may_override
from trio_exthost.effects.predicates import Predicate
from trio_exthost.effects.records import (
    Accepted,
    Change,
    ChangeAction,
    Disposal,
    DisposeCause,
    Disposed,
    EffectRecord,
    LedgerStatistics,
    Registration,
    Replaced,
    Updated,
)
from trio_exthost.effects.schemas import Schema, SchemaError, compile_schema
from trio_exthost.effects.scopes import EffectOwner, Realm, Scope, ScopeBinding
from trio_exthost.effects.view import EffectView
from trio_exthost.errors import (
    Conflict,
    DisposedHandle,
    LedgerError,
    MissingScopeId,
    OverrideDenied,
    RegistrationRefused,
    UnknownHandle,
)

__all__ = [
    "MAX_EFFECTS",
    "PERMISSIONS",
    "PERMISSION_FAMILIES",
    "REGISTRABLE",
    "Accepted",
    "Admitted",
    "Change",
    "ChangeAction",
    "Command",
    "CommandAnswer",
    "CommandLink",
    "CommandStatus",
    "Conflict",
    "Contribution",
    "ContributionContent",
    "Descriptor",
    "DetailPanel",
    "Disposal",
    "DisposeCause",
    "Disposed",
    "DisposedHandle",
    "EffectKind",
    "EffectLedger",
    "EffectOwner",
    "EffectRecord",
    "EffectView",
    "FormAction",
    "KindRules",
    "KindTable",
    "LedgerError",
    "LedgerStatistics",
    "Migration",
    "MissingScopeId",
    "Model",
    "ModelInput",
    "Notification",
    "NotificationLevel",
    "OverrideDenied",
    "Predicate",
    "PromptSection",
    "Provider",
    "ProviderFormat",
    "Realm",
    "Registrant",
    "Registration",
    "RegistrationRefused",
    "Replaced",
    "RequestPolicy",
    "Schema",
    "SchemaError",
    "Scope",
    "ScopeBinding",
    "StatusItem",
    "Tool",
    "ToolAnswer",
    "ToolPermission",
    "UnknownHandle",
    "Updated",
    "compile_schema",
    "is_permission",
    "may_override",
    "read_command_answer",
    "read_descriptor",
    "read_tool_answer",
    "to_wire",
]
