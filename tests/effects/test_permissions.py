"""Which words are permissions, what a registration needs, and who may override."""

from __future__ import annotations

import pytest
from descriptor_strategies import NAME_CHARACTERS, names
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.effects import PERMISSION_FAMILIES, PERMISSIONS, EffectKind, is_permission, may_override
from trio_exthost.effects.permissions import REGISTRATION_NEEDS, is_name, is_secret_name, secret_permission


@pytest.mark.parametrize("word", [*PERMISSIONS, "secrets.read:a", "secrets.read:A-b_c.9", "tools.override:bash"])
def test_word_of_the_table_or_of_a_family_is_a_permission(word):
    assert is_permission(word)


@pytest.mark.parametrize(
    "word",
    [
        "", "tools", "tools.register ", "Tools.register", "tools.register:bash", "secrets.read", "secrets.read:",
        "secrets.read:*", "secrets.read:-a", "secrets.read:a.", "secrets.read:a\n", "tools.override:", "tools.override:*",
        "tools.override:a b", "tools.override:a:b", "tools.override:bash\n", *PERMISSION_FAMILIES,
    ],
)  # fmt: skip
def test_any_other_word_is_none(word):
    assert not is_permission(word)


@pytest.mark.parametrize(("rule", "most"), [(is_name, 128), (is_secret_name, 128)])
def test_name_may_have_128_characters_and_no_more(rule, most):
    assert rule("a" * most)
    assert not rule("a" * (most + 1))
    assert not rule("")


@given(st.text(NAME_CHARACTERS + " /:*é\n\u0660", max_size=5))
def test_secret_name_is_a_name_that_begins_and_ends_with_a_letter_or_digit(text):
    plain = text.isascii() and bool(text)
    assert is_name(text) == (plain and set(text) <= set(NAME_CHARACTERS))
    assert is_secret_name(text) == (is_name(text) and text[0].isalnum() and text[-1].isalnum())
    assert is_permission(secret_permission(text)) == is_secret_name(text)
    assert is_permission(f"tools.override:{text}") == is_name(text)


def test_every_word_a_registration_needs_is_a_permission():
    assert set(REGISTRATION_NEEDS.values()) <= set(PERMISSIONS)
    assert EffectKind.PROMPT_SECTION not in REGISTRATION_NEEDS


@given(names, st.sets(names, max_size=3))
def test_override_needs_the_word_for_all_or_that_for_the_name(name, granted):
    grants = {f"tools.override:{each}" for each in granted} | {"tools.register", f"tools.override:{name}x"}
    assert may_override(name, grants) == (name in granted)
    assert may_override(name, grants | {f"tools.override:{name}"})
    assert may_override(name, grants | {"tools.override"})
