"""Descriptors: what an extension says of the tool, command, prompt section, request policy or migration it registers."""

from __future__ import annotations

import enum

import attrs

from trio_exthost.effects.descriptors_fields import Fields
from trio_exthost.effects.predicates import ANY, Predicate, read_predicate
from trio_exthost.effects.schemas import Schema, compile_schema
from trio_exthost.effects.scopes import Scope

_SCOPES = tuple(scope.word for scope in Scope)


class ToolPermission(enum.StrEnum):
    """Whether a tool may run when the model asks for it."""

    ALLOW = "allow"
    """It runs, if no guard objects."""
    PROMPT = "prompt"
    """The user is asked first."""
    BLOCK = "block"
    """It never runs."""


@attrs.frozen(kw_only=True)
class Tool:
    """A tool of the model's."""

    name: str
    """What the model calls: 1-128 of A-Z a-z 0-9 . - _"""
    label: str
    """What the user reads."""
    description: str
    """What the model reads."""
    input_schema: Schema
    """What its arguments must match."""
    result_schema: Schema | None = None
    """What `structured_content` of its result must match; None for anything."""
    permission: ToolPermission = ToolPermission.ALLOW
    """Whether it may run."""
    scope: Scope = Scope.SESSION
    """How far it reaches."""
    override: bool = False
    """Whether it takes the place of a tool of that name."""


@attrs.frozen(kw_only=True)
class Command:
    """A command of the user's."""

    name: str
    """What the user types, without the slash: 1-64 of a-z 0-9 and - (not at the ends)."""
    description: str
    """What the user reads."""
    argument_schema: Schema
    """What its arguments must match; always an object."""
    label: str = ""
    """A short title; empty for the name."""
    availability: Predicate = ANY
    """When it can be run."""
    scope: Scope = Scope.SESSION
    """How far it reaches."""
    override: bool = False
    """Whether it takes the place of a command of that name."""


@attrs.frozen(kw_only=True)
class PromptSection:
    """A piece of the system prompt."""

    section_id: str
    """Its name."""
    text: str
    """What is appended, as it stands."""
    priority: int = 0
    """Higher comes first; the same priority, in order of registration."""
    predicate: Predicate = ANY
    """When it is in."""
    scope: Scope = Scope.SESSION
    """How far it reaches."""


@attrs.frozen(kw_only=True)
class RequestPolicy:
    """Is shown every request to the model, and may return another."""

    policy_id: str
    """Its name."""
    priority: int = 0
    """Higher is asked first; the same priority, in order of registration."""
    predicate: Predicate = ANY
    """When it is asked."""
    scope: Scope = Scope.SESSION
    """How far it reaches."""


@attrs.frozen(kw_only=True)
class Migration:
    """Brings the extension's stored state from an older schema to that of its manifest. It has nothing to say itself."""

    scope: Scope = Scope.SESSION
    """That of the manifest: a migration has no scope of its own."""


def read_scope(fields: Fields, default: Scope) -> Scope:
    """`scope`: that of the manifest by default."""
    return Scope[fields.choice("scope", _SCOPES, default.word).upper()]


def read_schema(fields: Fields, key: str) -> Schema:
    """The JSON Schema under a key that must be there."""
    return compile_schema(fields.value(key), at=fields.at(key), extension=fields.extension)


def read_object_schema(fields: Fields, key: str) -> Schema:
    """The same, where true and false will not do: what it describes is filled in field by field."""
    schema = read_schema(fields, key)
    if isinstance(schema.raw, bool):
        fail = "must be a schema that is an object, not true or false"
        fields.fail(fields.at(key), fail, hint='{"type": "object"} takes any object')
    return schema


def read_tool(raw: object, extension: str, scope: Scope) -> Tool:
    """A tool's descriptor; as every reader here.

    Args:
      raw: As received.
      extension: Whose it is.
      scope: Of the manifest, for a descriptor that names none.

    Raises:
      RegistrationRefused: It is not one; says which field, and why.
    """
    fields = Fields(raw, keys_of(Tool), extension=extension)
    return Tool(
        name=fields.name("name"),
        label=fields.text("label"),
        description=fields.text("description"),
        input_schema=read_schema(fields, "input_schema"),
        result_schema=read_schema(fields, "result_schema") if fields.has("result_schema") else None,
        permission=ToolPermission(fields.choice("permission", tuple(ToolPermission), ToolPermission.ALLOW)),
        scope=read_scope(fields, scope),
        override=fields.flag("override"),
    )


def read_command(raw: object, extension: str, scope: Scope) -> Command:
    """A command's descriptor; see `read_tool`."""
    fields = Fields(raw, keys_of(Command), extension=extension)
    return Command(
        name=fields.command_name("name"),
        label=fields.optional_text("label") or "",
        description=fields.text("description"),
        argument_schema=read_object_schema(fields, "argument_schema"),
        availability=read_predicate(fields, "availability"),
        scope=read_scope(fields, scope),
        override=fields.flag("override"),
    )


def read_prompt_section(raw: object, extension: str, scope: Scope) -> PromptSection:
    """A prompt section's descriptor; see `read_tool`."""
    fields = Fields(raw, keys_of(PromptSection), extension=extension)
    return PromptSection(
        section_id=fields.name("section_id"),
        text=fields.text("text"),
        priority=fields.priority(),
        predicate=read_predicate(fields, "predicate"),
        scope=read_scope(fields, scope),
    )


def read_request_policy(raw: object, extension: str, scope: Scope) -> RequestPolicy:
    """A request policy's descriptor; see `read_tool`."""
    fields = Fields(raw, keys_of(RequestPolicy), extension=extension)
    return RequestPolicy(
        policy_id=fields.name("policy_id"),
        priority=fields.priority(),
        predicate=read_predicate(fields, "predicate"),
        scope=read_scope(fields, scope),
    )


def read_migration(raw: object, extension: str, scope: Scope) -> Migration:
    """A migration's descriptor, an empty object; see `read_tool`."""
    Fields(raw, (), extension=extension)
    return Migration(scope=scope)


def keys_of(kind: type[attrs.AttrsInstance]) -> tuple[str, ...]:
    """The keys that a descriptor of this class may have."""
    return tuple(field.name for field in attrs.fields(kind))
