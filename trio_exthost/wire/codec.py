"""Lines to frames and frames to lines. Pure, and the one place where JSON is parsed or written for the wire."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, cast

import msgspec

from trio_exthost.errors import PayloadError, ProtocolError
from trio_exthost.wire import from_extension, to_extension
from trio_exthost.wire.depth import is_deeper
from trio_exthost.wire.dialect import Dialect
from trio_exthost.wire.glance import Glance, glance, invalid_utf8, show
from trio_exthost.wire.payload import find_fault

_loads = msgspec.json.Decoder().decode


def _plain_scalar_or_dict(value: Any) -> Any:
    """What the encoder does not know by itself: mappings that are no dicts, subclasses of str, int and float."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


dumps = msgspec.json.Encoder(enc_hook=_plain_scalar_or_dict).encode
"""JSON of a value. Of what is none it may be JSON of something else, NaN as null: `payload.find_fault` tells."""


_SCALARS = frozenset({str, int, bool, type(None)})


def _is_flat(plain: dict[Any, Any]) -> bool:
    """Whether one look at each value shows that encoding changes nothing and that it is not deep: most events."""
    for key, value in plain.items():  # noqa: SIM110 - as `all` it takes twice as long
        if value.__class__ not in _SCALARS or key.__class__ is not str:
            return False
    return True


