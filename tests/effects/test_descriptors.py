"""The rules and limits of each descriptor, at the limit and beyond it."""

from __future__ import annotations

import pytest
from descriptor_strategies import ANY_OBJECT, BASE, EVERYTHING, EXTENSION, read, refused

from trio_exthost.effects import (
    Command,
    CommandLink,
    Contribution,
    Migration,
    Model,
    ModelInput,
    Predicate,
    PromptSection,
    Provider,
    ProviderFormat,
    RequestPolicy,
    Scope,
    StatusItem,
    Tool,
    ToolPermission,
    compile_schema,
    read_descriptor,
    to_wire,
)
from trio_exthost.effects.descriptors_fields import MAX_TEXT_BYTES
from trio_exthost.errors import RegistrationRefused

REQUIRED = [(kind, key) for kind, raw in BASE.items() for key in raw]


# --- what is read ---


def test_least_descriptor_of_each_kind_gets_its_defaults():
    schema = compile_schema(ANY_OBJECT)
    scope = Scope.PROCESS  # that of the manifest
    assert [read(kind) for kind in BASE] == [
        Tool(name="look", label="Look", description="Looks.", input_schema=schema, scope=scope),
        Command(name="deploy", description="Deploys.", argument_schema=schema, scope=scope),
        Provider(
            provider_id="own",
            base_url="https://models.example/v1",
            format=ProviderFormat.OPENAI_RESPONSES,
            models=(Model(id="m-1", name="M", context_window=1000, max_tokens=10, input=(ModelInput.TEXT,)),),
            scope=scope,
        ),
        PromptSection(section_id="style", text="Be brief.", scope=scope),
        RequestPolicy(policy_id="trim", scope=scope),
        Contribution(
            contribution_id="note",
            extension_id=EXTENSION,
            contribution=read("contribution").contribution,
            scope=scope,
        ),
        Migration(scope=scope),
    ]


def test_full_tool_is_read():
    tool = read("tool", result_schema=True, permission="prompt", scope="run", override=True)
    assert tool.result_schema == compile_schema(True)
    assert (tool.permission, tool.scope, tool.override) == (ToolPermission.PROMPT, Scope.RUN, True)


def test_command_has_label_and_availability():
    command = read("command", label="Deploy it", availability={"models": ["m"]})
    assert command.label == "Deploy it"
    assert command.availability == Predicate(models=("m",))


def test_contents_of_a_contribution_are_read_by_their_kind():
    item = read("contribution", contribution={"kind": "status_item", "label": "CPU", "value": "3 %", "detail": "ok"})
    assert item.contribution == StatusItem(label="CPU", value="3 %", detail="ok")
    link = read("contribution", contribution={"kind": "command", "command": "deploy"})
    assert link.contribution == CommandLink(command="deploy")
    assert to_wire(link)["contribution"] == {"kind": "command", "command": "deploy"}


def test_migration_has_nothing_on_the_wire():
    assert to_wire(read("migration")) == {}


# --- names, texts, numbers ---


@pytest.mark.parametrize(("kind", "key"), REQUIRED)
def test_required_key_that_is_missing_is_named(kind, key):
    error = refused(kind, **{key: ...})
    assert (error.field, error.reason) == (key, "is missing")


@pytest.mark.parametrize("kind", sorted(BASE))
def test_unknown_key_is_refused(kind):
    assert refused(kind, colour="red").field == "colour"


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        ("tool", "input_shema", "input_schema"),
        ("command", "argumentSchema", "argument_schema"),
        ("provider", "model", "models"),
    ],
)
def test_misspelt_key_is_told_the_nearest(kind, wrong, right):
    assert refused(kind, **{wrong: 1}).hint == f"did you mean {right}?"


def test_unknown_key_like_nothing_is_told_all_keys():
    assert refused("request_policy", zzz=1).hint == "known are policy_id, priority, predicate, scope"


def test_key_that_is_no_word_is_shown_quoted():
    assert refused("migration", **{"a b\n": 1}).field == '["a b\\n"]'


