"""Answers that come twice, late, under a wrong id or of a wrong type, or to somebody else's question."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.real.programs import GOOD, Place, assert_good_answers, codes_of, row_of, running, text_of

from trio_exthost import CallTimedOut, Deadlines

SOON = Deadlines(ready_cap_s=30, tool_s=0.4, stop_grace_s=0.3, term_grace_s=0.2)


async def test_a_second_answer_to_one_call_is_told_and_goes_to_nobody(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("twice", "serve(lambda f: [result(f['id'], f['args']['n'] + again) for again in ('', '!')], tools=['t'])")
    async with running(place) as (host, session):
        for n in ("1", "2", "3"):
            assert text_of(await session.call_tool("t", {"n": n})) == n
        await session.unload("twice")
        assert codes_of(host, "twice") == ["reply_unknown"] * 3


async def test_a_late_answer_is_never_the_next_calls(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "late",
        "def on_call(f):\n"
        "    if f['args']['n'] == '1': wait_for('go')\n"
        "    result(f['id'], f['args']['n'])\n"
        "serve(on_call, tools=['t'])",
    )
    async with running(place, deadlines=SOON) as (host, session):
        with pytest.raises(CallTimedOut):
            await session.call_tool("t", {"n": "1"})
        place.signal("go")
        assert text_of(await session.call_tool("t", {"n": "2"})) == "2"
        assert codes_of(host, "late") == ["call_timed_out", "reply_late"]


WRONG = {
    "a number": "int(id)",
    "null": "None",
    "true": "True",
    "none at all": "...",
    "a made-up one": "'4711'",
    "with a space": "id + ' '",
}


@pytest.mark.parametrize("kind", WRONG)
async def test_an_answer_under_a_wrong_id_is_told_and_the_call_ends_in_time(tmp_path, kind: str) -> None:
    place = Place(tmp_path)
    place.add(
        "wrong",
        "def on_call(f):\n"
        "    id = f['id']\n"
        f"    frame = {{'type': 'tool_result', 'id': {WRONG[kind]}, 'content': []}}\n"
        "    send(**{k: v for k, v in frame.items() if v is not ...})\n"
        "serve(on_call, tools=['t'])",
    )
    place.add("good", GOOD)
    async with running(place, deadlines=SOON) as (host, session):
        with pytest.raises(CallTimedOut):
            await session.call_tool("t", {})
        told = codes_of(host, "wrong")
        assert told in (["reply_unknown", "call_timed_out"], ["frame_invalid", "call_timed_out"])
        assert row_of(session, "wrong").state == "ready"
        await assert_good_answers(session)


async def test_an_answer_of_another_type_leaves_the_call_open(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "wrong",
        "serve(lambda f: (send(type='command_response', id=f['id']), result(f['id'], 'ok')), tools=['t'])",
    )
    async with running(place) as (host, session):
        assert text_of(await session.call_tool("t", {})) == "ok"
        assert codes_of(host, "wrong") == ["reply_wrong_type"]


async def test_an_answer_to_another_extensions_call_is_refused(tmp_path) -> None:
    place = Place(tmp_path)
    # The victim's question is the host's next id: the thief answers under the ids that follow its own.
    place.add(
        "thief",
        "serve(lambda f: (wait_for('asked'), [result(str(int(f['id']) + i), 'stolen') for i in (1, 2, 3)]), tools=['steal'])",
    )
    place.add("victim", "serve(lambda f: (wait_for('stolen'), result(f['id'], 'mine')), tools=['t'])")
    async with running(place) as (host, session):
        answers: list[str] = []

        async def ask_victim() -> None:
            answers.append(text_of(await session.call_tool("t", {})))
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.call_tool, "steal", {})
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask_victim)
            await trio.testing.wait_all_tasks_blocked()
            place.signal("asked")
            while codes_of(host, "thief").count("reply_unknown") < 3:
                await trio.sleep(0.005)
            place.signal("stolen")
        assert answers == ["mine"]
