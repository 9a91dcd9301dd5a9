"""Diffs of JSON values: right, bounded, and without secrets."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values

from trio_exthost.policy.diff import CHANGES, ChangeKind, Diff, ValueChange, diff, same_json
from trio_exthost.policy.shown import MASKED, SHOWN, masked_text, path_text

ADDED, REMOVED, CHANGED = ChangeKind.ADDED, ChangeKind.REMOVED, ChangeKind.CHANGED
SECRET = "hunter2hunter2"


def apply(value, changes):
    """The model: what the changes make of the value, one after the other."""
    holder = {"": copy.deepcopy(value)}
    for change in changes:
        at, path = holder, ("", *change.path)
        for step in path[:-1]:
            at = at[step]
        if change.kind is REMOVED:
            del at[path[-1]]
        elif change.kind is ADDED and isinstance(at, list):
            at.insert(path[-1], change.after)
        else:
            at[path[-1]] = change.after
    return holder[""]


small = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", 0.0, 1.5]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(small | json_values, small | json_values)
def test_changes_applied_to_what_was_before_make_what_is_after(before, after):
    found = diff(before, after, mask=())
    assert (found == Diff()) is same_json(before, after)
    if not found.left_out and all(change.is_whole for change in found.changes):
        assert same_json(apply(before, found.changes), after)


@given(small, small)
def test_small_values_are_kept_whole(before, after):
    assert all(change.is_whole for change in diff(before, after, mask=()).changes)


@given(json_values)
def test_value_does_not_differ_from_itself(value):
    assert diff(value, copy.deepcopy(value)) == Diff()
    assert diff(value, value).explain() == "nothing changed"


names = st.sampled_from(["password", "API-Key", "x.auth.token", "client secret", "Authorization"])
texts = st.sampled_from(
    [
        f"API_KEY={SECRET} make",
        f"-H 'Authorization: Bearer {SECRET}'",
        f"https://me:{SECRET}@host/",
        f"--password {SECRET}",
    ]
)
holders = names.map(lambda name: {name: SECRET}) | names.map(lambda name: {name: [{"x": {SECRET: SECRET}}]}) | texts
secretive = st.recursive(
    holders | json_values, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
)  # fmt: skip


@given(secretive, secretive)
def test_secret_is_never_shown(before, after):
    found = diff(before, after)
    assert SECRET not in repr(found)
    assert SECRET not in found.explain()


@given(texts)
def test_secret_in_a_reason_is_never_shown(text):
    assert SECRET not in masked_text(text)
    assert MASKED in masked_text(text)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_secret_is_not_shown_wherever_the_text_is_cut(before, behind):
    texts = [f"{'x ' * (before // 2)} {SECRET}{mark}{'y' * behind}" for mark in "12"]
    mask = (rf"{SECRET}\d",)
    assert SECRET not in repr(diff(*texts, mask=mask))
    assert SECRET not in masked_text(texts[0], mask)


@given(secretive, secretive)
def test_explanation_is_a_printable_line_of_bounded_length(before, after):
    assert diff(before, after).explain().isprintable()
    assert len(diff(before, after).explain()) < 20_000


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"command": "ls"}, {"command": "ls -l"}, 'command: "ls" -> "ls -l"'),
        ({"a": {"b c": [1, 2]}}, {"a": {"b c": [1, 3]}}, 'a["b c"][1]: 2 -> 3'),
        ({"x": 1}, {"y": None}, "x: removed 1; y: added null"),
        ([1, 2, 3], [1, 3], "[1]: removed 2"),
        ([1, 2, 3], [], "[2]: removed 3; [1]: removed 2; [0]: removed 1"),
        ([1, 3], [1, 2, 3], "[1]: added 2"),
        ((1, 2), [1, 1, 2], "[1]: added 1"),
        ("a", "b", '"a" -> "b"'),
        (1, True, "1 -> true"),
        ({}, [], "{} -> []"),
        ({"password": "a"}, {"password": "b"}, 'password: "***" -> "***" (they differ in what is not shown)'),
        ({"password": {"a": 1, "b": 1}}, {"password": {"a": 2, "b": 2}}, 'password: "***" -> "***" (they differ in what is not shown)'),
        ({"api key": 1}, {}, '["api key"]: removed "***"'),
        ({}, {"env": {"MY_TOKEN": "x", "A": "b"}}, 'env: added {"MY_TOKEN": "***", "A": "b"}'),
        ({"c": "token=a b"}, {"c": "token=a c"}, 'c: "*** b" -> "*** c"'),
    ],
)  # fmt: skip
def test_diff_reads_well(before, after, text):
    assert diff(before, after).explain() == text


def test_without_a_mask_nothing_is_hidden():
    assert diff({"password": "a"}, {"password": "b"}, mask=()).explain() == 'password: "a" -> "b"'


def test_pattern_of_ones_own_hides_values_and_matches():
    found = diff({"pin": 1, "x": "is 1234 it"}, {"pin": 2, "x": "is 1234 not"}, mask=(r"\bpin\b", r"\d{4}"))
    assert found.explain().startswith('pin: "***" -> "***"')
    assert 'x: "is *** it" -> "is *** not"' in found.explain()


def test_many_changes_are_counted():
    found = diff({}, {str(each): each for each in range(1000)})
    assert (len(found.changes), found.left_out) == (CHANGES, 1000 - CHANGES)
    assert found.explain().endswith(f"; and {1000 - CHANGES} more")


def test_of_long_texts_the_part_with_the_difference_is_shown():
    (change,) = diff("a " * 700 + "old" + "." * 300, "a " * 700 + "new" + "." * 300).changes
    assert change.before.startswith("...a a")
    assert change.before.endswith("... (1703 characters)")
    assert ("old" in change.before, "new" in change.after, change.is_whole) == (True, True, False)


def test_of_long_texts_that_differ_in_what_is_shown_anyway_nothing_is_left_out_before():
    for place, start in ((SHOWN // 2, ""), (SHOWN // 2 + 1, "...")):
        (change,) = diff("a" * place + "b" * SHOWN, "a" * place + "c" * SHOWN).changes
        assert change.before.startswith(f"{start}a")
    (change,) = diff("a" * (SHOWN - 1) + "b", "a" * (SHOWN - 1) + "c").changes
    assert (change.before, change.is_whole) == ("a" * (SHOWN - 1) + "b", True)


def test_each_value_is_shown_in_no_more_than_there_is_room_for():
    change = ValueChange((), ChangeKind.CHANGED, "b" * 100, "a" * 100)
    assert len(change.explain(20)) < 100


def test_difference_behind_what_is_searched_is_told_but_not_shown():
    (change,) = diff("a" * 5000 + "b", "a" * 5000 + "c", mask=()).changes
    assert change.before == change.after
    assert change.explain().endswith("(they differ in what is not shown)")


class Odd:
    def __repr__(self):
        return "odd"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float("nan"), "nan"),
        (10**20, "a number of more than 20 digits"),
        (-(10**5000), "a number of more than 20 digits"),
        (list(range(30)), [*range(20), "... 10 more"]),
        ({str(each): 0 for each in range(21)}, {**{str(each): 0 for each in range(20)}, "...": "1 more"}),
        ({"k" * 65: 0}, {"k" * 64 + "...": 0}),
        ({7: 0}, {"7": 0}),
        ("x" * 201, "x" * 200 + "... (201 characters)"),
        ([[[[[[[[[1]]]]]]]]], [[[[[[[["..."]]]]]]]]),
        ([[[[[[[[{"a": 1}]]]]]]]], [[[[[[[["..."]]]]]]]]),
        (Odd(), "odd"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_large_or_no_json_is_cut_and_marked(value, kept):
    (change,) = diff(None, value, mask=()).changes
    assert (change.after, change.is_whole) == (kept, False)


@pytest.mark.parametrize("value", [[[[[[[[[]]]]]]]], [[[[[[[[{}]]]]]]]], 10**20 - 1, "x" * 200])
def test_what_just_fits_is_whole(value):
    (change,) = diff(None, value, mask=()).changes
    assert (change.after, change.is_whole) == (value, True)


def test_size_and_work_are_bounded_in_all():
    wide = [{f"k{each}": "t" * 5000 for each in range(20)} for _ in range(20)]
    deep = [[[[{str(each): [] for each in range(20)} for _ in range(20)] for _ in range(20)] for _ in range(20)]]
    found = diff({}, {"wide": wide, "deep": deep, "text": "t" * 50, "last": ""})
    assert len(json.dumps([change.after for change in found.changes])) < 150_000
    *_, text, last = found.changes
    assert (text.after, text.is_whole) == (MASKED, False)  # no longer looked at, so it might be secret
    assert last.after == MASKED
    unmasked = diff({}, {"wide": wide, "text": "t" * 50, "last": ""}, mask=()).changes
    assert [(change.after, change.is_whole) for change in unmasked[1:]] == [("... (50 characters)", False), ("", True)]


def test_text_of_hostile_repetition_is_searched_in_bounded_steps():
    for word in ("token", "-", "--token ", "sk-", "eyJa.", "://a:", "-----BEGIN PRIVATE KEY-----", 'password":"'):
        found = diff("", word * 100_000)
        assert len(found.changes[0].after) < SHOWN + 40


def test_path_is_written_as_code():
    assert path_text(("a", 0, "b-c", "d e", "\x1b")) == 'a[0].b-c["d e"]["\\u001b"]'
    assert ValueChange((), ADDED, None, 1).explain() == "added 1"


@pytest.mark.parametrize("nasty", ["\x1b[2J", "\r", "\n", "\x00", "\x9b31m", "\u202e", "\u2028", "\ud800"])
def test_no_character_steers_a_terminal(nasty):
    assert diff({nasty: nasty}, {nasty: nasty * 2, f"{nasty}2": {nasty: [nasty]}}).explain().isprintable()