@pytest.mark.parametrize(
    ("kind", "key"),
    [("tool", "name"), ("provider", "provider_id"), ("prompt_section", "section_id"), ("request_policy", "policy_id"),
     ("contribution", "contribution_id")],
)  # fmt: skip
def test_name_has_1_to_128_plain_characters(kind, key):
    for good in ("a", "A.b-c_9", "-", "x" * 128):
        assert getattr(read(kind, **{key: good}), key) == good
    for bad in ("", "x" * 129, "a b", "a/b", "é", "a\n"):
        assert refused(kind, **{key: bad}).field == key


def test_command_name_has_1_to_64_lower_case_characters():
    for good in ("a", "a-b", "9", "x" * 64, "a--b"):
        assert read("command", name=good).name == good
    for bad in ("", "x" * 65, "A", "-a", "a-", "a_b", "/a", "a\n"):
        assert refused("command", name=bad).field == "name"
    assert refused("contribution", contribution={"kind": "command", "command": "-"}).field == "contribution.command"


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("tool", "label"),
        ("tool", "description"),
        ("command", "label"),
        ("command", "description"),
        ("prompt_section", "text"),
    ],
)
def test_text_says_something_in_at_most_16_kib(kind, key):
    assert getattr(read(kind, **{key: "x" * MAX_TEXT_BYTES}), key) == "x" * 16_384
    assert getattr(read(kind, **{key: "é" * (MAX_TEXT_BYTES // 2)}), key)
    assert "at most 16384 bytes, not 16385" in refused(kind, **{key: "x" * 16_385}).reason
    assert "at most 16384 bytes, not 16386" in refused(kind, **{key: "é" * 8193}).reason
    for bad in ("", " \n\t", None, 1, "half \ud800"):
        assert refused(kind, **{key: bad}).field == key


@pytest.mark.parametrize("kind", ["prompt_section", "request_policy"])
def test_priority_is_within_a_million(kind):
    for good in (-1_000_000, 0, 1_000_000):
        assert read(kind, priority=good).priority == good
    for bad in (-1_000_001, 1_000_001, 10**5000, 1.5, 1.0, True, "1", None):
        assert refused(kind, priority=bad).field == "priority"
    assert refused(kind, priority=10**5000).reason == "must be from -1000000 to 1000000, not one of 16610 bits"


def test_words_of_closed_sets_are_told():
    error = refused("tool", permission="alow")
    assert error.reason == 'must be one of allow, prompt, block, not "alow"'
    assert error.hint == "did you mean allow?"
    assert refused("tool", permission="zzz").hint == ""
    assert refused("tool", scope="global").field == "scope"
    assert refused("tool", override="yes").reason == "must be true or false, not text"


# --- schemas ---


def test_schema_is_refused_with_the_place_in_it():
    error = refused("tool", input_schema={"properties": {"a b": {"type": "strin"}}})
    assert error.field == 'input_schema.properties["a b"].type'


@pytest.mark.parametrize("good", [True, False, {}])
def test_schema_of_a_tool_is_an_object_or_a_bool(good):
    assert read("tool", input_schema=good, result_schema=good).result_schema.raw == good


@pytest.mark.parametrize("bad", [True, False, None, [], "{}", 1])
def test_schema_of_arguments_and_forms_is_an_object(bad):
    assert refused("command", argument_schema=bad).field == "argument_schema"
    form = {"kind": "form_action", "title": "T", "schema": bad, "submit_command": "go"}
    assert refused("contribution", contribution=form).field == "contribution.schema"


def test_message_has_extension_field_and_way_out():
    error = refused("tool", lable="x")
    assert str(error) == "guard: lable: is not known here (did you mean label?)"


def test_keys_must_be_text():
    with pytest.raises(RegistrationRefused) as caught:
        read_descriptor("tool", {1: 2}, registrant=EVERYTHING)
    assert caught.value.field == "descriptor"
