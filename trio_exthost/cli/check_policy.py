"""What an operator's policy makes of the extension that `exthost check` looks at."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from trio_exthost.cli.text import Output
from trio_exthost.config import HostConfig
from trio_exthost.errors import PolicyError
from trio_exthost.packages import Manifest
from trio_exthost.policy import Declared, MemberKind, Policy, PolicyRow, effective_view
from trio_exthost.policy.policy_file import load_policy


class _PolicyRefused(click.ClickException):
    """A policy that cannot be used: with it the call is wrong, before anything is run."""

    exit_code = 2


def read_policy(path: Path) -> Policy:
    """The policy in a file.

    Raises:
      ClickException: With status 2; names the file, and the line or key of each mistake.
    """
    try:
        return load_policy(path)
    except PolicyError as exc:
        raise _PolicyRefused(f"the policy cannot be used: {exc}") from exc


def declared(manifest: Manifest | None, points: Collection[str]) -> Declared:
    """What the extension says itself: its manifest, if it can be read, and the points where it is asked."""
    if manifest is None:
        return Declared()
    section = manifest.exthost
    kinds: Any = dict.fromkeys(points, MemberKind.INTERCEPTOR)  # mypy cannot tell what the field's converter takes
    return Declared(blocks=section.on_failure == "block", restart=section.restart, points=kinds)


def policy_facts(
    path: Path, policy: Policy, name: str, said: Declared, config: HostConfig, names: Collection[str]
) -> dict[str, Any]:
    """The rows in force for all and for one extension, and which other extensions the policy speaks of.

    Args:
      path: Where the policy is from.
      policy: What the operator says.
      name: The extension.
      said: What it says itself.
      config: The host's configuration.
      names: Of its tools and commands: who gets those is about it, too.
    """
    rows = effective_view(policy, {name: said}, deadlines=config.deadlines, text_stream=config.text_stream)
    return {
        "file": str(path),
        "rows": [attrs.asdict(row) for row in rows if _is_about(row, name, names)],
        "named": name in policy.extensions,
        "others": list(policy.unknown_extensions([name])),
    }


def _is_about(row: PolicyRow, name: str, names: Collection[str]) -> bool:
    if row.extension in ("", name):
        return True
    return row.setting == "prefer" and row.point.rpartition(":")[2] in names


def show_policy(out: Output, facts: Mapping[str, Any]) -> None:
    """Print what `policy_facts` gave: each setting with its value, and the rule and key that it rests on."""
    said = "" if facts["named"] else ", which does not speak of this extension by name"
    out.line(f"{facts['file']}{said}", first="  policy ")
    for row in facts["rows"]:
        words = (
            [row["extension"], row["point"], row["setting"]] if row["setting"] != "prefer" else ["prefer", row["point"]]
        )
        where = f": {row['where']}" if row["where"] else ""
        out.line(f"{' '.join(filter(None, words))}: {_value(row['value'])} [{row['rule']}{where}]", first="    ")
    if facts["others"]:
        out.line(f"extensions it speaks of besides: {', '.join(facts['others'])}", first="    ")


def _value(value: str | float | bool | tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(value)
    return value if isinstance(value, str) else f"{value:g}"
