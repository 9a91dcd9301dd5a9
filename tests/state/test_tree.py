"""The tree of positions: who sees which rows, by names of the embedder's own; and back from what a store kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import PositionError, StoreDamaged
from trio_exthost.state.tree import BEGINNING, LAST_ROW, ROOT, Tree, path_to, read_tree

steps = st.lists(st.sampled_from(["advance", "batch", "batch", "checkout"]) | st.integers(0, 20), max_size=40)


def walk(plan):
    """A tree after a plan, where its batches are, and which of them a position sees: a list copied at each advance."""
    tree, batches, sees = Tree(), [], {BEGINNING: []}
    for number, step in enumerate(plan):
        if step == "advance":
            before = sees[tree.selected.name]
            tree = tree.advance(f"entry {number}")
            sees[tree.selected.name] = list(before)
        elif step == "batch":
            batches.append((tree.next_row, tree.selected.row))
            sees[tree.selected.name].append(tree.next_row)
            tree = tree.with_row()
        elif step == "checkout":
            tree = tree.checkout(tree.selected.parent.name if tree.selected.parent else BEGINNING)
        else:
            names = list(tree.positions)
            tree = tree.checkout(names[step % len(names)])
    return tree, batches, sees


def rows_of(path, batches):
    until = dict(path)
    return [row for row, position in batches if position in until and row < until[position]]


@given(steps)
def test_a_position_sees_what_its_parent_had_when_it_was_made_and_what_was_committed_under_it(plan):
    tree, batches, sees = walk(plan)
    for name, rows in sees.items():
        path = path_to(tree.find(name))
        assert rows_of(path, batches) == rows
        assert path[0][0] == 0
        assert path[-1] == (tree.find(name).row, LAST_ROW)
        assert list(path) == sorted(path)


@given(steps)
def test_what_a_store_kept_gives_the_same_tree(plan):
    tree, batches, _ = walk(plan)
    kept = [(each.row, each.name, each.parent.row) for each in tree.positions.values() if each.parent is not None]
    last_row = max([row for row, _ in batches] + [row for row, _, _ in kept], default=0)
    again = read_tree(kept, selected=tree.selected.row, last_row=last_row)
    assert again.next_row == tree.next_row
    assert again.selected.name == tree.selected.name
    assert list(again.positions) == list(tree.positions)
    assert [path_to(each) for each in again.positions.values()] == [path_to(each) for each in tree.positions.values()]


def test_it_begins_at_the_beginning():
    tree = Tree()
    assert tree.selected is ROOT
    assert (ROOT.row, ROOT.name, ROOT.parent) == (0, "", None)
    assert path_to(ROOT) == ((0, LAST_ROW),)
    assert tree.checkout(BEGINNING) == tree


def test_an_older_tree_stays_as_it_is():
    first = Tree().advance("a")
    first.advance("b")
    assert list(first.positions) == ["", "a"]
    assert first.selected.name == "a"
    assert [each.name for each in first.advance("b").selected.way()] == ["b", "a", ""]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 257, "\ud800", "\x85"])
def test_a_position_needs_a_name(name):
    with pytest.raises(PositionError, match="an entry id must be 1 to 256 characters, none of control"):
        Tree().advance(name)


def test_a_name_is_of_one_position():
    with pytest.raises(PositionError, match='has a position "a" already') as caught:
        Tree().advance("a").checkout("").advance("a")
    assert caught.value.code == "position_invalid"
    assert "checkout" in caught.value.hint


def test_nobody_goes_where_nothing_is():
    with pytest.raises(PositionError, match='no position "b"') as caught:
        Tree().advance("a").checkout("b")
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "a", 5)],
        [(0, "a", 0)],
        [(-1, "a", 0)],
        [(1, "a", 0), (1, "b", 0)],
        [(1, "a", 0), (2, "a", 0)],
        [(2, "b", 1), (1, "a", 0)],
        [(1, "", 0)],
        [(1, "a", 1)],
    ],
)
def test_rows_that_are_no_tree_are_damage(rows):
    with pytest.raises(StoreDamaged, match="has no place in the tree"):
        read_tree(rows, selected=0, last_row=9)


def test_a_selected_position_that_is_not_there_is_damage():
    with pytest.raises(StoreDamaged, match="the selected position, in row 4, is not there"):
        read_tree([(1, "a", 0)], selected=4, last_row=4)
