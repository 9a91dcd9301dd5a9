"""Why a program did not start, in words that name the way out.

The system's own words mislead: a script with Windows line ends is "no such file", one without a first line is an "exec
format error". So the file itself is looked at.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from trio_exthost.packages.files import chunks, is_directory, is_there, printable, reason_of
from trio_exthost.packages.resolve import is_executable_file

_BOM = b"\xef\xbb\xbf"
_BINARY_MAGIC = {
    b"\x7fELF": "Linux or another ELF system",
    b"\xcf\xfa\xed\xfe": "macOS",
    b"\xca\xfe\xba\xbe": "macOS",
    b"MZ": "Windows",
}
_SHELL_NOT_EXECUTABLE = 126
_SHELL_NOT_FOUND = 127


def explain_spawn_error(exc: OSError, argv: Sequence[str], directory: Path) -> str:
    """Why the system refused to start `argv` in `directory`: a sentence, and what to do.

    Args:
      exc: What the spawn raised.
      argv: As `resolve_exec` gave it; its first element is an absolute path.
      directory: The working directory that was asked for.
    """
    if not is_directory(directory):
        return f"the directory {printable(directory)} is not there any more"
    program = argv[0]
    shown = printable(program)
    if is_directory(program):
        return f"{shown} is a directory; exec must name a program"
    match exc.errno:
        case errno.EACCES:
            return _no_access(program)
        case errno.ENOENT:
            return _not_found(program)
        case errno.ENOEXEC:
            return _not_a_program(program)
        case errno.E2BIG:
            return f"{shown}: arguments and environment together are longer than the system takes"
        case _:
            return f"{shown} could not be started: {reason_of(exc)}"


def explain_exit(status: int, argv: Sequence[str], env_path: str | None) -> str:
    """What an exit right after the start probably means, or nothing.

    A script that begins with `#!/usr/bin/env python3` does start even where its interpreter is missing: it is `env`
    that then fails, with the statuses of a shell.

    Args:
      status: Exit status, a shell's 126 and 127 among them.
      argv: What was started.
      env_path: PATH that it ran with.
    """
    shown = printable(argv[0])
    words = _shebang(_first_line(argv[0]))
    if status > 0 and words and words[-1].endswith("\r"):
        return _windows_line_ends(argv[0])
    if status not in (_SHELL_NOT_EXECUTABLE, _SHELL_NOT_FOUND):
        return ""
    named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if words and Path(words[0]).name == "env" and named:
        return (
            f"{shown} asks for {printable(named[0])}, which is probably not installed or not on PATH "
            f"({printable(env_path or os.defpath)})"
        )
    return f"status {status} is what a shell says for a command that it cannot find or run"


def _no_access(program: str) -> str:
    shown = printable(program)
    try:
        os.stat(program)  # noqa: PTH116 - as the system takes it
    except OSError as exc:
        return f"{shown} cannot be reached: {reason_of(exc)}; check the permissions of the directories above it"
    if not is_executable_file(program):
        return f"{shown} is not executable; run: chmod +x {shlex.quote(program)}"
    words = _shebang(_first_line(program))
    if words and is_there(words[0]) and not is_executable_file(words[0]):
        return f"{shown} begins with #!{printable(words[0])}, and that is not executable"
    return f"{shown} may not be run by this user, or is on a file system mounted with noexec"


def _not_found(program: str) -> str:
    shown = printable(program)
    if not os.path.lexists(program):
        return f"{shown} does not exist; build the extension, or correct exec in its manifest"
    if not is_there(program):
        return f"{shown} is a broken link"
    line = _first_line(program)
    words = _shebang(line)
    if line.startswith(b"#!") and line.endswith(b"\r"):
        return _windows_line_ends(program)
    if words:
        return (
            f"{shown} begins with #!{printable(words[0])}, and there is no such program; install it or correct the line"
        )
    return f"{shown} is there, but the loader it needs is not: it was built for another system; build it on this one"


def _not_a_program(program: str) -> str:
    shown = printable(program)
    line = _first_line(program)
    system = next((system for magic, system in _BINARY_MAGIC.items() if line.startswith(magic)), None)
    if system:
        return f"{shown} is a program for {system}, but not for this machine ({os.uname().machine}); build it here"
    if line.startswith(_BOM + b"#!"):
        return f"{shown} has a byte order mark before its #!; save it without one"
    if not line and _is_empty(program):
        return f"{shown} is empty"
    return (
        f"{shown} has no #! line, so the system does not know what runs it; begin it with one, such as "
        "#!/usr/bin/env python3, or name the interpreter in exec and the file in args"
    )


def _windows_line_ends(program: str) -> str:
    return (
        f"{printable(program)} has Windows line ends, so its first line names an interpreter that ends in a carriage "
        f"return; run: perl -pi -e 's/\\r$//' {shlex.quote(program)}"
    )


def _is_empty(program: str) -> bool:
    try:
        return not os.stat(program).st_size  # noqa: PTH116 - as the system takes it
    except OSError:  # it has just gone, or may not be looked at
        return False


def _first_line(program: str) -> bytes:
    try:
        start = next(chunks(program), b"")
    except OSError:
        return b""
    return start[:1024].split(b"\n")[0]


def _shebang(line: bytes) -> list[str]:
    """The words of a `#!` line; the carriage return of a Windows line end stays on the last one."""
    if not line.startswith(b"#!"):
        return []
    return [os.fsdecode(word) for word in line[2:].replace(b"\t", b" ").split(b" ") if word]
