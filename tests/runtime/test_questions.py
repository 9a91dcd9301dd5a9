"""Questions of extensions: what a person answers, what holds still meanwhile, and what withdraws a question."""

from __future__ import annotations

import pytest
import trio
from runtime.askers import Person, asker
from runtime.fakes import codes
from trio.testing import wait_all_tasks_blocked

from trio_exthost import AskKind, AskOutcome, CallTimedOut, Deadlines, HostClient, Limits, PayloadError


@pytest.mark.parametrize(
    ("asked", "settle", "expected"),
    [
        ({}, lambda q: q.answer(True), ("answered", True)),
        ({"default": True}, lambda q: q.answer(False), ("answered", False)),
        ({"kind": "select", "options": ["a", "b"]}, lambda q: q.answer("b"), ("answered", "b")),
        ({"kind": "input", "default": "x"}, lambda q: q.answer("\x1b\udc80"), ("answered", "\x1b\ufffd\ufffd\ufffd")),
        ({"kind": "input"}, lambda q: q.answer(""), ("answered", "")),
        ({}, lambda q: q.decline(), ("declined", None)),
        ({}, lambda q: q.cancel(), ("cancelled", None)),
        ({}, lambda q: q.unavailable(), ("unavailable", None)),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_what_the_person_says_is_told(tmp_path, autojump_clock, asked, settle, expected, at_once: bool) -> None:
    person = Person(settle if at_once else None)
    async with asker(tmp_path, person) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        await one.ask(invocation, **asked)
        (question,) = person.questions
        if not at_once:
            assert question.is_open
            assert one.told() == []
            await trio.sleep(10_000)
            assert settle(question) is True
            await wait_all_tasks_blocked()
        assert not question.is_open
        assert one.told() == [("q", *expected)]
        assert not one.instance.replies.find(invocation).patience.is_paused
        with pytest.raises(RuntimeError, match="settled before"):
            question.decline()
        await one.finish(invocation)
    assert person.withdrawn == []
    assert [result.text for result in one.results] == ["done"]


async def test_a_question_says_who_asks_what_and_where(tmp_path, autojump_clock) -> None:
    person = Person(lambda question: question.decline())
    async with asker(tmp_path, person) as one, trio.open_nursery() as nursery:
        with one.session.open_run(run_id="r") as run:
            nursery.start_soon(lambda: one.call("c", run=run))
            invocation = await one.invoked()
            more = {"message": "\x07" + "m" * 20_000, "options": ["x", "y"], "default": "y", "kind": "select"}
            await one.ask(invocation, title="t" * 20_000, **more)
            await one.ask(invocation, kind="input", default="d" * 20_000)
            await one.finish(invocation)
    first, second = person.questions
    assert (first.extension, first.kind, first.run_id, first.tool_call_id) == ("a", AskKind.SELECT, "r", "c")
    assert (len(first.title), len(first.message), first.message[0]) == (16384, 16384, "\x07")
    assert (first.options, first.default, first.session) == (("x", "y"), "y", one.session)
    assert (first.outcome, first.value, first.withdrawn) == (AskOutcome.DECLINED, None, "")
    assert len(second.default) == 16384
    assert repr(first) == "<Question select of a: declined>"


async def test_what_is_no_answer_leaves_the_question_open(tmp_path, autojump_clock) -> None:
    person = Person()
    async with asker(tmp_path, person, limits=Limits(frame_bytes=4096)) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        for kind, bad in (("confirm", 1), ("select", "c"), ("select", True), ("input", None)):
            await one.ask(invocation, kind, kind=kind, options=["a"])
            question = person.questions[-1]
            with pytest.raises(ValueError, match="is no answer to question 'Sure"):
                question.answer(bad)
            assert question.is_open
            question.decline()
        await one.ask(invocation, kind="input")
        question = person.questions[-1]
        with pytest.raises(PayloadError):
            question.answer("x" * 5000)
        assert question.is_open
        assert one.instance.replies.find(invocation).patience.is_paused
        assert question.answer("x") is True
        await one.finish(invocation)
    assert len(one.told()) == 5


@pytest.mark.parametrize("deadlines", [Deadlines(tool_s=10), Deadlines(tool_s=10, tool_maximum_s=10)])
async def test_the_clock_of_an_invocation_stands_still_and_goes_on(tmp_path, autojump_clock, deadlines) -> None:
    person = Person()
    async with asker(tmp_path, person, deadlines=deadlines) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        await trio.sleep(4)
        await one.ask(invocation, "first")
        await trio.sleep(100)
        await one.ask(invocation, "second")
        person.questions[0].answer(True)
        await trio.sleep(100)
        assert one.results == []
        person.questions[1].answer(True)
        begun = trio.current_time()
        while not one.results:
            await trio.sleep(0.5)
        assert 6 <= trio.current_time() - begun <= 7.5  # and a second of grace for a partial answer
        (error,) = one.results
        assert isinstance(error, CallTimedOut)
        assert "within 10 s" in str(error)


async def test_progress_while_a_question_is_open_gives_the_whole_idle_limit_after_it(tmp_path, autojump_clock) -> None:
    person = Person()
    async with asker(tmp_path, person, deadlines=Deadlines(tool_s=10)) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        await trio.sleep(9)
        await one.ask(invocation)
        await trio.sleep(50)
        await one.send(type="progress", id=invocation, text="waiting")
        person.questions[0].answer(True)
        await trio.sleep(9)
        await one.finish(invocation)
    assert [result.text for result in one.results] == ["done"]


async def test_a_question_with_a_time_out_is_given_up_and_the_client_is_told(tmp_path, autojump_clock) -> None:
    person = Person()
    async with asker(tmp_path, person, deadlines=Deadlines(tool_s=10)) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        tasks = len(one.instance.nursery.child_tasks)
        await one.ask(invocation, timeout_ms=60_000)
        await one.ask(invocation, "answered", timeout_ms=60_000)
        person.questions[1].answer(True)
        await wait_all_tasks_blocked()
        assert len(one.instance.nursery.child_tasks) == tasks + 1, "only one timer runs"
        await trio.sleep(59)
        assert one.told() == [("answered", "answered", True)]
        await trio.sleep(2)
        assert one.told()[1:] == [("q", "cancelled", None)]
        (question,) = person.withdrawn
        assert question is person.questions[0]
        assert question.withdrawn == "nobody answered within 60 s"
        assert question.answer(True) is False
        assert question.cancel() is False
        await trio.sleep(8)  # of the ten, nine and a bit are left
        await one.finish(invocation)
    assert [result.text for result in one.results] == ["done"]
    assert len(one.told()) == 2


@pytest.mark.parametrize(
    "end", ["answered", "failed", "malformed", "caller", "exits", "closes output", "unload", "session", "host"]
)
async def test_a_question_is_withdrawn_with_its_invocation(tmp_path, autojump_clock, end: str) -> None:
    person = Person()
    with trio.CancelScope() as everything:
        async with asker(tmp_path, person) as one, trio.open_nursery() as nursery:
            nursery.start_soon(one.call)
            invocation = await one.invoked()
            await one.ask(invocation, "1")
            await one.ask(invocation, "2", kind="input", timeout_ms=1)
            await one.ask(invocation, "3", kind="input", timeout_ms=10**9)
            match end:
                case "answered":
                    await one.finish(invocation)
                case "failed":
                    await one.send(type="invoke_result", id=invocation, error={"code": "x", "message": "y"})
                case "malformed":
                    await one.send(type="invoke_result", id=invocation, value=7)
                case "caller":
                    nursery.cancel_scope.cancel()
                case "exits":
                    one.guest.exit(3)
                case "closes output":
                    one.guest.close_stdout()
                case "unload":
                    await one.session.unload("a")
                case "session":
                    nursery.start_soon(one.session.aclose)
                case "host":
                    everything.cancel()
            await trio.sleep(1)
    assert sorted(map(id, person.withdrawn)) == sorted(map(id, person.questions))
    assert not any(question.is_open for question in person.questions)
    assert all(question.withdrawn and question.answer(True) is False for question in person.questions)
    told = [outcome for _, outcome, _ in one.told()]
    if end in ("answered", "failed", "malformed", "caller", "unload", "session"):
        assert told == ["cancelled"] * 3
    assert len({each[0] for each in one.told()}) == len(one.told())


class Broken(Person):
    def ask_user(self, session, question) -> None:
        super().ask_user(session, question)
        raise LookupError("no screen")


class Foreign:
    """No HostClient, and without callbacks."""


@pytest.mark.parametrize(
    ("client", "told"),
    [(None, []), (HostClient(), []), (Foreign(), []), (Broken(), ["callback_failed"])],
)
async def test_where_nobody_is_there_a_question_is_unavailable_at_once(tmp_path, autojump_clock, client, told) -> None:
    async with asker(tmp_path, client) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        await one.ask(invocation)
        assert one.told() == [("q", "unavailable", None)]
        assert codes(one.session.host) == told
        await one.finish(invocation)


async def test_what_a_client_said_before_it_raised_counts(tmp_path, autojump_clock) -> None:
    async with asker(tmp_path, Broken(lambda question: question.answer(True))) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        await one.ask(invocation)
        assert one.told() == [("q", "answered", True)]
        await one.finish(invocation)
