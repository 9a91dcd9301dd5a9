"""A hook's descriptor: what it may say, and what it says of its contract."""

import pytest
from hook_samples import EXTENSION, contract
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.effects import EffectKind, Registrant, Scope, read_descriptor
from trio_exthost.errors import RegistrationRefused
from trio_exthost.hooks import DISPATCHED, Hook, HookClass, HookEvent, classes_of, hook_rules, read_hook

EVERY = frozenset(HookEvent)
PLACES = [(event, hook_class) for event in HookEvent for hook_class in classes_of(event)]
OPTIONAL = ("allowed_actions", "deadline", "delivery", "failure", "priority", "payload_schema")


def read(**raw):
    return read_hook({key.removesuffix("_"): value for key, value in raw.items()}, EXTENSION, Scope.SESSION)


def refused(**raw):
    with pytest.raises(RegistrationRefused) as caught:
        read(**raw)
    assert caught.value.extension == EXTENSION
    return caught.value


def spelled_out(found):
    return {
        "event": found.event.value,
        "class": found.hook_class.value,
        "allowed_actions": sorted(found.allowed_actions),
        "deadline": found.deadline.value,
        "delivery": found.delivery.value,
        "failure": found.failure.value,
    }


def test_least_hook_has_the_class_of_its_point_and_is_asked_about_all():
    assert read(event="tool_call") == Hook(
        event=HookEvent.TOOL_CALL,
        hook_class=HookClass.GATE,
        payload_schema=None,
        priority=0,
        contract=contract(HookEvent.TOOL_CALL, HookClass.GATE),
        scope=Scope.SESSION,
    )


def test_hook_may_observe_where_others_decide():
    hook = read(event="tool_call", class_="observe", priority=-1_000_000)
    assert (hook.hook_class, hook.priority) == (HookClass.OBSERVE, -1_000_000)
    assert hook.contract.allowed_actions == frozenset()


@pytest.mark.parametrize("everything", [{"type": "object"}, True])
def test_schema_that_lets_every_payload_pass_is_none(everything):
    assert read(event="input", payload_schema=everything).payload_schema is None


def test_schema_is_compiled_and_tells_payloads_apart():
    only_bash = {"properties": {"tool_call": {"properties": {"name": {"const": "bash"}}}}}
    schema = read(event="tool_call", payload_schema=only_bash).payload_schema
    assert schema is not None
    assert schema.matches({"tool_call": {"name": "bash"}})
    assert not schema.matches({"tool_call": {"name": "read"}})


@given(data=st.data(), place=st.sampled_from(PLACES))
def test_own_contract_may_be_spelled_out_in_any_order_and_in_part(data, place):
    found = contract(*place)
    full = spelled_out(found) | {"priority": 7, "payload_schema": {"type": "object"}}
    kept = data.draw(st.sets(st.sampled_from(OPTIONAL)))
    full["allowed_actions"] = data.draw(st.permutations(full["allowed_actions"]))
    keys = data.draw(st.permutations(["event", "class", *kept]))
    hook = read_hook({key: full[key] for key in keys}, EXTENSION, Scope.RUN, dispatched=EVERY)
    assert hook.contract is found
    assert (hook.priority, hook.scope) == (7 if "priority" in kept else 0, Scope.RUN)


@given(place=st.sampled_from(PLACES), other=st.sampled_from(PLACES))
def test_contract_of_another_place_is_refused_where_it_differs(place, other):
    mine, wanted = spelled_out(contract(*place)), spelled_out(contract(*other))
    raw = wanted | {"event": mine["event"], "class": mine["class"]}
    if raw == mine:
        assert read_hook(raw, EXTENSION, Scope.SESSION, dispatched=EVERY).contract is contract(*place)
        return
    with pytest.raises(RegistrationRefused) as caught:
        read_hook(raw, EXTENSION, Scope.SESSION, dispatched=EVERY)
    assert caught.value.code == "invalid_payload"
    assert mine[caught.value.field] != wanted[caught.value.field]


# --- what is refused ---


def test_point_that_does_not_exist_is_refused_with_the_nearest():
    error = refused(event="tool_cal")
    assert (error.code, error.field, error.hint) == ("invalid_payload", "event", "did you mean tool_call?")


def test_point_that_is_not_dispatched_is_refused_with_where_they_stand():
    error = refused(event="before_provider_request_raw")
    assert (error.code, error.field) == ("event_not_dispatched", "event")
    assert "hello_ack.dialect.events" in error.hint


