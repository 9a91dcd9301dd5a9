"""A policy as a file: what is read, what is written, and how mistakes are told."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_strategies import policies

from trio_exthost.errors import PolicyError
from trio_exthost.policy import POINTS, ExtensionPolicy, PointPolicy, Policy, Rule
from trio_exthost.policy.checks import EXTENSION_READERS, POINT_READERS
from trio_exthost.policy.policy_file import LIMIT_BYTES, load_policy, parse_policy

EXAMPLE = """\
[defaults]
headless_ask = "allow"
[defaults.tool_call]
on_failure = "block"
deadline_s = 5
[defaults.assistant_message]
stream = "show"
[extensions.sandbox]
required = true
guards = ["tool:bash"]
grant = ["tools.override:bash"]
on_absent = "refuse"
restart = "on_crash"
restart_budget = 3
restart_window_s = 30
restart_delay_s = 0
restart_delay_max_s = 10.5
headless_ask = "block"
[extensions.sandbox.tool_call]
on_failure = "allow"
deadline_s = 2.5
[extensions.idle]
[conflicts]
prefer = { search = "web", "command:deploy" = "ops" }
"""
SAME = Policy(
    defaults={
        "tool_call": PointPolicy(on_failure="block", deadline_s=5),
        "assistant_message": PointPolicy(stream="show"),
    },
    headless_ask="allow",
    extensions={
        "sandbox": ExtensionPolicy(
            required=True,
            guards=["tool:bash"],
            grant=["tools.override:bash"],
            on_absent="refuse",
            restart="on_crash",
            restart_budget=3,
            restart_window_s=30,
            restart_delay_s=0,
            restart_delay_max_s=10.5,
            headless_ask="block",
            points={"tool_call": PointPolicy(on_failure="allow", deadline_s=2.5)},
        ),
        "idle": ExtensionPolicy(),
    },
    prefer={"search": "web", "command:deploy": "ops"},
)


def refusal(text, file=""):
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, file=file)
    return caught.value


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "[defaults]\n[extensions]\n[conflicts]\n", "[defaults.tool_call]\n"]
)
def test_file_that_says_nothing_is_the_policy_that_says_nothing(text):
    assert parse_policy(text) == Policy()


def test_file_and_program_give_equal_policies():
    assert parse_policy(EXAMPLE) == SAME


def test_example_of_the_documentation_means_what_it_says():
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    policy = parse_policy(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])
    assert policy.guards("tool:bash") == ("sandbox",)
    assert policy.reserved_tools() == {"bash": ("sandbox",)}
    assert policy.on_failure("sandbox", "tool_call", tool="bash").rule is Rule.REQUIRED_GUARD
    assert policy.on_failure("slow-review", "tool_call").where == "extensions.slow-review.tool_call.on_failure"
    python = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    names = {}
    exec(python, names)
    assert names["policy"].guards("tool:bash") == ("sandbox",)


def test_every_setting_and_point_stands_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    for word in (*EXTENSION_READERS, *POINT_READERS, *POINTS, *Rule):
        assert f"`{word}`" in page


@given(policies)
def test_any_policy_comes_back_from_its_text(policy):
    text = policy.to_toml()
    again = parse_policy(text)
    assert again == policy
    assert again.to_toml() == text
    assert list(again.extensions) == list(policy.extensions)


def test_text_says_only_what_the_policy_says():
    assert Policy().to_toml() == ""
    assert Policy(extensions={"a b": ExtensionPolicy(restart_delay_s=0)}).to_toml() == (
        '[extensions."a b"]\nrestart_delay_s = 0\n'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("default = 1", "p.toml at default: is not known here (did you mean defaults?)"),
        ("qqq = 1", "p.toml at qqq: is not known here (known are defaults, extensions, conflicts)"),
        ("defaults = 1", "p.toml at defaults: must be a table, not a number (write [defaults])"),
        ("extensions = []", "p.toml at extensions: must be a table, not a list (write [extensions])"),
        (
            "[defaults.toolcall]",
            "p.toml at defaults.toolcall: is not known here (did you mean tool_call?)",
        ),
        ('[defaults.tool_call]\non_fail = "block"', "p.toml at defaults.tool_call.on_fail: is not known here (did you mean on_failure?)"),
        ("[conflicts]\nprefers = {}", "p.toml at conflicts.prefers: is not known here (did you mean prefer?)"),
        ("[extensions.x]\nrequird = true", "p.toml at extensions.x.requird: is not known here (did you mean required?)"),
        (
            "[extensions.my.ext]\nrestart = 'never'",
            ("p.toml at extensions.my.ext: is not known here (known are required, guards, grant, on_absent, restart, "
            "restart_budget, restart_window_s, restart_delay_s, restart_delay_max_s, headless_ask, the points)"),
        ),
        ("[extensions]\nx = 2024-01-01", "p.toml at extensions.x: must be a table, not a date (write [extensions.x])"),
        (
            "[extensions.x]\nrestart = 10:00:00",
            "p.toml at extensions.x.restart: must be never or on_crash, not a time",
        ),
        (
            '[extensions."a.b"]\nguards = ["tool:x"]',
            ('p.toml at extensions."a.b".guards: only an extension that is required guards '
            "(set required = true, or take guards out)"),
        ),
        (
            "[extensions.x]\ngrant = ['session.write', 1]",
            "p.toml at extensions.x.grant[1]: must be text, not a number",
        ),
        ("[defaults]\nheadless_ask = 'ask'", 'p.toml at defaults.headless_ask: must be allow or block, not "ask"'),
        (
            "[defaults.tool_call]\nstream = 'show'",
            "p.toml at defaults.tool_call.stream: cannot be set here (set it in [defaults.assistant_message])",
        ),
        ("[conflicts.prefer]\na = 1", "p.toml at conflicts.prefer.a: must be a name, not a number"),
        ("a =", "p.toml at end of document: is no TOML: invalid value"),
        ("\n\n  a = 1 b", "p.toml at line 3, column 9: is no TOML: expected newline or end of document after a statement"),
        ("a = 1\na = 2\n", "p.toml at line 2, column 6: is no TOML: cannot overwrite a value"),
        ("['a (at b)']\n['a (at b)']", "p.toml at line 2, column 12: is no TOML: cannot declare ('a (at b)',) twice"),
        ("a = " + "[" * 20_000, "p.toml: the values are nested too deeply"),
        ("a = " + "9" * 5000, "p.toml: a number has too many digits"),
    ],
)  # fmt: skip
def test_mistake_is_told_with_file_and_place(text, message):
    assert str(refusal(text, "p.toml")) == message


def test_all_mistakes_of_a_file_are_told_at_once():
    error = refusal(
        """
        [defaults]
        headless_ask = "ask"
        [extensions.x]
        required = true
        restart = "always"
        [extensions.x.tool_call]
        deadline_s = 0
        [extensions.y]
        required = true
        on_absent = "restore"
        [conflicts.prefer]
        a = ""
        """,
        "p.toml",
    )
    assert [each.where for each in error.problems] == [
        "extensions.x.restart",
        "extensions.x.tool_call.deadline_s",
        "extensions.y.required",
        "extensions.y.on_absent",
        "defaults.headless_ask",
        "conflicts.prefer.a",
    ]
    assert str(error).split("\n")[0] == "p.toml: 6 mistakes"
    assert str(error).split("\n")[1] == '  extensions.x.restart: must be never or on_crash, not "always"'
    assert {each.path for each in error.problems} == {"p.toml"}
    assert error.code == "policy_invalid"


LEAVES = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES | st.sampled_from(["block", "never", "tool:bash", "tools.override"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def toml(value):
    """The value in TOML, or its absence."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return quoted(value) if isinstance(value, str) else "[]" if value is None else repr(value).lower()


