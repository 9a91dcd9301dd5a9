"""A state machine over a session's state and its store: groups of operations, forks, compaction and restarts, beside a model.

The model is a dictionary of extensions for each position, copied when a position is made. After each step the selected
branch is compared, and after each restart, fork and compaction every branch.
"""

from __future__ import annotations

import itertools

from action_strategies import actions
from batch_model import Model, Refused, assert_is
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from trio_exthost.errors import PositionError, StateRefused, StoreFailed
from trio_exthost.state.actions import read_actions
from trio_exthost.state.branches import Advance, Checkout, Commit, Migrate
from trio_exthost.state.committed import Committed
from trio_exthost.state.projection import replay
from trio_exthost.state.session_state import SessionState
from trio_exthost.state.tree import Position, path_to

EXTENSIONS = ("todo", "audit")
batches = st.lists(actions, min_size=1, max_size=4)
extensions = st.sampled_from(EXTENSIONS)
operations = st.one_of(
    st.tuples(st.just("commit"), extensions, batches),
    st.tuples(st.just("commit"), extensions, batches),
    st.tuples(st.just("advance"), st.integers(0, 30)),
    st.tuples(st.just("checkout"), st.integers(0, 30)),
)


class Failing:
    """A store whose next writes fail, as a full disk would make them."""

    def __init__(self, store) -> None:
        self._store = store
        self.failures = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def append_group(self, records, *, selected) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreFailed("the disk is full", path="session.db")
        self._store.append_group(records, selected=selected)


