"""From a manifest to what is handed to the operating system: program, arguments, environment."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from trio_exthost.config import ENV_ALLOWED
from trio_exthost.errors import LoadError
from trio_exthost.packages.files import printable
from trio_exthost.packages.manifest import Manifest

_ALLOWED_PREFIXES = ("LC_", "XDG_")


def resolve_exec(manifest: Manifest, directory: Path, env_path: str | None) -> list[str]:
    """The command line: `exec` as an absolute path, then `args`.

    An absolute `exec` is taken as it is. One with a separator is relative to the extension's directory and must stay in
    it (a link in there may point elsewhere, as a virtual environment's interpreter does). A bare word is looked up in
    the PATH that the extension gets; the current directory is never searched, even where PATH names it.

    Args:
      manifest: Not a static one.
      directory: The extension's directory, absolute.
      env_path: PATH of the environment the extension will run in; None where it has none.

    Raises:
      LoadError: It is outside the directory (`exec_outside`), or not on PATH (`exec_not_found`).
    """
    program = manifest.exec
    if Path(program).is_absolute():
        return [program, *manifest.args]
    if "/" not in program and program not in (".", ".."):
        return [_search(program, os.defpath if env_path is None else env_path, manifest), *manifest.args]
    # Normalised, because the system would follow a link in "link/../x" and end elsewhere than what is checked here.
    path = os.path.normpath(directory / program)
    if not Path(path).is_relative_to(os.path.normpath(directory)):
        raise LoadError(
            f"exec {program!r} is outside the extension's directory {printable(directory)}",
            extension=manifest.name, stage="spawn", code="exec_outside",
            hint="put the program into the directory, or name it by an absolute path or a bare word on PATH",
        )  # fmt: skip
    return [path, *manifest.args]


def _search(word: str, env_path: str, manifest: Manifest) -> str:
    not_executable = ""
    for folder in filter(os.path.isabs, env_path.split(os.pathsep)):
        candidate = os.path.join(folder, word)  # noqa: PTH118 - Path would drop what the system keeps
        if is_executable_file(candidate) and os.access(candidate, os.X_OK):
            return candidate
        if not not_executable and os.path.isfile(candidate):  # noqa: PTH113 - as above
            not_executable = candidate
    found = f"{printable(not_executable)} is there but not executable; " if not_executable else ""
    language = f" (language: {manifest.language})" if manifest.language else ""
    raise LoadError(
        f"exec {word!r}{language} was not found; {found}PATH searched: {printable(env_path) or '(empty)'}",
        extension=manifest.name, stage="spawn", code="exec_not_found",
        hint=f"it is not installed, or not on the PATH of this process; for a file of the extension write ./{word}",
    )  # fmt: skip


def child_environment(
    host_environ: Mapping[str, str],
    manifest: Manifest,
    config_env: Mapping[str, str],
    *,
    inherit: bool = False,
    pycache_dir: Path | None = None,
) -> dict[str, str]:
    """The environment of an extension's process.

    Later wins: the allow-list of the host's environment (or all of it), what the manifest lets through by name, the
    operator's, the manifest's own. `PYTHONUNBUFFERED=1` is set where none of them says otherwise: Python would
    keep answers in its buffer when it writes to a pipe.

    Args:
      host_environ: Usually `os.environ`.
      manifest: Whose `exthost.env_from` and `exthost.env` count.
      config_env: `HostConfig.env`.
      inherit: `HostConfig.inherit_env`: pass everything on.
      pycache_dir: Where Python is to keep compiled modules unless the above say otherwise. The `__pycache__` of a
        directory is not covered by its digest, so what is trusted by digest must not run from it.
    """
    section = manifest.exthost
    result = {"PYTHONUNBUFFERED": "1"}
    if pycache_dir is not None:
        result["PYTHONPYCACHEPREFIX"] = os.fspath(pycache_dir)
    let_through = {*ENV_ALLOWED, *section.env_from}
    result |= {
        name: value
        for name, value in host_environ.items()
        if inherit or name in let_through or name.startswith(_ALLOWED_PREFIXES)
    }
    return {**result, **config_env, **section.env}


def is_executable_file(path: str) -> bool:
    """Whether any execute bit is set on a regular file; `os.access` lets root pass without, on some systems."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as the system takes it
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)
