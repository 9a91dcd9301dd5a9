"""The descriptor of a contribution: something the embedder's client shows for an extension."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs

from trio_exthost.effects.descriptors import keys_of, read_object_schema, read_scope
from trio_exthost.effects.descriptors_fields import Fields, shown
from trio_exthost.effects.schemas import Schema
from trio_exthost.effects.scopes import Scope


class NotificationLevel(enum.StrEnum):
    """How a notification is meant."""

    INFO = "info"
    """For information."""
    SUCCESS = "success"
    """Something worked."""
    WARNING = "warning"
    """Something may be wrong."""
    ERROR = "error"
    """Something is wrong."""


@attrs.frozen(kw_only=True)
class Notification:
    """A message to the user."""

    level: NotificationLevel
    """How it is meant."""
    title: str
    """Its heading."""
    body: str
    """What it says."""


@attrs.frozen(kw_only=True)
class StatusItem:
    """A value that is always in sight."""

    label: str
    """What it is."""
    value: str
    """What it is now."""
    detail: str | None = None
    """More, for who looks closer."""


@attrs.frozen(kw_only=True)
class CommandLink:
    """A way to run a command, such as a button. The wire's word for it is `command`."""

    command: str
    """Name of the command, without the slash."""


@attrs.frozen(kw_only=True)
class DetailPanel:
    """Data to look at."""

    title: str
    """Its heading."""
    data: dict[str, Any] | list[Any] = attrs.field(hash=False)
    """JSON. A copy of its own that all readers share: not to be changed."""


@attrs.frozen(kw_only=True)
class FormAction:
    """A form that runs a command when it is sent."""

    title: str
    """Its heading."""
    schema: Schema
    """What is filled in; always an object."""
    submit_command: str
    """Name of the command, without the slash; it is given what was filled in."""


ContributionContent: TypeAlias = Notification | StatusItem | CommandLink | DetailPanel | FormAction


@attrs.frozen(kw_only=True)
class Contribution:
    """Something the client shows."""

    contribution_id: str
    """Its name."""
    extension_id: str
    """Whose it is."""
    contribution: ContributionContent
    """What is shown."""
    scope: Scope = Scope.SESSION
    """How far it reaches."""


def read_contribution(raw: object, extension: str, scope: Scope) -> Contribution:
    """A contribution's descriptor.

    Args:
      raw: As received; `extension_id` may be left out.
      extension: Whose it is.
      scope: Of the manifest, for a descriptor that names none.

    Raises:
      RegistrationRefused: It is not one; says which field, and why.
    """
    fields = Fields(raw, keys_of(Contribution), extension=extension)
    if fields.has("extension_id") and (named := fields.string("extension_id")) != extension:
        fields.fail(fields.at("extension_id"), f"must be the extension's own, not {shown(named)}", hint="leave it out")
    return Contribution(
        contribution_id=fields.name("contribution_id"),
        extension_id=extension,
        contribution=_read_content(fields),
        scope=read_scope(fields, scope),
    )


def _read_content(parent: Fields) -> ContributionContent:
    key = "contribution"
    every = {name: None for _, kind, _ in _CONTENTS for name in keys_of(kind)}
    kind = parent.within(key, ("kind", *every)).choice("kind", tuple(word for word, _, _ in _CONTENTS))
    of_class, read = next((of_class, read) for word, of_class, read in _CONTENTS if word == kind)
    return read(parent.within(key, ("kind", *keys_of(of_class))))


def _read_notification(fields: Fields) -> Notification:
    level = NotificationLevel(fields.choice("level", tuple(NotificationLevel)))
    return Notification(level=level, title=fields.text("title"), body=fields.text("body"))


def _read_status_item(fields: Fields) -> StatusItem:
    return StatusItem(label=fields.text("label"), value=fields.text("value"), detail=fields.optional_text("detail"))


def _read_command_link(fields: Fields) -> CommandLink:
    return CommandLink(command=fields.command_name("command"))


def _read_detail_panel(fields: Fields) -> DetailPanel:
    return DetailPanel(title=fields.text("title"), data=fields.data("data"))


def _read_form_action(fields: Fields) -> FormAction:
    return FormAction(
        title=fields.text("title"),
        schema=read_object_schema(fields, "schema"),
        submit_command=fields.command_name("submit_command"),
    )


_CONTENTS: tuple[tuple[str, type[Any], Callable[[Fields], ContributionContent]], ...] = (
    ("notification", Notification, _read_notification),
    ("status_item", StatusItem, _read_status_item),
    ("command", CommandLink, _read_command_link),
    ("detail_panel", DetailPanel, _read_detail_panel),
    ("form_action", FormAction, _read_form_action),
)

CONTRIBUTION_KINDS: Mapping[type[Any], str] = MappingProxyType({kind: word for word, kind, _ in _CONTENTS})
"""The wire's word for each class of content; `contribution.kind` holds it."""
