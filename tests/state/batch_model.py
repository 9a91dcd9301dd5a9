"""What a state should do, in the plainest way: dictionaries, copied for each batch and for each branch."""

from __future__ import annotations

import json


def same(one, other) -> bool:
    """Equal as JSON: neither 1 and True nor 1 and 1.0 are."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


class Refused(Exception):
    """The model refuses the batch; nothing of it counts."""


class Model:
    """One extension's state."""

    def __init__(self) -> None:
        self.values, self.revisions, self.events, self.contexts = {}, {}, {}, {}
        self.revision, self.schema = 0, None

    def copy(self) -> Model:
        other = Model()
        for name, value in vars(self).items():
            setattr(other, name, dict(value) if isinstance(value, dict) else value)
        return other

    def after(self, batch, schema=1) -> Model:
        """The model after a batch; raises Refused."""
        if self.schema not in (None, schema):
            raise Refused
        new, changed = self.copy(), False
        for action in batch:
            changed |= new.take(action, self.revisions, self.revision + 1)
        if changed:
            new.revision, new.schema = self.revision + 1, schema
        return new

    def migrated(self, state, schema) -> Model:
        """The model after a migration to this state."""
        new = self.copy()
        new.revision, new.schema = self.revision + 1, schema
        new.values = dict(state)
        new.revisions = {
            key: self.revisions[key] if key in self.values and same(self.values[key], value) else new.revision
            for key, value in state.items()
        }
        return new

    def take(self, action, revisions, revision) -> bool:
        kind = action["kind"]
        key = action.get("key")
        if "if_revision" in action and revisions.get(key, 0) != (action["if_revision"] or 0):
            raise Refused
        if kind == "delete_state":
            self.revisions.pop(key, None)
            return self.values.pop(key, self) is not self
        if kind == "append_custom_event":
            return self.once(action)
        if kind == "append_model_context":
            new = [action["placement"], action["content"]]
            old = self.contexts.get(action["context_id"])
            self.contexts[action["context_id"]] = new
            return not same(old, new)
        value = self.sum(key, action["by"]) if kind == "add_state" else action["value"]
        if key in self.values and same(self.values[key], value):
            return False
        self.values[key] = value
        self.revisions[key] = revision
        return True

    def once(self, action) -> bool:
        new = [action["custom_type"], action["payload"]]
        old = self.events.setdefault(action["event_id"], new)
        if not same(old, new):
            raise Refused
        return old is new

    def sum(self, key, by):
        old = self.values.get(key, 0)
        if isinstance(old, bool) or not isinstance(old, int | float):
            raise Refused
        total = old + by
        if isinstance(total, int) and not -(2**63) <= total < 2**64:
            raise Refused
        return total


def assert_is(projection, model) -> None:
    """Everything of a projection is as the model has it."""
    assert same(projection.state(), model.values)
    assert {key: projection.revision_of(key) for key in model.values} == model.revisions
    assert same({each.event_id: [each.custom_type, each.payload] for each in projection.replay_events()}, model.events)
    contexts = {each.context_id: [each.placement, each.content] for each in projection.contexts.values()}
    assert same(contexts, model.contexts)
    assert [list(projection.events), list(projection.contexts)] == [list(model.events), list(model.contexts)]
    assert (projection.revision, projection.schema) == (model.revision, model.schema)
