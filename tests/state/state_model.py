"""A naive model of durable state: a dictionary per position, copied when a position is made."""

from __future__ import annotations

import copy
import json


def text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def same(one, other):
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def empty():
    return {"values": {}, "revisions": {}, "events": {}, "contexts": {}, "revision": 0}


def live_bytes(state):
    return (
        sum(len(key.encode()) + len(text(value).encode()) for key, value in state["values"].items())
        + sum(len(id) + len(kind) + len(text(payload).encode()) for id, (kind, payload) in state["events"].items())
        + sum(len(id) + len(text(content).encode()) for id, (_, content) in state["contexts"].items())
    )


class Refused(Exception):
    pass


def applied(before, actions, max_live_bytes):
    """The state after all of the actions, or Refused with the code."""
    state = copy.deepcopy(before)
    values, events, contexts = state["values"], state["events"], state["contexts"]
    touched, changed = set(), False
    for action in actions:
        key = action.get("key")
        if "if_revision" in action and (action["if_revision"] or 0) != before["revisions"].get(key, 0):
            raise Refused("conflict")
        match action["kind"]:
            case "set_state" | "add_state":
                value = action.get("value")
                if action["kind"] == "add_state":
                    old = values.get(key, 0)
                    if type(old) not in (int, float):
                        raise Refused("invalid_payload")
                    value = old + action["by"]
                if key not in values or not same(values[key], value):
                    values[key] = value
                    touched.add(key)
                    changed = True
            case "delete_state":
                if key in values:
                    del values[key]
                    touched.add(key)
                    changed = True
            case "append_custom_event":
                new = (action["custom_type"], action["payload"])
                old = events.get(action["event_id"])
                if old is None:
                    events[action["event_id"]] = new
                    changed = True
                elif old[0] != new[0] or not same(old[1], new[1]):
                    raise Refused("conflict")
            case "append_model_context":
                new = (action["placement"], action["content"])
                old = contexts.get(action["context_id"])
                if old is None or old[0] != new[0] or not same(old[1], new[1]):
                    contexts[action["context_id"]] = new
                    changed = True
    if not changed:
        return before
    if live_bytes(state) > max(max_live_bytes, live_bytes(before)):
        raise Refused("resource_limit")
    state["revision"] += 1
    for key in touched:
        state["revisions"].pop(key, None)
        if key in values:
            state["revisions"][key] = state["revision"]
    return state


def of_projection(projection):
    """A projection in the model's form."""
    return {
        "values": projection.state(),
        "revisions": {key: projection.revision_of(key) for key in projection.values},
        "events": {each.event_id: (each.custom_type, each.payload) for each in projection.replay_events()},
        "contexts": {each.context_id: (str(each.placement), each.content) for each in projection.contexts.values()},
        "revision": projection.revision,
    }


def shown(state):
    """A state with everything in it whose order counts, and the types of its numbers."""
    order = [list(state["events"]), list(state["contexts"])]
    return json.dumps(state, sort_keys=True), order
