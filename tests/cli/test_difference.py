"""Two texts are cut around their difference, not before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.difference import CONTEXT, LEAST, around

TEXTS = st.text(alphabet="ab. ", max_size=200)


@st.composite
def edits(draw) -> tuple[str, str]:
    """A text, and the same with a piece replaced."""
    head, old, new, tail = (draw(TEXTS) for _ in range(4))
    return head + old + tail, head + new + tail


@given(edits(), st.integers(LEAST, 100))
def test_what_is_shown_is_short_and_differs_where_the_texts_do(edit: tuple[str, str], most: int) -> None:
    before, after = edit
    one, other = around(before, after, most)
    assert max(len(one), len(other)) <= most
    assert (one == other) == (before == after)
    for shown, text in ((one, before), (other, after)):
        assert text == shown or any(piece in text for piece in (shown[3:], shown[:-3], shown[3:-3]))


def test_long_texts_that_fit_are_whole() -> None:
    assert around("a", "b" * 60) == ("a", "b" * 60)


def test_difference_at_the_end_of_a_long_text_is_shown_with_what_is_before_it() -> None:
    same = "x" * 500
    assert around(same + "KEY", same + "[redacted]") == (
        "..." + "x" * CONTEXT + "KEY",
        "..." + "x" * CONTEXT + "[redacted]",
    )


def test_difference_in_the_middle_has_dots_on_both_sides() -> None:
    one, other = around("p" * 100 + "1" + "s" * 100, "p" * 100 + "2" + "s" * 100)
    assert one == f"...{'p' * CONTEXT}1{'s' * CONTEXT}..."
    assert other == one.replace("1", "2")


def test_long_difference_is_cut_at_its_end() -> None:
    one, other = around("", "b" * 500)
    assert one == ""
    assert other == "b" * 57 + "..."
