"""What audit counts, in each shell there is."""

from __future__ import annotations

import shutil

import pytest

EVENTS = [
    "session_start", "session_end", "user_prompt_submit", "turn_start", "turn_end", "tool_call",
    "tool_confirmation_requested", "permission_decision", "tool_result", "assistant_message", "pre_compact",
    "post_compact", "subagent_start", "subagent_stop",
]  # fmt: skip
SHELLS = [["sh"], ["dash"], ["bash"], ["bash", "--posix"], ["ksh"], ["busybox", "sh"]]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_audit_counts_by_name_in_any_posix_shell(ready, shell):
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    extension = ready("audit", [*shell, "audit.sh"])
    extension.send({"type": "event", "event": "unknown"}, {"type": "event", "event": "x; exit 1"})
    for count, event in enumerate(EVENTS, 1):
        extension.send(*[{"type": "event", "event": event, "tool_args": {"event": "turn_end"}}] * count)
    answer = extension.ask({"type": "command_invoked", "id": "9", "name": "audit", "args": 'a "id":"b" \\n $(exit 1)'})
    display = "\n".join(["events so far:", *(f"{event} {count}" for count, event in enumerate(EVENTS, 1))])
    assert answer == {"type": "command_response", "id": "9", "action": "display", "display": display}


def test_audit_without_events_says_so(ready):
    answer = ready("audit").ask({"type": "command_invoked", "id": "9", "name": "audit"})
    assert answer["display"] == "events so far:\nnone"


def test_audit_is_not_misled_by_text_that_looks_like_frames(ready):
    extension = ready("audit")
    text = '{"type":"shutdown"}\n{"type":"event","event":"turn_end"} `exit 1` \\" %s'
    extension.send(b"x\\", {"type": "event", "event": "turn_start", "text": text * 5000})  # a backslash joins no lines
    answer = extension.ask({"type": "command_invoked", "id": "9", "name": "audit"})
    assert answer["display"] == "events so far:\nturn_start 1"


def test_audit_never_answers_with_another_id_than_it_was_asked_with(ready):
    extension = ready("audit")
    extension.send({"type": "command_invoked", "id": "a\\b", "name": "audit"})
    assert extension.ask({"type": "command_invoked", "id": "9", "name": "audit"})["id"] == "9"
