"""Reading a file that somebody else put there: regular, bounded, never blocking."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

_CHUNK_BYTES = 256 * 1024


def read_regular(path: str | os.PathLike[str], limit_bytes: int) -> bytes:
    """The whole content of a regular file (links are followed).

    Raises:
      OSError: It is not there, not readable, not a regular file (EINVAL), or longer than `limit_bytes` (EFBIG).
    """
    pieces: list[bytes] = []
    size = 0
    for piece in chunks(path):
        size += len(piece)
        if size > limit_bytes:
            raise OSError(errno.EFBIG, f"is longer than {limit_bytes} bytes", os.fspath(path))
        pieces.append(piece)
    return b"".join(pieces)


def chunks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The content of a regular file, piece by piece.

    Raises:
      OSError: As `read_regular`.
    """
    # Without O_NONBLOCK, opening a FIFO named extension.json would wait for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(descriptor, "rb", buffering=0) as stream:  # noqa: PTH123 - a descriptor has no path
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
            raise OSError(errno.EINVAL, f"is {what}", os.fspath(path))
        while piece := stream.read(_CHUNK_BYTES):
            yield piece


# The methods of Path that ask the same raise, before Python 3.14, what they do not take for an answer: that a directory
# above may not be looked into, that a name is too long, that it holds NUL. To whoever asks here each of them is a no.


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether it is certainly a directory (links are followed); never raises."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether it is certainly a regular file (links are followed); never raises."""
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_link(path: str | os.PathLike[str]) -> bool:
    """Whether it is certainly a symbolic link; never raises."""
    return os.path.islink(path)  # noqa: PTH114 - see above


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether something certainly is there (links are followed); never raises."""
    return os.path.exists(path)  # noqa: PTH110 - see above


def printable(text: str | os.PathLike[str]) -> str:
    """A path or name of the file system as text that can be encoded and shown: bad bytes and controls escaped."""
    decoded = os.fsencode(text).decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in decoded)


def reason_of(exc: OSError) -> str:
    """Why the system refused, without the path (the caller's message has it)."""
    return exc.strerror or str(exc)
