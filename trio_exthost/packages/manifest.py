"""`extension.json`: what an extension says about itself before it runs.

The keys that other hosts read too are read as they read them: unknown ones are ignored (a misspelt one gives a
warning), null is absent. Our own object `exthost` is strict inside: there a misspelt key would be a setting silently
not applied.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import attrs

from trio_exthost.effects.permissions import PERMISSION_FAMILIES, is_permission
from trio_exthost.effects.permissions import PERMISSIONS as PERMISSIONS  # noqa: PLC0414 - one of this module's names too
from trio_exthost.errors import ManifestError
from trio_exthost.packages.fields import Fields, did_you_mean, nearest, noun
from trio_exthost.packages.files import is_file, printable, read_regular, reason_of
from trio_exthost.packages.json_text import JsonTextError, parse_json, shown

MANIFEST_NAME = "extension.json"
"""The file that makes a directory an extension."""

_LIMIT_BYTES = 1024 * 1024
_LOOKED_AT = 100
"""Unknown keys that are looked at for a misspelling: that takes a while for each, and a file has room for 100,000."""
_NAME_CHARACTERS = 128
_NAME_BYTES = 200  # a log file is named after it, and file systems take 255 bytes
_TIMEOUT_MAXIMUM_S = 86_400
_RESULT_MAXIMUM_BYTES = 2**40
_PRIORITY_MAXIMUM = 1_000_000
_STATE_SCHEMA_MAXIMUM = 2**32 - 1
_KEYS = ("name", "version", "exec", "args", "language", "description", "enabled", "skills", "exthost")
_OTHER_HOSTS_KEYS = frozenset({"permissions", "config", "connector", "data_secrets", "personas", "lore", "themes"})
"""Known to relatives of this format, with a meaning of their own: no misspelling of ours."""


def _no_values(env: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}=..." for name in env) + "}"


def _frozen(env: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(env))


@attrs.frozen(kw_only=True)
class HostSection:
    """The object `exthost` of a manifest; all of it is optional."""

    dialect: str = "zot"
    """`zot` or `effects`: what it speaks unless its `hello` says more."""
    scope: str = "session"
    """Default scope of its effects: process, session, run or request."""
    priority: int = 0
    """Higher is asked first; -1,000,000 to 1,000,000."""
    permissions: tuple[str, ...] = ()
    """What it cannot work without."""
    optional_permissions: tuple[str, ...] = ()
    """What it uses if it may."""
    overrides: tuple[str, ...] = ()
    """Names of tools or commands it means to override; a wish, not a grant."""
    state_schema: int | None = None
    """Version of its durable state."""
    startup_timeout_s: float | None = None
    """Seconds it asks for until `hello`."""
    tool_timeout_s: float | None = None
    """Seconds it asks for per tool call; the operator's maximum cuts it."""
    tool_result_bytes: int | None = None
    """Bytes of text that a result of its tools may have; the operator's maximum cuts it."""
    env: Mapping[str, str] = attrs.field(factory=dict, converter=_frozen, repr=_no_values, hash=False)
    """Set in its environment. Not shown by `repr`: values may be secrets."""
    env_from: tuple[str, ...] = ()
    """Names of the host's environment variables that are let through to it."""
    on_failure: str | None = None
    """`block`: its failure blocks what it guards. A manifest can only tighten."""
    restart: str = "never"
    """`never` or `on_crash`."""
    adapter: str | None = None
    """Reserved: zot, effects, claude_hook or mcp."""
    watch_ignore: tuple[str, ...] = ()
    """Patterns (`state.json`, `*.db`, `out/*.js`) of what it writes into its own directory: `exthost dev` does not reload it
    for a change of those."""


_SECTION_KEYS = tuple(field.name for field in attrs.fields(HostSection))


