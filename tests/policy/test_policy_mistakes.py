"""What a policy made in a program refuses to be; a file is refused for the same."""

import pytest
from policy_strategies import CAN_BLOCK

from trio_exthost.errors import PolicyError
from trio_exthost.policy import ExtensionPolicy, PointPolicy, Policy


def guard(*guards, **more):
    return ExtensionPolicy(required=True, guards=guards, **more)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PointPolicy(on_failure="blok"), 'on_failure: must be allow or block, not "blok"'),
        (lambda: PointPolicy(on_failure=1), "on_failure: must be allow or block, not a number"),
        (lambda: PointPolicy(deadline_s=0), "deadline_s: must be above 0 and at most 86400 seconds, not 0"),
        (lambda: PointPolicy(deadline_s=True), "deadline_s: must be a number of seconds, not true or false"),
        (lambda: PointPolicy(deadline_s=float("nan")), "deadline_s: must be above 0 and at most 86400 seconds, not nan"),
        (lambda: ExtensionPolicy(restart_delay_s=-1), "restart_delay_s: must be from 0 to 86400 seconds, not -1"),
        (
            lambda: ExtensionPolicy(restart_window_s=10**5000),
            "restart_window_s: must be above 0 and at most 86400 seconds, not a number of more than 20 digits",
        ),
        (
            lambda: ExtensionPolicy(restart_budget=0),
            'restart_budget: must be from 1 to 1000, not 0 (restart = "never" allows none)',
        ),
        (lambda: ExtensionPolicy(restart_budget=1001), "restart_budget: must be from 1 to 1000, not 1001"),
        (lambda: ExtensionPolicy(restart_budget=2.5), "restart_budget: must be a whole number, not 2.5"),
        (lambda: ExtensionPolicy(restart_budget="2"), "restart_budget: must be a whole number, not text"),
        (lambda: ExtensionPolicy(required="yes"), "required: must be true or false, not text"),
        (
            lambda: ExtensionPolicy(guards="tool:bash"),
            "guards: must be a list of texts, not text (in brackets, each in quotes)",
        ),
        (lambda: guard("tool:a*"), 'guards[0]: "a*" is no name of a tool (name one tool, or tool:* for all)'),
        (lambda: guard("tool:"), 'guards[0]: "" is no name of a tool (name one tool, or tool:* for all)'),
        (lambda: guard("turn_strat"), 'guards[0]: "turn_strat" cannot be guarded (did you mean turn_start?)'),
        (
            lambda: guard("bash"),
            f'guards[0]: "bash" cannot be guarded (known are tool:<name>, tool:*, {", ".join(CAN_BLOCK)})',
        ),
        (lambda: guard("tool_result"), "guards[0]: nothing can be refused at tool_result, so nothing can guard it"),
        (lambda: guard("tool:a", 3), "guards[1]: must be text, not a number"),
        (lambda: guard("tool:a", "tool:a"), 'guards[1]: "tool:a" stands twice'),
        (
            lambda: ExtensionPolicy(grant=["tools.overide:bash"]),
            'grant[0]: "tools.overide:bash" is no permission (did you mean tools.override?)',
        ),
        (
            lambda: ExtensionPolicy(guards=["tool:a"]),
            "guards: only an extension that is required guards (set required = true, or take guards out)",
        ),
        (
            lambda: ExtensionPolicy(required=True),
            'required: has no effect without guards (say what is refused while it is not there, such as guards = ["tool:*"])',
        ),
        (
            lambda: ExtensionPolicy(on_absent="refuse", grant=["tools.override"]),
            'on_absent: there is no tool that this is about (it goes with grant = ["tools.override:<name>"])',
        ),
        (
            lambda: ExtensionPolicy(restart_delay_s=31),
            "restart_delay_s: the first delay, 31 s, is longer than the longest (restart_delay_max_s is 30 unless set)",
        ),
        (
            lambda: ExtensionPolicy(restart_delay_max_s=0.5),
            "restart_delay_max_s: the first delay, 1 s, is longer than the longest (restart_delay_max_s is 0.5)",
        ),
        (
            lambda: ExtensionPolicy(points={"toolcall": PointPolicy(deadline_s=1)}),
            'toolcall: "toolcall" is no point (did you mean tool_call?)',
        ),
        (
            lambda: ExtensionPolicy(points={"assistant_message": PointPolicy(stream="show")}),
            "assistant_message.stream: cannot be set here (set it in [defaults.assistant_message])",
        ),
        (lambda: ExtensionPolicy(points={"tool_call": {}}), "tool_call: must be a PointPolicy, not a table"),
        (
            lambda: Policy(defaults={"tool_result": PointPolicy(on_failure="block")}),
            ("defaults.tool_result.on_failure: nothing can be refused at tool_result: "
            "without an answer the value stays as it is"),
        ),
        (
            lambda: Policy(defaults={"tool_call": PointPolicy(stream="show")}),
            "defaults.tool_call.stream: cannot be set here (set it in [defaults.assistant_message])",
        ),
        (lambda: Policy(defaults={"tool_call": None}), "defaults.tool_call: must be a PointPolicy, not a NoneType"),
        (lambda: Policy(extensions={"x": None}), "extensions.x: must be an ExtensionPolicy, not a NoneType"),
        (
            lambda: Policy(extensions={" x": ExtensionPolicy()}),
            'extensions." x": " x" is no name (1 to 128 printable characters, no space at the ends)',
        ),
        (lambda: Policy(extensions={3: ExtensionPolicy()}), "extensions.3: must be a name, not a number"),
        (lambda: Policy(headless_ask="ask"), 'headless_ask: must be allow or block, not "ask"'),
        (lambda: Policy(prefer={"a": 3}), "conflicts.prefer.a: must be a name, not a number"),
        (lambda: Policy(prefer={3: "a"}), "conflicts.prefer.3: must be a name, not a number"),
        (
            lambda: Policy(prefer={"tool:": "a"}),
            'conflicts.prefer."tool:": "" is no name (1 to 128 printable characters, no space at the ends)',
        ),
        (
            lambda: Policy(prefer={"Go": "a", "go": "b"}),
            ("conflicts.prefer.go: conflicts.prefer.Go says another winner "
            "(commands are compared without regard to case)"),
        ),
    ],
)  # fmt: skip
def test_mistake_is_told_with_its_key_and_the_way_out(make, message):
    with pytest.raises(PolicyError) as caught:
        make()
    assert str(caught.value) == message
    assert caught.value.problems == (caught.value,)


def test_point_whose_name_is_no_text_is_refused():
    with pytest.raises(PolicyError, match="a point must be text, not a number"):
        ExtensionPolicy(points={3: PointPolicy()})


def test_all_mistakes_of_a_value_are_told_at_once():
    with pytest.raises(PolicyError) as caught:
        guard("tool:", "bash", on_absent=None)
    assert [each.where for each in caught.value.problems] == ["guards[0]", "guards[1]"]
    assert str(caught.value).startswith("2 mistakes\n  guards[0]: ")


def test_text_of_very_many_mistakes_is_bounded_and_all_are_kept():
    with pytest.raises(PolicyError) as caught:
        guard(*map(str, range(1000)))
    assert len(caught.value.problems) == 1000
    assert str(caught.value).startswith("1000 mistakes\n  guards[0]: ")
    assert str(caught.value).endswith("\n  and 950 more")
    assert str(caught.value).count("\n") == 51