class StoreMachine(RuleBasedStateMachine):
    """Give it `new_stores` and `restarted` and it runs."""

    def new_stores(self):
        raise NotImplementedError

    def restarted(self, stores):
        """The same stores, as another process finds them."""
        return stores

    @initialize()
    def begin(self) -> None:
        self.numbers = itertools.count(1)
        self.session = "session"
        self.stores = self.new_stores()
        self.models = {"": {}}
        self.born = {}
        """What a position had when it was made: all that a fork through it takes along of its parent."""
        self.selected = ""
        self.schemas = dict.fromkeys(EXTENSIONS, 1)
        self.open()

    # --- helpers -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.store = Failing(self.stores.open_session(self.session))
        self.state = SessionState(self.store)

    def write(self, *todo):
        written = self.state.write(todo)
        self.state.publish(written)
        return written.outcomes

    def prepared(self, models, selected, step):
        """The operation, and on the given models what is expected of it: the kind of its outcome, and where it leads."""
        word, *rest = step
        if word == "advance":
            name = f"entry {rest[0]}"
            if name in models:
                return Advance(name), PositionError, selected
            models[name] = self.born[name] = dict(models[selected])
            return Advance(name), Position, name
        if word == "checkout":
            name = f"entry {rest[0]}" if rest[0] else ""
            return Checkout(name), Position if name in models else PositionError, name if name in models else selected
        extension, batch = rest
        schema = self.schemas[extension]
        commit = Commit(
            extension=extension, schema=schema, sequence=next(self.numbers),
            actions=read_actions(batch, extension=extension),
        )  # fmt: skip
        try:
            expected = models[selected].get(extension, Model()).after(batch, schema)
        except Refused:
            return commit, StateRefused, selected
        if expected.revision:
            models[selected] = {**models[selected], extension: expected}
        return commit, Committed, selected

    def check_every_branch(self, store) -> None:
        tree = store.load_tree().tree
        assert set(tree.positions) == set(self.models)
        for name, models in self.models.items():
            loaded = replay(each.body for each in store.load_branch(path_to(tree.find(name))))
            assert loaded.keys() == models.keys()
            for extension, model in models.items():
                assert_is(loaded[extension], model)

    # --- rules -------------------------------------------------------------------------------------------------------

    @rule(steps=st.lists(operations, min_size=1, max_size=5))
    def write_a_group(self, steps) -> None:
        models, selected, todo, wanted = dict(self.models), self.selected, [], []
        for step in steps:
            operation, kind, selected = self.prepared(models, selected, step)
            todo.append(operation)
            wanted.append(kind)
        outcomes = self.write(*todo)
        for outcome, kind in zip(outcomes, wanted, strict=True):
            assert isinstance(outcome, kind)
        self.models, self.selected = models, selected

    @rule(extension=extensions, batch=batches, name=st.integers(0, 30))
    def a_group_that_cannot_be_written_leaves_nothing(self, extension, batch, name) -> None:
        models, born = dict(self.models), dict(self.born)
        commit, kind, _ = self.prepared(models, self.selected, ("commit", extension, batch))
        advance, moved, _ = self.prepared(models, self.selected, ("advance", name))
        old, new = (each[self.selected].get(extension, Model()).revision for each in (self.models, models))
        self.born = born
        self.store.failures = 1
        first, second = self.write(commit, advance)
        self.store.failures = 0
        tried = moved is Position or old != new
        assert type(first) is StoreFailed if kind is Committed and tried else isinstance(first, kind)
        assert type(second) is (StoreFailed if moved is Position else PositionError)
        assert first is not second

    @rule(extension=extensions, state=st.dictionaries(st.sampled_from("abcxyz"), st.integers(0, 3), max_size=4))
    def migrate(self, extension, state) -> None:
        base = self.state.projection(extension)
        schema = max(self.schemas[extension], base.schema or 0) + 1
        self.schemas[extension] = schema
        if base.schema is None:
            return
        migrate = Migrate(base=base, state=state, to_schema=schema, sequence=next(self.numbers))
        first, again = self.write(migrate, migrate)
        assert isinstance(first, Committed)
        assert isinstance(again, StateRefused)
        assert again.code == "conflict"
        here = self.models[self.selected]
        self.models[self.selected] = {**here, extension: here[extension].migrated(state, schema)}

    @rule()
    def restart(self) -> None:
        before, last_sequence = self.state.tree, self.store.load_tree().last_sequence
        self.state.close()
        self.stores = self.restarted(self.stores)
        self.open()
        assert self.state.tree.next_row == before.next_row
        assert self.state.last_sequence == last_sequence
        self.check_every_branch(self.store)

    @rule()
    def compact(self) -> None:
        before = self.store.load_tree()
        stored = sum(1 for _ in self.state.history())
        done = self.state.compact()
        assert done.batches_before == stored
        assert done.batches_after == sum(1 for _ in self.state.history()) <= done.batches_before
        assert done.bytes_after == sum(len(each.body) for each in self.state.history()) <= done.bytes_before
        after = self.store.load_tree()
        assert (after.tree.next_row, after.last_sequence) == (before.tree.next_row, before.last_sequence)
        self.check_every_branch(self.store)
        again = self.state.compact()
        assert (again.batches_after, again.bytes_after) == (done.batches_after, done.bytes_after)

    @rule(number=st.integers(0, 99), go_on_there=st.booleans())
    def fork(self, number, go_on_there) -> None:
        name = list(self.models)[number % len(self.models)]
        new_session = f"fork {next(self.numbers)}"
        target = self.stores.open_session(new_session)
        self.state.fork(name, target)
        way = [each.name for each in self.state.tree.find(name).way()]
        theirs = {parent: self.born[child] for child, parent in itertools.pairwise(way)} | {name: self.models[name]}
        ours, self.models = self.models, theirs
        self.check_every_branch(target)
        assert target.load_tree().tree.selected.name == name
        target.close()
        if go_on_there:
            self.state.close()
            self.session, self.selected = new_session, name
            self.open()
        else:
            self.models = ours

    @invariant()
    def the_selected_branch_is_as_the_model_has_it(self) -> None:
        if not hasattr(self, "state"):
            return
        assert self.state.tree.selected.name == self.selected
        here = self.models[self.selected]
        assert self.state.projections.keys() == here.keys()
        for extension, model in here.items():
            assert_is(self.state.projection(extension), model)

    def teardown(self) -> None:
        if hasattr(self, "state"):
            self.check_every_branch(self.store)
            self.state.close()