@attrs.frozen(kw_only=True)
class Manifest:
    """What `extension.json` says, checked. It does not know in which directory it was found."""

    name: str
    """Its identity everywhere; one plain path element."""
    version: str = ""
    """Shown only."""
    exec: str = ""
    """What to run; empty for an extension of skills or themes only."""
    args: tuple[str, ...] = ()
    """Arguments after the program."""
    language: str = ""
    """Shown in start errors."""
    description: str = ""
    """Shown only."""
    enabled: bool = True
    """False: listed, never started."""
    skills: tuple[str, ...] = ()
    """Directories or SKILL.md files, relative, inside the extension."""
    exthost: HostSection = attrs.field(factory=HostSection)
    """Our own settings."""

    @property
    def static(self) -> bool:
        """There is nothing to run: skills or themes only."""
        return not self.exec


def load_manifest(directory: Path) -> tuple[Manifest, tuple[str, ...]]:
    """Read `extension.json` of a directory.

    Returns:
      The manifest, and warnings about it in the order of the file.

    Raises:
      ManifestError: It is not there, not readable, or not usable; says where.
    """
    path = directory / MANIFEST_NAME
    try:
        data = read_regular(path, _LIMIT_BYTES)
    except FileNotFoundError:
        hint = f"an extension is a directory with a file {MANIFEST_NAME}"
        raise ManifestError("no such file", path=printable(path), hint=hint) from None
    except OSError as exc:
        raise ManifestError(reason_of(exc), path=printable(path)) from exc
    themes = any(is_file(directory / theme) for theme in ("theme.json", "themes/theme.json"))
    manifest, warnings = parse_manifest(data, path=printable(path), themes=themes)
    inside = os.path.realpath(directory)
    for index, skill in enumerate(manifest.skills):
        if not Path(os.path.realpath(directory / skill)).is_relative_to(inside):
            _skill_escapes(printable(path), index, skill, manifest.name)
    return manifest, warnings


def parse_manifest(data: bytes, *, path: str = MANIFEST_NAME, themes: bool = False) -> tuple[Manifest, tuple[str, ...]]:
    """Check the bytes of an `extension.json`, touching no file.

    Args:
      data: UTF-8; one leading byte order mark and CRLF are accepted.
      path: Named in errors.
      themes: The directory holds a theme, so that `exec` is not needed.

    Raises:
      ManifestError: It is not usable; `where` is line and column, or the path of a key.
    """
    try:
        value = parse_json(data)
    except JsonTextError as exc:
        raise ManifestError(exc.message, path=path, where=exc.where) from None
    if not isinstance(value, dict):
        raise ManifestError(f"must be an object, not {noun(value)}", path=path, where="$")
    fields = Fields(value, path=path, lenient=True)
    fields.extension = name = _name(fields)
    section = _section(value["exthost"], path, name) if "exthost" in value else HostSection()
    skills = fields.texts("skills")
    for index, skill in enumerate(skills):
        if not skill:
            fields.fail(f"$.skills[{index}]", "must not be empty")
        if Path(skill).is_absolute() or os.path.normpath(skill).split("/")[0] == "..":
            _skill_escapes(path, index, skill, name)
    manifest = Manifest(
        name=name, version=fields.text("version"), exec=fields.argument("exec"), args=fields.texts("args"),
        language=fields.text("language"), description=fields.text("description"),
        enabled=fields.flag("enabled", default=True), skills=skills, exthost=section,
    )  # fmt: skip
    if manifest.static and not (skills or themes):
        fields.fail("$.exec", "is missing", _near_miss(fields, "exec") or "name the program to run")
    return manifest, tuple(_warnings(fields))


def _name(fields: Fields) -> str:
    if not fields.has("name"):
        fields.fail("$.name", "is missing", _near_miss(fields, "name"))
    name = fields.text("name")
    if wrong := _wrong_name(name):
        fields.fail("$.name", f"{wrong}, and {shown(name)} is not usable", "use a plain word")
    return name


