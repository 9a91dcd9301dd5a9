"""Which patterns of secrets are refused, and what the default ones find."""

import re

import pytest

from trio_exthost import ConfigError, HostConfig
from trio_exthost.mask import DEFAULT_MASK, PATTERN_CHARACTERS, check_pattern


@pytest.mark.parametrize("pattern", DEFAULT_MASK)
def test_default_patterns_are_fit_for_use(pattern):
    assert check_pattern(pattern) == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$", r"(?:a*)*b", r"(a|aa)+$", r"(?:(a?b?))*c", r"(x{1,30}){1,30}y", r"(?P<n>\w+\s?)+$", r"([ab]+)*?c", r"(?:a|b){50}",
        r"(a{2,})+b", r"((?#(a+)a+){,}b",
    ],
)  # fmt: skip
def test_pattern_that_may_never_end_is_refused_with_the_way_out(pattern):
    with pytest.raises(ConfigError, match=r"^mask\[0\] .* possessive"):
        HostConfig(mask=(pattern,))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a++)+$", r"(a+)++$", r"(?>a+)+$", r"(?:a|aa)++$", r"[(a+)+]+x", r"[]a|b]+x", r"[^]|]+x", r"\(a+\)+", r"(?#(a|b)abc+", r"(?i)a+b*c?",
        r"(?:a|b){2}", r"(?:ab){20}", r"(a+){1}", r"x{}+", r"x{a}", r"(?<=k)=\w+", r"a|b|c", r"(?:ab)+c", r"[\]|(]+x", r"a{3,5}b{4}",
    ],
)  # fmt: skip
def test_pattern_that_ends_soon_is_taken(pattern):
    assert HostConfig(mask=[pattern]).mask == (pattern,)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", r"mask\[1\] '\(' is no regular expression"),
        ("a*", "matches the empty text"),
        ("x" * (PATTERN_CHARACTERS + 1), f"more than {PATTERN_CHARACTERS}"),
        (7, "must be text, not int"),
    ],
)
def test_pattern_that_cannot_be_used_is_named(pattern, words):
    with pytest.raises(ConfigError, match=words):
        HostConfig(mask=("fine", pattern))


def test_one_text_is_no_tuple_of_patterns():
    with pytest.raises(ConfigError, match="several patterns"):
        HostConfig(mask="password")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("API_KEY=abc make", "*** make"),
        ("curl -H 'Authorization: Bearer abc.def' https://x", "curl -H '***' https://x"),
        ("login --password 'a b' now", "login *** now"),
        ('{"token": "a b", "x": 1}', '{"***, "x": 1}'),
        (r"{\"token\": \"a b\"}", r"{\"***}"),
        ("git clone https://me:pw@host/x", "git clone https://***@host/x"),
        ("https://x/?token=abc&y=1", "https://x/?***&y=1"),
        ("use sk-0123456789abcdef here", "use *** here"),
        ("ghp_0123456789abcdef", "***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nab-c\n-----END RSA PRIVATE KEY----- rest", "*** rest"),
        ("-----BEGIN PRIVATE KEY-----\nabc", "***"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2ln is it", "*** is it"),
        ("the token count and the secret of it", "the token count and the secret of it"),
        ("src/tokenizer.py", "src/tokenizer.py"),
        ("--" * 500, "--" * 500),
    ],
)
def test_default_patterns_find_secrets_and_leave_prose_alone(text, masked):
    for pattern in DEFAULT_MASK:
        text = re.sub(pattern, "***", text)
    assert text == masked