def test_agent_with_fewer_points_dispatches_no_other():
    with pytest.raises(RegistrationRefused) as caught:
        read_hook({"event": "context"}, EXTENSION, Scope.SESSION, dispatched=DISPATCHED - {HookEvent.CONTEXT})
    assert caught.value.code == "event_not_dispatched"


@pytest.mark.parametrize(
    ("event", "hook_class", "both"),
    [
        ("tool_call", "transform", "gate or observe, not transform"),
        ("input", "gate", "transform or observe, not gate"),
        ("session_start", "register", "observe, not register"),
        ("extension_load", "gate", "observe or register, not gate"),
    ],
)
def test_class_that_a_point_does_not_have_is_refused_with_those_it_has(event, hook_class, both):
    error = refused(event=event, class_=hook_class)
    assert (error.code, error.field) == ("invalid_payload", "class")
    assert both in error.reason


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("deadline", "long", "the contract of message_delta (transform) has standard, and this has long"),
        ("delivery", "bounded_coalescing", "has inline, and this has bounded_coalescing"),
        ("failure", "deny", "has keep_last_value, and this has deny"),
        ("failure", "explode", "must be one of continue, keep_last_value, deny, reject_registration"),
        ("deadline", None, "must be text, not null"),
        ("allowed_actions", ["replace_text"], 'and this has "replace_text"'),
        ("allowed_actions", [], "and this has none"),
        ("allowed_actions", "replace_text", "must be an array"),
        ("priority", 1_000_001, "must be from -1000000 to 1000000"),
        ("scope", "run", "is not known here"),
    ],
)
def test_what_differs_from_the_contract_is_refused_with_both_sides(key, value, says):
    error = refused(event="message_delta", **{key: value})
    assert (error.code, error.field) == ("invalid_payload", key)
    assert says in error.reason


def test_actions_are_texts_and_none_stands_twice():
    assert refused(event="input", allowed_actions=["set_state", "set_state"]).field == "allowed_actions[1]"
    error = refused(event="input", allowed_actions=[3])
    assert (error.field, error.reason) == ("allowed_actions[0]", "must be text, not a number")


def test_schema_that_is_none_is_refused_with_its_place():
    assert refused(event="input", payload_schema={"type": "thing"}).field.startswith("payload_schema")


@pytest.mark.parametrize("raw", [None, [], "tool_call"])
def test_hook_is_an_object(raw):
    with pytest.raises(RegistrationRefused, match="must be an object"):
        read_hook(raw, EXTENSION, Scope.SESSION)


def test_event_must_be_there():
    assert refused(priority=1).reason == "is missing"


# --- registering ---


def register(raw, granted=()):
    registrant = Registrant(extension_id=EXTENSION, scope=Scope.RUN, granted=granted)
    return read_descriptor("hook", raw, registrant=registrant, kinds={EffectKind.HOOK: hook_rules(EVERY)})


def test_key_of_a_hook_is_extension_event_and_class_and_its_scope_the_manifests():
    admitted = register({"event": "input", "class": "observe"})
    assert admitted.key == f"{EXTENSION}:input:observe"
    assert (admitted.kind, admitted.descriptor.scope, admitted.override) == (EffectKind.HOOK, Scope.RUN, False)


@pytest.mark.parametrize("event", sorted(EVERY - DISPATCHED))
@pytest.mark.parametrize("hook_class", ["transform", "observe"])
def test_what_goes_to_a_provider_is_shown_with_permission_only(event, hook_class):
    raw = {"event": event.value, "class": hook_class}
    with pytest.raises(RegistrationRefused, match=r"needs the permission provider\.raw") as caught:
        register(raw, ["session.write"])
    assert (caught.value.code, caught.value.field) == ("permission_denied", "event")
    assert caught.value.extension == EXTENSION
    assert register(raw, ["provider.raw"]).descriptor.event is event


def test_rules_are_for_the_points_that_are_dispatched():
    registrant = Registrant(extension_id=EXTENSION, granted=["provider.raw"])
    with pytest.raises(RegistrationRefused) as caught:
        read_descriptor(
            "hook",
            {"event": "before_provider_request_raw"},
            registrant=registrant,
            kinds={EffectKind.HOOK: hook_rules()},
        )
    assert caught.value.code == "event_not_dispatched"
