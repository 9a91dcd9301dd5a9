"""The descriptor of a provider of models."""

from __future__ import annotations

import enum
import re
from urllib.parse import urlsplit

import attrs

from trio_exthost.effects.descriptors import keys_of, read_scope
from trio_exthost.effects.descriptors_fields import Fields
from trio_exthost.effects.permissions import is_secret_name
from trio_exthost.effects.scopes import Scope

MAX_MODELS = 256
"""Models of one provider; there is at least one."""
MAX_TOKENS = 2**32 - 1
"""A number of tokens is from 1 to this."""

_UNUSABLE = re.compile(r"[\x00-\x20\x7f\\]")


class ProviderFormat(enum.StrEnum):
    """The API that a provider speaks."""

    OPENAI_CHAT_COMPLETIONS = "openai_chat_completions"
    """OpenAI's Chat Completions."""
    OPENAI_RESPONSES = "openai_responses"
    """OpenAI's Responses."""
    ANTHROPIC_MESSAGES = "anthropic_messages"
    """Anthropic's Messages."""


class ModelInput(enum.StrEnum):
    """What a model can be shown."""

    TEXT = "text"
    """Text."""
    IMAGE = "image"
    """Images."""


@attrs.frozen(kw_only=True)
class Model:
    """One model of a provider."""

    id: str
    """What the provider calls it: 1-128 of A-Z a-z 0-9 . - _"""
    name: str
    """What the user reads."""
    context_window: int
    """Tokens it can be given, its answer included."""
    max_tokens: int
    """Tokens of one answer; at most `context_window`."""
    reasoning: bool = False
    """Whether it can be told how much to think."""
    input: tuple[ModelInput, ...] = (ModelInput.TEXT,)
    """What it can be shown; at least one thing."""


@attrs.frozen(kw_only=True)
class Provider:
    """A provider of models."""

    provider_id: str
    """Its name."""
    base_url: str
    """Where it is reached: http or https, with a host."""
    format: ProviderFormat
    """The API it speaks."""
    models: tuple[Model, ...]
    """Its models, no id twice."""
    credential_ref: str | None = None
    """Name of the secret it needs, or None."""
    scope: Scope = Scope.SESSION
    """How far it reaches."""


def read_provider(raw: object, extension: str, scope: Scope) -> Provider:
    """A provider's descriptor.

    Args:
      raw: As received.
      extension: Whose it is.
      scope: Of the manifest, for a descriptor that names none.

    Raises:
      RegistrationRefused: It is not one; says which field, and why.
    """
    fields = Fields(raw, keys_of(Provider), extension=extension)
    credential = None
    if fields.has("credential_ref"):
        wanted = "the name of a secret, 1 to 128 of A-Z a-z 0-9 . - _ (letter or digit at both ends)"
        credential = fields.matching("credential_ref", is_secret_name, wanted)
    return Provider(
        provider_id=fields.name("provider_id"),
        base_url=_read_url(fields, "base_url"),
        format=ProviderFormat(fields.choice("format", tuple(ProviderFormat))),
        credential_ref=credential,
        models=_read_models(fields, "models"),
        scope=read_scope(fields, scope),
    )


def _read_url(fields: Fields, key: str) -> str:
    url = fields.text(key)
    if not _is_web_address(url):
        fields.fail(fields.at(key), "must be an address that begins with http:// or https:// and has a host")
    return url


def _is_web_address(url: str) -> bool:
    """Whether every reader of addresses sees the same host in it; a blank or a backslash is read in different ways."""
    if _UNUSABLE.search(url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def _read_models(parent: Fields, key: str) -> tuple[Model, ...]:
    found: dict[str, Model] = {}
    for fields in parent.objects(key, 1, MAX_MODELS, keys_of(Model)):
        model = _read_model(fields)
        if model.id in found:
            fields.fail(fields.at("id"), f"there is a model {model.id!r} before this one")
        found[model.id] = model
    return tuple(found.values())


def _read_model(fields: Fields) -> Model:
    context_window = fields.whole("context_window", 1, MAX_TOKENS)
    return Model(
        id=fields.name("id"),
        name=fields.text("name"),
        reasoning=fields.flag("reasoning"),
        input=tuple(map(ModelInput, fields.words("input", tuple(ModelInput))))
        if fields.has("input")
        else (ModelInput.TEXT,),
        context_window=context_window,
        max_tokens=fields.whole("max_tokens", 1, context_window),
    )