class Codec:
    """Decodes and encodes the frames of one dialect. Holds nothing of a conversation: one serves all of a host."""

    def __init__(self, dialect: Dialect, *, max_frame: int, max_depth: int) -> None:
        """Set the bounds.

        Args:
          dialect: Which words there are.
          max_frame: Bytes of an encoded frame, without its line feed. (What comes in is bounded before it is decoded.)
          max_depth: Levels of nesting of a frame in either direction; the frame's own object is the first.
        """
        from trio_exthost.wire import structuring  # noqa: PLC0415 - the first codec pays for cattrs

        self.dialect = dialect
        self._max_frame = max_frame
        self._max_depth = max_depth
        self._flat_bytes = 2 * max_depth  # a shorter text has not brackets enough to be nested deeper
        self._structure = structuring.structure
        self._explain = structuring.explain
        both: set[Any] = {*dialect.inbound.values(), *dialect.outbound.values()}
        self._plain: dict[Any, Callable[[Any], dict[str, Any]]] = {c: structuring.unstructure(c) for c in both}
        self._fast: dict[Any, Callable[[dict[str, Any]], Any]] = {c: structuring.structure(c) for c in both}
        self._short: dict[str, Callable[[dict[str, Any]], Any]] = {w: self._fast[c] for w, c in dialect.inbound.items()}
        self._own: dict[Any, frozenset[str]] = {
            c: structuring.own_keys(c, spread) for c in both if (spread := structuring.spread_field(c)) is not None
        }
        self._spread_over = structuring.spread_over
        self._upgrades: dict[str, Codec] = {}

    def upgraded(self, capabilities: Container[str]) -> Codec:
        """The codec of the dialect that these words of a `hello` opt in to, this one where none does.

        Made when the first conversation needs it, then shared by all.
        """
        word = next((each for each in self.dialect.upgrades if each in capabilities), None)
        if word is None:
            return self
        if word not in self._upgrades:
            bounds = {"max_frame": self._max_frame, "max_depth": self._max_depth}
            self._upgrades[word] = Codec(self.dialect.upgrades[word], **bounds)
        return self._upgrades[word]

    def decode(self, line: bytes) -> from_extension.Frame:
        """The frame an extension sent in this line.

        Unknown keys are ignored; null is as good as absent where a field may be left out.

        Raises:
          ProtocolError: The only exception, whatever the bytes are. Its `code` is `not_json`, `too_deep`,
            `not_an_object`, `no_type`, `unknown_type` or `invalid_frame`; `frame_type` and `frame_id` are set as far
            as they could be read, in `not_json` and `too_deep` by looking at the text.
        """
        if len(line) <= self._flat_bytes or not is_deeper(line, self._max_depth):
            try:
                value = _loads(line)
                return cast("from_extension.Frame", self._short[value["type"]](value))
            except (ValueError, TypeError, LookupError, RecursionError):
                pass  # once more, and looking for what is wrong with it, or what null stands for
        return cast("from_extension.Frame", self._decode(line, self.dialect.inbound))

    def decode_outbound(self, line: bytes) -> to_extension.Frame:
        """The frame the host sent in this line, as the extension reads it. Raises as `decode` does."""
        return cast("to_extension.Frame", self._decode(line, self.dialect.outbound))

    def encode(self, frame: from_extension.Frame | to_extension.Frame) -> bytes:
        r"""The frame as one line, its line feed included; no other LF and no CR is in it.

        Fields at their default are left out. A key of a spread payload that the frame itself has is left out too: the
        frame's own counts.

        Raises:
          PayloadError: A part is not JSON (the message names the place), the frame is nested too deeply or is too
            large, it is of another dialect, or a field holds a value of another type than its own. Nothing is replaced
            silently, NaN least of all.
        """
        word = frame.TYPE
        try:
            plain = self._plain[type(frame)](frame)
        except KeyError as exc:
            raise PayloadError(f"{word} is not of the {self.dialect.name} dialect") from exc
        except (AttributeError, TypeError) as exc:
            raise PayloadError(f"{word}: a field holds a value of another type: {exc}") from exc
        return self._encode_checked(word, plain)

    def encode_spread(
        self, kind: type[to_extension.Event], fields: dict[str, Any], payload: Mapping[str, Any]
    ) -> bytes:
        """As `encode` of a `kind` with these fields and this payload, without making one: an event is told to many.

        Args:
          kind: Of a frame with a spread payload.
          fields: `type`, and all others that are not at their default, in the order of the class.
          payload: What is spread.

        Raises:
          PayloadError: As `encode`.
        """
        try:
            plain = self._spread_over(fields, payload, self._own[kind])
        except (AttributeError, TypeError) as exc:
            raise PayloadError(f"{kind.TYPE}: the payload is no mapping: {exc}") from exc
        return self._encode_checked(kind.TYPE, plain)

    def glance(self, text: bytes) -> Glance:
        """Type and id of a text that cannot be decoded, as far as they can be seen; the id only of an answer."""
        return glance(text, self.dialect.inbound, self.dialect.replies)

    def registration_id(self, line: bytes, word: str | None) -> int | None:
        """Which registration a refused line of this type was about: that one can be answered. None if it cannot be read."""
        if word not in self.dialect.registrations:
            return None
        try:
            found = _loads(line)["registration_id"]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        return found if found.__class__ is int and found > 0 else None

    def _decode(self, line: bytes, classes: Mapping[str, type[Any]]) -> Any:
        if is_deeper(line, self._max_depth):
            raise self._too_deep(line)
        try:
            value = _loads(line)
        except RecursionError:
            raise self._too_deep(line) from None
        except ValueError as exc:
            raise self._not_json(line, exc) from None
        if value.__class__ is not dict:
            raise ProtocolError(f"not an object: {show(line)}", code="not_an_object")
        word = value.get("type")
        if word.__class__ is not str:
            raise _bad(
                value, None, "no_type", "no `type`" if word is None else f"`type` is {_short(word)}, not a string"
            )
        kind = classes.get(word)
        if kind is None:
            raise _bad(value, word, "unknown_type", f"unknown type {word[:80]!r}")
        try:
            return self._fast[kind](value)
        except (KeyError, TypeError):
            return self._decode_exactly(kind, word, value)

    def _decode_exactly(self, kind: type[Any], word: str, value: dict[str, Any]) -> Any:
        try:
            return self._structure(kind, exact=True)(value)  # made, and kept, when the first frame needs it
        except Exception as exc:  # noqa: BLE001 - cattrs raises groups of what the hooks raised; one error leaves here
            raise _bad(value, word, "invalid_frame", f"{word}{_named(value)}: {self._explain(exc)}") from None

    def _encode_checked(self, word: str, plain: dict[str, Any]) -> bytes:
        is_flat = _is_flat(plain)
        try:
            data = dumps(plain)
            # NaN comes back as null, a set as a list, the key 1 as "1": what comes back changed is looked at.
            same = is_flat or _loads(data) == plain
        except (TypeError, ValueError, RecursionError, OverflowError) as exc:
            fault = find_fault(plain, self._max_depth)
            raise PayloadError(f"{word}: {fault or exc}") from exc
        if not same and (fault := find_fault(plain, self._max_depth)) is not None:
            raise PayloadError(f"{word}: {fault}")
        if len(data) > self._flat_bytes and not is_flat and is_deeper(data, self._max_depth):
            raise PayloadError(f"{word}: nested deeper than {self._max_depth} levels")
        if len(data) > self._max_frame:
            raise PayloadError(f"{word}: {len(data)} bytes encoded, of {self._max_frame} allowed")
        return data + b"\n"

    def _too_deep(self, line: bytes) -> ProtocolError:
        seen = self.glance(line)
        message = f"nested deeper than {self._max_depth} levels: {show(line)}"
        return ProtocolError(message, code="too_deep", frame_type=seen.frame_type, frame_id=seen.frame_id)

    def _not_json(self, line: bytes, cause: ValueError) -> ProtocolError:
        seen = self.glance(line)
        why = invalid_utf8(line) or str(cause)
        message = f"not JSON: {show(line)} ({why})"
        return ProtocolError(message, code="not_json", frame_type=seen.frame_type, frame_id=seen.frame_id)


_NUMBER_BITS = 64
"""A number of a registration that is larger is not shown: Python would not even write out one of 5,000 digits."""


def _bad(value: dict[str, Any], word: str | None, code: str, message: str) -> ProtocolError:
    """The error about a decoded object, with its id if that is a string, and shown if it is something else."""
    frame_id = value.get("id")
    if frame_id.__class__ is str:
        return ProtocolError(message, code=code, frame_type=word, frame_id=frame_id)
    if "id" in value:
        message += f" (id: {_short(frame_id)})"
    return ProtocolError(message, code=code, frame_type=word)


def _named(value: dict[str, Any]) -> str:
    """What the frame is about, where it says so: a tool among many is found by its name."""
    number, descriptor = value.get("registration_id"), value.get("descriptor")
    name = descriptor.get("name") if isinstance(descriptor, dict) else value.get("name")
    words = [str(number)] if number.__class__ is int and number.bit_length() <= _NUMBER_BITS else []
    if isinstance(name, str):
        words.append(repr(name)[:80])
    return "".join(f" {word}" for word in words)


def _short(value: object) -> str:
    """A bad value as it can be shown; of a list or an object only that it is one."""
    return type(value).__name__ if isinstance(value, (dict, list)) else repr(value)[:80]
