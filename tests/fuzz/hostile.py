"""JSON texts that nobody means: legal values with something wrong in them, and the wrong things themselves.

A value here is what `json` would decode, but an object may be `Pairs`, so that a key can stand twice, and any part may
be `Raw`, so that it need not be JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from fuzz.choices import Choices


class Raw(bytes):
    """Bytes that are written as they are."""


class Pairs(list[tuple[Any, Any]]):
    """An object, key by key."""


RAW = tuple(
    map(
        Raw,
        [
            b"null", b"true", b"false", b"0", b"-0", b"1", b"-1", b"1.0", b"0.1", b"1e3", b"-0.0", b"01", b"+1", b".5", b"1.",
            b"NaN", b"Infinity", b"-Infinity", b"nan", b"1e999", b"-1e999", b"1e-999", b"9007199254740993",
            b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616",
            b"9" * 400, b"9" * 5000, b"-" + b"9" * 5000, b"0." + b"3" * 5000, b"1e" + b"9" * 400,
            b'""', b'" "', b'"\\u0000"', b'"\\n"', b'"\\r"', b'"\\u2028"', b'"\\u001b[31m"', b'"\\ud800"', b'"\\udc00\\ud800"',
            b'"\\ud83d\\ude00"', b'"a\\ud800b"', b'"\xff"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xc0\x80"', b'"\x00"',
            b'"\t"', b'"\r"', b'"\\x"', b'"\\u12"', b'"abc', b"'a'", b"abc", b"\x00", b"\xff", b"\xef\xbb\xbf", b"",
            b"[]", b"{}", b"[[]]", b"[{}]", b'{"":{"":{}}}', b'{"a":1,"a":2}', b'{"a":1,}', b"[1,]", b"[,]", b"{,}", b"{1:2}",
            b"{null:1}", b'{"\\ud800":1}', b"[", b"]", b"{", b"}", b'{"a"', b'{"a":', b",", b":", b"/*x*/1", b"1//x", b"1 2",
            b"[" * 127 + b"]" * 127, b"[" * 200 + b"]" * 200, b'{"a":' * 120 + b"1" + b"}" * 120, b"[" * 5000,
            b"[" * 5000 + b"]" * 5000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"[" + b"0," * 3000 + b"0]", b"[" + b"[]," * 3000 + b"[]]",
            b'"' + b"x" * 70_000 + b'"', b'"' + b"\\u0000" * 3000 + b'"', b'{"' + b"k" * 3000 + b'":1}',
        ],
    )
)  # fmt: skip
"""Values of every type at its edges, and what only looks like one."""
ENDLESS = Raw(b'"' + b"x" * 1_000_000 + b'"')
"""Rare, since it takes the time of a thousand others."""
_STRINGS = (
    "",
    " ",
    "x",
    "1",
    "0",
    "..",
    "a/b",
    "\x00",
    "\n",
    "\x1b[2J",
    "é",
    "😀",
    "\u2028",
    "\ud800",
    "__class__",
    "$ref",
    "/deploy",
)


def write(value: Any) -> bytes:
    """The text of a value, on one line unless something raw in it is not."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, (Pairs, dict)):
        return b"{" + b",".join(write(key) + b":" + write(item) for key, item in _items(value)) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join(map(write, value)) + b"]"
    return json.dumps(value, ensure_ascii=not isinstance(value, str) or not value.isascii()).encode()


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else value if isinstance(value, Pairs) else []


def hostile(choices: Choices, words: Sequence[str]) -> Any:
    """A value for a place where another was meant."""
    match choices.below(8):
        case 0:
            return choices.pick(_STRINGS)
        case 1:
            return choices.pick(words)
        case 2:
            return choices.below(1000) - 3
        case 3:
            return [choices.pick(RAW) for _ in range(choices.below(4))]
        case 4:
            return Pairs((choices.pick(words), choices.pick(RAW)) for _ in range(choices.below(4)))
        case 5 if choices.byte() == 255:
            return ENDLESS
        case _:
            return choices.pick(RAW)


def changed(value: Any, choices: Choices, words: Sequence[str], others: Sequence[Any] = ()) -> Any:
    """A value with one thing in it changed: deleted, doubled, of another type, renamed, nested, or swapped with another's.

    Args:
      value: Left as it is.
      choices: What decides.
      words: Keys and values to put in.
      others: Objects whose values may come over, as an id that belongs to another frame.
    """
    if isinstance(value, (dict, Pairs)):
        return _changed_object(value, choices, words, others)
    if isinstance(value, list) and value and choices.below(4):
        at = choices.below(len(value))
        return _one_for(value, at, choices, [changed(value[at], choices, words, others)])
    return hostile(choices, words)


def _one_for(items: list[Any], at: int, choices: Choices, new: list[Any]) -> list[Any]:
    how = choices.below(5)
    if how == 0:
        new = []
    elif how == 1:
        new = [items[at], items[at]]
    return [*items[:at], *new, *items[at + 1 :]]


def _changed_object(value: Any, choices: Choices, words: Sequence[str], others: Sequence[Any]) -> Any:
    pairs = Pairs(_items(value))
    if not pairs:
        return Pairs([(choices.pick(words), hostile(choices, words))])
    at = choices.below(len(pairs))
    key, item = pairs[at]
    match choices.below(10):
        case 0:
            del pairs[at]
        case 1:
            pairs.insert(choices.below(len(pairs) + 1), (key, hostile(choices, words)))
        case 2:
            pairs[at] = (choices.pick((*words, *_STRINGS)), item)
        case 3:
            pairs.append((choices.pick((*words, *_STRINGS)), hostile(choices, words)))
        case 4:
            levels = choices.pick((1, 2, 100, 126, 127, 128, 300))
            pairs[at] = (key, Raw(b"[" * levels + write(item) + b"]" * levels))
        case 5 if others:
            other = choices.pick(others)
            pairs[at] = (key, next((item for name, item in _items(other) if name == key), 0))
        case 6:
            pairs[at] = (hostile(choices, words), item)
        case 7:
            pairs[at] = (key, hostile(choices, words))
        case _:
            pairs[at] = (key, changed(item, choices, words, others))
    return pairs


def spoiled(text: bytes, choices: Choices) -> bytes:
    """A text with some bytes cut out, doubled, altered or put in."""
    for _ in range(choices.below(4)):
        at = choices.below(len(text) + 1)
        length = choices.below(9)
        new = choices.pick((b"", text[at : at + length] * 2, bytes([choices.byte()]), choices.pick(RAW)))
        text = text[:at] + new + text[at + length :]
    return text


def file_seeds(*wholes: Any) -> Iterator[bytes]:
    """Inputs of `file_text`: these as they are, and some in which something is wrong."""
    for one in wholes:
        yield b"\x00" + write(one)
    yield from (bytes([1, number, number]) * 5 for number in range(64))


def file_text(data: bytes, whole: Any, words: Sequence[str], others: Sequence[Any], *, most: int) -> bytes:
    """A file: these bytes as they are, or the whole one with up to `most` things wrong in it; as for `changed`."""
    choices = Choices(data)
    if choices.byte() % 2 == 0:
        return choices.rest()
    value = whole
    for _ in range(1 + choices.below(most)):
        value = changed(value, choices, words, others)
    written = write(value)
    return spoiled(written, choices) if choices.one_in(4) else written
