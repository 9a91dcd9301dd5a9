"""What can be told of a text that is not JSON, or not looked into: how it begins, and which call it was about.

A frame is never guessed out of the middle of a line. But the call whose answer was spoiled (by a print without a line
end, say) shall not wait for its deadline, so its type and id are looked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import attrs

SHOWN = 80
"""Characters of a bad text shown in a message."""
_LOOKED_AT = 64 * 1024
_TYPE = re.compile(rb'"type"[ \t]*:[ \t]*"([a-z_]{1,64})"')
# Ids of the host are decimal; anything else inside a broken text is not worth believing.
_ID = re.compile(rb'"id"[ \t]*:[ \t]*"([0-9]{1,20})"')


@attrs.frozen
class Glance:
    """Type and id as far as they could be seen."""

    frame_type: str | None = None
    frame_id: str | None = None


def glance(text: bytes, words: Collection[str], replies: Collection[str]) -> Glance:
    """Look for a known type and for the id of the call that the text answers.

    Args:
      text: Of which the first 64 KiB are looked at.
      words: Types to look for.
      replies: Those of them that answer a call. With another type the id is not given: an extension that prints the
        `tool_call` it was sent has not spoiled its answer.
    """
    text = text[:_LOOKED_AT]
    found = [match.group(1).decode() for match in _TYPE.finditer(text)]
    frame_type = next((word for word in found if word in words), None)
    id_match = _ID.search(text)
    is_reply = frame_type in replies if frame_type is not None else not found
    frame_id = id_match.group(1).decode() if id_match is not None and is_reply else None
    return Glance(frame_type, frame_id)


def show(text: bytes) -> str:
    """The first 80 characters, on one line: bytes that are not UTF-8 and characters that do not print as escapes."""
    decoded = text[: 4 * SHOWN].decode(errors="backslashreplace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in decoded[:SHOWN])
    return shown + "..." if len(decoded) > SHOWN or len(text) > 4 * SHOWN else shown


def invalid_utf8(text: bytes) -> str | None:
    """Where the text stops being UTF-8, with those bytes in hex; None if it is UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as exc:
        return f"invalid UTF-8 at byte {exc.start}: {text[exc.start : exc.start + 8].hex(' ')}"
    return None
