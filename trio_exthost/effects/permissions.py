"""Permissions: the words, what each kind of registration needs, and who may override what."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from trio_exthost.effects.kinds import EffectKind

PERMISSIONS = (
    "session.write", "tools.register", "tools.override", "commands.register", "providers.register", "client.contribute",
    "workspace.read", "workspace.write", "process.spawn", "network.connect", "provider.raw",
)  # fmt: skip
"""The plain words; beside them stand the two families of `PERMISSION_FAMILIES`."""

PERMISSION_FAMILIES = ("secrets.read:<name>", "tools.override:<name>")
"""Words with a name in them: one secret, and overriding one tool or command. There is no wildcard."""

OVERRIDE = "tools.override"
"""Overriding any tool or command; `tools.override:<name>` is that one only."""

REGISTRATION_NEEDS: Mapping[EffectKind, str] = MappingProxyType(
    {
        EffectKind.TOOL: "tools.register",
        EffectKind.COMMAND: "commands.register",
        EffectKind.PROVIDER: "providers.register",
        EffectKind.CONTRIBUTION: "client.contribute",
        EffectKind.MIGRATION: "session.write",
    }
)
"""The word without which a kind cannot be registered. Kinds that are not in here need none.

A provider with a `credential_ref` needs `secrets.read:<ref>` as well, and an override the grant that `may_override` asks
for.
"""

_SECRET_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


def is_name(text: str) -> bool:
    """Whether this can name a tool, a provider, a model or another registered thing: 1-128 of A-Z a-z 0-9 . - and _."""
    return _NAME.fullmatch(text) is not None


def is_secret_name(text: str) -> bool:
    """Whether this can name a secret: 1-128 of A-Z a-z 0-9 . - _, a letter or digit at both ends."""
    return _SECRET_NAME.fullmatch(text) is not None


def is_permission(word: str) -> bool:
    """Whether there is such a permission."""
    family, colon, name = word.partition(":")
    if not colon:
        return word in PERMISSIONS
    return (family == "secrets.read" and is_secret_name(name)) or (family == OVERRIDE and is_name(name))


def secret_permission(name: str) -> str:
    """The word that lets an extension use the secret of this name."""
    return f"secrets.read:{name}"


def may_override(name: str, grants: Collection[str]) -> bool:
    """Whether these grants let an extension override the tool or the command of this name.

    Args:
      name: As it is registered; compared as it stands.
      grants: Words the operator granted. What an extension asks for in its manifest is no grant.
    """
    return OVERRIDE in grants or f"{OVERRIDE}:{name}" in grants
