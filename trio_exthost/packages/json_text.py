"""JSON as people write it by hand: bytes to values, with each mistake located.

Stricter than the standard library where silence would hide a mistake (a key that stands twice, NaN, UTF-16), and kind
to what editors add (one byte order mark, CRLF).
"""

from __future__ import annotations

import json
import re

SHOWN_CHARACTERS = 128
"""Of a text of the file that a message shows; a file may hold one of a megabyte."""
_PATH_CHARACTERS = 1000
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class JsonTextError(ValueError):
    """The text is not usable JSON; `where` is `line 3, column 7` or a key path, or empty."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where


class _Object(dict[str, object]):
    """A JSON object that remembers the first key that stood twice in it."""

    twice: str | None = None


def parse_json(data: bytes) -> object:
    """The value in `data`: UTF-8, one leading byte order mark and CRLF accepted.

    Raises:
      JsonTextError: It is anything else.
    """
    text = _decode(data)
    if not text.strip():
        raise JsonTextError("the file is empty")
    try:
        value: object = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as exc:
        raise JsonTextError(_syntax_message(exc), f"line {exc.lineno}, column {exc.colno}") from None
    except RecursionError:
        raise JsonTextError("the values are nested too deeply") from None
    except JsonTextError:
        raise
    except ValueError:
        raise JsonTextError("a number has too many digits") from None
    _refuse_duplicates(value)
    return value


def shown(text: str) -> str:
    """A text in quotes, one of great length only begun."""
    return json.dumps(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "...")


def key_path(at: str, key: str) -> str:
    """The path of `key` in the object at `at`: `$.exthost.priority`, or `$["a b"]` where a dot would mislead."""
    is_plain = len(key) <= SHOWN_CHARACTERS and _PLAIN_KEY.fullmatch(key)
    return f"{at}.{key}" if is_plain else f"{at}[{shown(key)}]"


def _decode(data: bytes) -> str:
    if data.startswith(_UTF16_MARKS) or b"\0" in data[:4]:
        raise JsonTextError("this is UTF-16 or UTF-32, not UTF-8; save it as UTF-8", "line 1, column 1")
    data = data.removeprefix(_UTF8_MARK)
    if data.startswith(_UTF8_MARK):
        raise JsonTextError("there is a second byte order mark", "line 1, column 1")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        lines = data[: exc.start].split(b"\n")
        where = f"line {len(lines)}, column {len(lines[-1].decode('utf-8')) + 1}"
        raise JsonTextError(f"byte 0x{data[exc.start]:02x} is not UTF-8", where) from None


def _no_constant(word: str) -> object:
    raise JsonTextError(f"{word} is not JSON")


def _object(pairs: list[tuple[str, object]]) -> _Object:
    result = _Object(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        result.twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return result


_Place = tuple["_Place | None", "str | int"]
"""A key or an index, and the place of what it is in; the document's own is None."""


def _refuse_duplicates(value: object) -> None:
    """Walk without recursion: a file may be nested more deeply than Python calls may be.

    A path is written only for the error: one for each of the values of a small file can take all memory there is.
    """
    waiting: list[tuple[_Place | None, object]] = [(None, value)]
    while waiting:
        at, current = waiting.pop()
        if isinstance(current, _Object):
            if current.twice is not None:
                raise JsonTextError(f"the key {shown(current.twice)} stands twice", _path((at, current.twice)))
            waiting.extend(((at, key), child) for key, child in current.items() if isinstance(child, dict | list))
        elif isinstance(current, list):
            waiting.extend(
                ((at, index), child) for index, child in enumerate(current) if isinstance(child, dict | list)
            )


def _path(place: _Place | None) -> str:
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        steps.append(step)
    at = "$"
    for step in reversed(steps):
        at = key_path(at, step) if isinstance(step, str) else f"{at}[{step}]"
    return at if len(at) <= _PATH_CHARACTERS else f"{at[: _PATH_CHARACTERS // 2]} ... {at[-_PATH_CHARACTERS // 2 :]}"


def _syntax_message(exc: json.JSONDecodeError) -> str:
    """Name the two habits that other JSON readers allow; else what the parser says."""
    rest = exc.doc[exc.pos :].lstrip()
    if rest.startswith(("//", "/*", "#")):
        return "comments are not allowed in JSON"
    before = exc.doc[: exc.pos].rstrip()
    # Python 3.13 points at the comma, older ones at the bracket behind it.
    after_comma = rest[1:].lstrip() if rest.startswith(",") else rest if before.endswith(",") else ""
    if after_comma.startswith(("]", "}")):
        return "a comma before the closing bracket is not allowed in JSON"
    return exc.msg[0].lower() + exc.msg[1:]
