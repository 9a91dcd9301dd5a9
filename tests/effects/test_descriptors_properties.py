"""Generated descriptors: what is valid comes back as it was, and nothing but a refusal with a field comes of the rest."""

from __future__ import annotations

import copy
import json

from descriptor_strategies import EVERYTHING, EXTENSION, mutated, valid
from hypothesis import given

from trio_exthost.effects import read_descriptor, to_wire
from trio_exthost.errors import RegistrationRefused

CODES = {"invalid_payload", "resource_limit", "scope_mismatch", "permission_denied"}


def admit(kind, raw):
    return read_descriptor(kind, raw, registrant=EVERYTHING)


@given(valid)
def test_valid_descriptor_survives_the_way_through_json(case):
    kind, raw = case
    admitted = admit(kind, raw)
    again = admit(kind, json.loads(json.dumps(to_wire(admitted.descriptor))))
    assert again == admitted
    assert hash(again.descriptor) == hash(admitted.descriptor)
    assert to_wire(again.descriptor) == to_wire(admitted.descriptor)


@given(valid)
def test_wire_form_keeps_all_that_was_said(case):
    kind, raw = case
    wire = to_wire(admit(kind, raw).descriptor)
    for key, value in raw.items():
        if key not in ("availability", "predicate", "models"):  # defaults are written out within these
            assert wire[key] == value


@given(valid)
def test_descriptor_shares_nothing_with_what_was_received_or_is_sent(case):
    kind, raw = case
    admitted = admit(kind, raw)
    before = copy.deepcopy(to_wire(admitted.descriptor))
    for given_away in (raw, to_wire(admitted.descriptor)):
        spoil(given_away)
    assert to_wire(admitted.descriptor) == before


def spoil(value):
    members = list(value.items() if isinstance(value, dict) else enumerate(value))
    for _, child in members:
        if isinstance(child, dict | list):
            spoil(child)
    value.clear()


def refusal_of(kind, raw):
    """Why it is refused, or None."""
    try:
        admit(kind, raw)
    except RegistrationRefused as error:
        return error
    return None


@given(mutated())
def test_changed_descriptor_is_valid_or_refused_with_its_field(case):
    kind, raw = case
    error = refusal_of(kind, raw)
    if error is None:
        admitted = admit(kind, raw)
        assert admit(kind, json.loads(json.dumps(to_wire(admitted.descriptor)))) == admitted
    else:
        assert error.code in CODES
        assert error.field
        assert error.reason
        assert error.extension == EXTENSION
        assert str(error).encode()