def _wrong_name(name: str) -> str:
    """Why this cannot be a name, or nothing: it names log files and rows on a screen."""
    if name in ("", ".", "..") or "/" in name:
        return "must be one plain path element"
    if name != name.strip():
        return "must not begin or end with a space"
    if any(unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp") for each in name):
        return "must hold no control character"
    if len(name) > _NAME_CHARACTERS or len(name.encode()) > _NAME_BYTES:
        return f"must have at most {_NAME_CHARACTERS} characters and {_NAME_BYTES} bytes"
    return ""


def _near_miss(fields: Fields, key: str) -> str:
    """A hint, if one of the unknown keys was probably meant to be `key`."""
    guilty = next((each for each in fields.unknown(_KEYS)[:_LOOKED_AT] if nearest(each, (key,))), None)
    return f"there is {shown(guilty)}; did you mean {key}?" if guilty else ""


def _warnings(fields: Fields) -> list[str]:
    result: list[str] = []
    for key in fields.unknown(_KEYS)[:_LOOKED_AT]:
        if key in _OTHER_HOSTS_KEYS:
            continue
        meant = nearest(key, _KEYS)
        if meant is None and (ours := nearest(key, _SECTION_KEYS)):
            meant = f"exthost.{ours}"
        if meant:
            result.append(f"{fields.at(key)} is not known and has no effect; did you mean {meant}?")
    return result


def _skill_escapes(path: str, index: int, skill: str, name: str) -> None:
    message = f"{shown(skill)} must stay inside the extension's directory"
    raise ManifestError(message, path=path, where=f"$.skills[{index}]", extension=name)


def _section(value: object, path: str, name: str) -> HostSection:
    fields = Fields({"exthost": value}, path=path, extension=name, lenient=False)
    ours = Fields(fields.mapping("exthost"), path=path, at="$.exthost", extension=name, lenient=False)
    for key in ours.unknown(_SECTION_KEYS):
        ours.fail(ours.at(key), "is not known here", did_you_mean(key, _SECTION_KEYS))
    required = _permissions(ours, "permissions")
    optional = _permissions(ours, "optional_permissions")
    needed = frozenset(required)
    for index, word in enumerate(optional):
        if word in needed:
            ours.fail(f"$.exthost.optional_permissions[{index}]", f"{shown(word)} is in permissions too")
    env_from = ours.distinct("env_from")
    for index, variable in enumerate(env_from):
        ours.check_env_name(variable, f"$.exthost.env_from[{index}]")
    return HostSection(
        dialect=ours.choice("dialect", ("zot", "effects")) or "zot",
        scope=ours.choice("scope", ("process", "session", "run", "request")) or "session",
        priority=ours.whole("priority", -_PRIORITY_MAXIMUM, _PRIORITY_MAXIMUM) or 0,
        permissions=required,
        optional_permissions=optional,
        overrides=ours.distinct("overrides"),
        state_schema=ours.whole("state_schema", 1, _STATE_SCHEMA_MAXIMUM),
        startup_timeout_s=ours.seconds("startup_timeout_s", _TIMEOUT_MAXIMUM_S),
        tool_timeout_s=ours.seconds("tool_timeout_s", _TIMEOUT_MAXIMUM_S),
        tool_result_bytes=ours.whole("tool_result_bytes", 1, _RESULT_MAXIMUM_BYTES),
        env=ours.environment("env"),
        env_from=env_from,
        on_failure=ours.choice("on_failure", ("block",)),
        restart=ours.choice("restart", ("never", "on_crash")) or "never",
        adapter=ours.choice("adapter", ("zot", "effects", "claude_hook", "mcp")),
        watch_ignore=ours.distinct("watch_ignore"),
    )


def _permissions(fields: Fields, key: str) -> tuple[str, ...]:
    words = fields.distinct(key)
    for index, word in enumerate(words):
        if not is_permission(word):
            where = f"{fields.at(key)}[{index}]"
            hint = did_you_mean(word, (*PERMISSIONS, *PERMISSION_FAMILIES))
            fields.fail(where, f"{shown(word)} is no permission", hint)
    return words
