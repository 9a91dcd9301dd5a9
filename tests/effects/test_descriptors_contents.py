"""The rules and limits of providers, of their models, and of what a contribution shows."""

from __future__ import annotations

import pytest
from descriptor_strategies import EXTENSION, MODEL, NOTE, read, refused

from trio_exthost.effects import DetailPanel, ModelInput
from trio_exthost.effects.descriptors_fields import MAX_DATA_BYTES, MAX_DATA_DEPTH


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


# --- providers ---


@pytest.mark.parametrize(
    "url", ["http://h", "HTTPS://h/p?q#f", "http://u@h:1", "http://[::1]:65535", "https://bücher.example"]
)
def test_address_of_a_provider_is_a_web_address(url):
    assert read("provider", base_url=url).base_url == url


@pytest.mark.parametrize(
    "url",
    ["", "h", "//h", "ftp://h", "file:///etc", "http:", "http://", "http:///p", "http://:80", "http://h:0", "http://h:65536",
     "http://h:x", "http://[::1", "http://h\\@evil", "http://a b", " http://h", "http://h\n", "ht\ttp://h", "javascript:1"],
)  # fmt: skip
def test_address_that_is_none_is_refused(url):
    assert refused("provider", base_url=url).field == "base_url"


def test_credential_is_the_name_of_a_secret():
    assert read("provider", credential_ref="key").credential_ref == "key"
    for bad in ("", "-a", "a.", "x" * 129, "*", None):
        assert refused("provider", credential_ref=bad).field == "credential_ref"


def test_provider_has_1_to_256_models():
    many = [MODEL | {"id": f"m{number}"} for number in range(257)]
    assert len(read("provider", models=many[:256]).models) == 256
    assert refused("provider", models=many).reason == "must have 1 to 256 items, not 257"
    assert refused("provider", models=[]).reason == "must have 1 to 256 items, not 0"
    assert refused("provider", models={}).field == "models"


def test_model_stands_once():
    error = refused("provider", models=[MODEL, MODEL])
    assert (error.field, error.reason) == ("models[1].id", "there is a model 'm-1' before this one")


def test_tokens_fit_into_the_window():
    full = MODEL | {"context_window": 2**32 - 1, "max_tokens": 2**32 - 1}
    assert read("provider", models=[full]).models[0].max_tokens == 2**32 - 1
    for change in ({"max_tokens": 1001}, {"max_tokens": 0}):
        assert refused("provider", models=[MODEL | change]).field == "models[0].max_tokens"
    for change in ({"context_window": 0}, {"context_window": 2**32}, {"context_window": 1.0}):
        assert refused("provider", models=[MODEL | change]).field == "models[0].context_window"


@pytest.mark.parametrize(
    ("value", "field"),
    [([], "input"), (["text", "text"], "input[1]"), (["sound"], "input[0]"), ("text", "input"), (None, "input"),
     (["text", "image", "text"], "input")],
)  # fmt: skip
def test_input_of_a_model_is_a_set_of_words(value, field):
    assert refused("provider", models=[MODEL | {"input": value}]).field == f"models[0].{field}"


def test_model_may_be_shown_images_and_think():
    model = read("provider", models=[MODEL | {"input": ["image", "text"], "reasoning": True}]).models[0]
    assert (model.input, model.reasoning) == ((ModelInput.IMAGE, ModelInput.TEXT), True)


def test_model_that_is_no_object_is_refused():
    assert refused("provider", models=[MODEL, "m"]).field == "models[1]"
    assert refused("provider", models=[MODEL | {"contextWindow": 1}]).hint == "did you mean context_window?"


# --- contributions ---


def test_contribution_is_of_the_extension_itself():
    assert read("contribution", extension_id=EXTENSION).extension_id == EXTENSION
    error = refused("contribution", extension_id="other")
    assert (error.field, error.hint) == ("extension_id", "leave it out")


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (None, "contribution"),
        ({}, "contribution.kind"),
        ({"kind": "popup"}, "contribution.kind"),
        ({"kind": "notification"}, "contribution.level"),
        (NOTE | {"level": "warn"}, "contribution.level"),
        (NOTE | {"title": ""}, "contribution.title"),
        (NOTE | {"detail": "x"}, "contribution.detail"),
        (NOTE | {"colour": "red"}, "contribution.colour"),
        ({"kind": "status_item", "label": "L", "value": ""}, "contribution.value"),
        ({"kind": "status_item", "label": "L", "value": "v", "detail": None}, "contribution.detail"),
        ({"kind": "detail_panel", "title": "T", "data": "text"}, "contribution.data"),
        ({"kind": "detail_panel", "title": "T", "data": [b"x"]}, "contribution.data[0]"),
        ({"kind": "detail_panel", "title": "T", "data": {"a": {1: 2}}}, "contribution.data.a"),
        ({"kind": "detail_panel", "title": "T", "data": {"a": float("nan")}}, "contribution.data.a"),
        ({"kind": "detail_panel", "title": "T", "data": [2**64]}, "contribution.data[0]"),
        ({"kind": "form_action", "title": "T", "schema": {}, "submit_command": "A"}, "contribution.submit_command"),
    ],
)
def test_wrong_content_is_refused_with_its_field(content, field):
    assert refused("contribution", contribution=content).field == field


def test_data_is_bounded_in_depth_and_bytes():
    def panel(data):
        return {"kind": "detail_panel", "title": "T", "data": data}

    deepest = nested(MAX_DATA_DEPTH)
    assert read("contribution", contribution=panel(deepest)).contribution.data == deepest
    error = refused("contribution", code="resource_limit", contribution=panel(nested(MAX_DATA_DEPTH + 1)))
    assert (error.field, error.reason) == ("contribution.data", "is nested deeper than 64 levels")
    largest = ["x" * (MAX_DATA_BYTES - 4)]
    assert read("contribution", contribution=panel(largest)).contribution.data == largest
    error = refused("contribution", code="resource_limit", contribution=panel([*largest, 1]))
    assert error.reason == f"must have at most {MAX_DATA_BYTES} bytes, not {MAX_DATA_BYTES + 2}"
    error = refused("contribution", code="resource_limit", contribution=panel([0] * MAX_DATA_BYTES))
    assert error.reason == f"must have at most {MAX_DATA_BYTES} bytes; so many parts take more"


def test_panel_keeps_its_title():
    panel = {"kind": "detail_panel", "title": "T", "data": [1]}
    assert read("contribution", contribution=panel).contribution == DetailPanel(title="T", data=[1])


@pytest.mark.parametrize(("priority", "given"), [("1", "text"), (None, "null"), (1.5, "1.5"), (True, "true or false")])
def test_what_stands_in_place_of_a_whole_number_is_named(priority, given):
    error = refused("prompt_section", priority=priority)
    assert (error.field, error.reason) == ("priority", f"must be a whole number, not {given}")