def quoted(text):
    return '"' + "".join(f"\\U{ord(each):08x}" if each not in "abc" else each for each in text) + '"'


KEYS = [
    "defaults", "defaults.headless_ask", "defaults.tool_call", "defaults.tool_call.on_failure", "extensions",
    "extensions.x", "extensions.x.required", "extensions.x.guards", "extensions.x.grant", "extensions.x.restart_budget",
    "extensions.x.turn_start", "extensions.x.turn_start.deadline_s", "conflicts", "conflicts.prefer",
    "conflicts.prefer.a", "other",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_any_file_is_a_policy_or_refused_with_places(entries):
    text = "".join(f"{key} = {toml(value)}\n" for key, value in entries.items())
    policy, error = attempt(text)
    if error is None:
        assert parse_policy(policy.to_toml()) == policy
    else:
        assert error.path == "p.toml"
        assert all(each.where for each in error.problems)
        assert all(each.isprintable() or each == "\n" for each in str(error))


def attempt(text):
    try:
        return parse_policy(text, file="p.toml"), None
    except PolicyError as error:
        return None, error


# --- on disk ---


def test_file_is_read_with_a_byte_order_mark_and_crlf(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xef\xbb\xbf" + EXAMPLE.replace("\n", "\r\n").encode())
    assert Policy.from_toml(path) == Policy.from_toml(str(path)) == load_policy(path) == SAME


def test_mistake_in_a_file_names_it(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text("a = \n")
    with pytest.raises(PolicyError) as caught:
        Policy.from_toml(path)
    assert (caught.value.path, caught.value.where) == (str(path), "line 1, column 5")


def test_file_that_is_not_there_or_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(PolicyError, match=r"gone\.toml: cannot be read: No such file or directory"):
        Policy.from_toml(tmp_path / "gone.toml")
    with pytest.raises(PolicyError, match="cannot be read: Is a directory"):
        Policy.from_toml(tmp_path)
    with pytest.raises(PolicyError, match="cannot be read: embedded null byte"):
        Policy.from_toml("a\0b")
    with pytest.raises(PolicyError, match=r"'\\udcff': cannot be read"):
        Policy.from_toml(os.fsdecode(b"\xff"))


def test_file_that_is_not_utf8_is_refused_with_the_line(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(b"# one\n# \xff\n# three\n\n")
    with pytest.raises(PolicyError, match=r"policy\.toml at line 2: is not UTF-8 \(save it as UTF-8\)"):
        Policy.from_toml(path)


def test_file_that_is_too_large_is_refused_unread(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(b"#" * (LIMIT_BYTES + 1))
    with pytest.raises(PolicyError, match="is larger than 1048576 bytes"):
        Policy.from_toml(path)
    path.write_bytes(b"#" * LIMIT_BYTES)
    assert Policy.from_toml(path) == Policy()
