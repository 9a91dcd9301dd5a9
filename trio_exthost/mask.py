r"""Patterns of what must not be shown: the default ones, and the check of those an operator adds.

One list serves names and texts: a pattern that is found in a key hides the whole value under it; in a text it hides what it
matches. So a pattern for names (`\A[\w-]*pin[\w-]*\Z`) is anchored at both ends, and leaves prose alone.
"""

from __future__ import annotations

import re

PATTERN_CHARACTERS = 1000
"""The longest pattern."""

_WORDS = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key|authorization|credential|cookie)"
_VALUE = r"""(?:\\?"[^"]*+"?|'[^']*+'?|(?:(?:bearer|basic|token)\s{1,8})?[^\s"'&]++)"""

DEFAULT_MASK: tuple[str, ...] = (
    rf"(?i)\A(?>[\w-]*?{_WORDS})[\w-]*+\Z",  # a key, or a text that is nothing but such a name
    rf"""(?i){_WORDS}[\w-]{{0,40}}(?:\\?["'])?\s{{0,8}}[:=]\s{{0,8}}{_VALUE}""",  # API_KEY=x, "token": "x", header: x
    rf"(?i)(?<!-)--(?>[\w-]*?{_WORDS})[\w-]*+\s{{1,8}}{_VALUE}",  # --password x
    r"(?i)\bbearer\s{1,8}[\w.~+/=-]{8,}",
    r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{1,200}(?=@)",  # https://user:password@host
    r"\b(?:[sprx]k[-_]|gh[pousr]_|github_pat_|glpat-|xox[abprs]-)[\w-]{8,}",
    r"\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{8,500}\.[\w-]{8,2000}\.[\w-]*",
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----END))*+(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
)  # fmt: skip
"""Names that say they hold a secret, assignments to such names in commands and headers, and keys of well-known forms."""

_QUANTIFIER = re.compile(r"(?:(?P<sign>[*+?])|\{(?P<least>\d*)(?P<comma>,)?(?P<most>\d*)\})(?P<mode>[+?]?)")
_CLASS = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*+\]", re.DOTALL)
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_MANY = 10
"""From so many repetitions on, choices within multiply beyond use."""


def check_pattern(pattern: object) -> str:
    """The pattern, if it can be used.

    A repeat of something that itself can match in several ways may take a time that doubles with every character
    (`(a+)+$`), and no bound of size helps; such a pattern is refused.

    Raises:
      ValueError: It is no text or no regular expression, matches nothing at all, is longer than `PATTERN_CHARACTERS`, or
        may never end. The message says which, and the way out.
    """
    if not isinstance(pattern, str):
        raise ValueError(f"must be text, not {type(pattern).__name__}")  # noqa: TRY004 - one kind of error for the caller
    if len(pattern) > PATTERN_CHARACTERS:
        raise ValueError(f"has {len(pattern)} characters, more than {PATTERN_CHARACTERS}")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as exc:
        raise ValueError(f"is no regular expression: {exc}") from None
    if compiled.search(""):
        raise ValueError("matches the empty text, so it would hide everything")
    if _repeats_a_choice(pattern):
        raise ValueError(
            "repeats what can itself match in several ways, which may take for ever;"
            " make the inner or the outer repeat possessive (`++`, `*+`) or the group atomic (`(?>...)`)"
        )
    return pattern


def _repeats_a_choice(pattern: str) -> bool:
    """Whether a valid pattern repeats, many times, a group in which a choice can be taken back."""
    open_groups: list[tuple[bool, bool]] = []  # of each: whether it is atomic, and what its surroundings held before it
    has_choice, at = False, 0
    while at < len(pattern):
        if comment := _COMMENT.match(pattern, at):
            at = comment.end()
            continue
        char, atom_has_choice = pattern[at], False
        if char == "(":
            open_groups.append((pattern.startswith("(?>", at), has_choice))
            has_choice = False
            at += 2 if pattern.startswith("(?", at) else 1
            continue
        if char == "|":
            has_choice = True
            at += 1
            continue
        if char == ")" and open_groups:
            is_atomic, before = open_groups.pop()
            atom_has_choice, has_choice = has_choice and not is_atomic, before
        at = _end_of_atom(pattern, at)
        many, varies, at = _repeat(pattern, at)
        if many and atom_has_choice:
            return True
        has_choice = has_choice or varies or atom_has_choice
    return False


def _end_of_atom(pattern: str, at: int) -> int:
    if pattern[at] == "\\":
        return at + 2
    found = _CLASS.match(pattern, at)
    return found.end() if found else at + 1


def _repeat(pattern: str, at: int) -> tuple[bool, bool, int]:
    """Of the quantifier that stands here: whether it repeats many times, whether it leaves a choice, and where it ends."""
    found = _QUANTIFIER.match(pattern, at)
    if found is None or found[0] in {"{}", "{}+", "{}?"}:
        return False, False, at
    sign, most = found["sign"], found["most"] if found["comma"] else found["least"]
    if found["mode"] == "+":
        return False, False, found.end()
    many = sign in {"*", "+"} or (sign is None and (not most or int(most) >= _MANY))
    varies = sign is not None or bool(found["comma"] and found["least"] != most)
    return many, varies, found.end()
