"""When a predicate holds, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.effects import Predicate
from trio_exthost.effects.descriptors_fields import Fields
from trio_exthost.effects.predicates import ANY, MAX_PREDICATE_NAMES, read_predicate
from trio_exthost.errors import RegistrationRefused

some = st.lists(st.sampled_from("abc"), max_size=2).map(tuple)


def read(raw):
    return read_predicate(Fields({"predicate": raw}, ("predicate",), extension="guard"), "predicate")


@given(some, some, st.booleans(), st.sampled_from("abcd"), st.sampled_from("abcd"), st.booleans())
def test_every_condition_that_is_given_must_hold(providers, models, needs_client, provider, model, interactive):
    predicate = Predicate(providers, models, needs_client)
    refusals = [
        bool(providers) and provider not in providers,
        bool(models) and model not in models,
        needs_client and not interactive,
    ]
    assert predicate.matches(provider, model, interactive) == (not any(refusals))


def test_names_are_exact():
    assert not Predicate(providers=("Open",)).matches("open", "m", True)
    assert not Predicate(models=("gpt",)).matches("p", "gpt-5", True)


def test_absent_predicate_holds_always():
    assert read_predicate(Fields({}, ("predicate",), extension="guard"), "predicate") is ANY
    assert read({}) == ANY
    assert ANY.matches("", "", False)


def test_predicate_is_read():
    raw = {"providers": ["p"], "models": ["vendor/m:1", "n"], "requires_interactive_client": True}
    assert read(raw) == Predicate(("p",), ("vendor/m:1", "n"), True)


def test_as_many_names_as_allowed_are_read():
    many = [f"m{number}" for number in range(MAX_PREDICATE_NAMES)]
    assert read({"models": many}).models == tuple(many)
    with pytest.raises(RegistrationRefused, match="must have 0 to 256 items, not 257") as caught:
        read({"models": [*many, "more"]})
    assert caught.value.field == "predicate.models"


@pytest.mark.parametrize(
    ("raw", "field", "reason"),
    [
        (None, "predicate", "must be an object, not null"),
        ([], "predicate", "must be an object, not an array"),
        ({"provider": []}, "predicate.provider", "is not known here"),
        ({"providers": "p"}, "predicate.providers", "must be an array, not text"),
        ({"providers": ["p", 1]}, "predicate.providers[1]", "must be text, not a number"),
        ({"models": [" "]}, "predicate.models[0]", "must not be blank"),
        ({"requires_interactive_client": 1}, "predicate.requires_interactive_client", "must be true or false"),
    ],
)
def test_wrong_predicate_is_refused_with_its_field(raw, field, reason):
    with pytest.raises(RegistrationRefused) as caught:
        read(raw)
    assert caught.value.code == "invalid_payload"
    assert caught.value.field == field
    assert reason in caught.value.reason


def test_misspelt_key_is_told_the_right_one():
    with pytest.raises(RegistrationRefused) as caught:
        read({"provider": []})
    assert caught.value.hint == "did you mean providers?"
