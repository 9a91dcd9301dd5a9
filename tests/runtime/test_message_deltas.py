"""Text under streaming: pieces, holds, several hooks, and no split of a stream that lets a secret through."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime.hookers import action, gate, hooker, invoked, observed
from runtime.test_hook_chain import hooked

SECRET = re.compile(r"sk-[a-z0-9]{8}")
LONGEST = len("sk-") + 8


def redact(event, payload):
    """A redactor that is sure of all but the last characters that may begin a secret."""
    text = SECRET.sub("[secret]", payload["text"])
    return action("replace_text", text=text, hold=0 if payload["final"] else min(LONGEST - 1, len(text)))


REDACTOR = hooker({"event": "message_delta"}, reply=redact)


async def stream(session, pieces, *, pause_s=0.0):
    with session.open_run() as run:
        async with run.assistant_text("m1") as text:
            shown = [await text.feed(pieces[0])] if pieces else []
            for piece in pieces[1:]:
                await trio.sleep(pause_s)
                shown.append(await text.feed(piece))
            shown.append(await text.finish())
    return shown, text


@given(
    parts=st.lists(
        st.sampled_from(["sk-abcdefg1", "sk-12345678", "sk-", "plain words ", "s", "k", "-", "x" * 300]), max_size=12
    ),
    data=st.data(),
)
@settings(deadline=None, max_examples=30)
def test_no_split_of_the_stream_lets_a_secret_through(parts, data) -> None:
    whole = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=10)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    pause_s = data.draw(st.sampled_from([0.0, 0.06, 0.2]))

    async def main() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with hooked(Path(directory), {"a": REDACTOR}) as (session, _):
                shown, text = await stream(session, pieces, pause_s=pause_s)
                assert "".join(shown) == SECRET.sub("[secret]", whole)
                assert text.text == text.message["content"] == "".join(shown)
                assert text.original == whole

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_piece_is_256_characters_or_what_came_in_100_ms(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": hooker({"event": "message_delta"})}) as (session, guests):
        shown, _ = await stream(session, ["x" * 100, "y" * 156, "z" * 5, "z" * 5], pause_s=0.05)
        assert [len(each) for each in shown] == [0, 256, 0, 0, 10]
        payloads = [each["payload"] for each in invoked(guests["a"])]
        assert [(each["offset"], len(each["text"]), each["final"]) for each in payloads] == [
            (0, 256, False),
            (256, 10, True),
        ]
        guests["a"].received.clear()
        shown, _ = await stream(session, ["a", "b", "c"], pause_s=0.11)
        assert shown == ["", "ab", "", "c"]


async def test_what_is_held_comes_again_in_front_of_the_next_piece(tmp_path, autojump_clock) -> None:
    program = hooker(
        {"event": "message_delta"},
        reply=lambda _, payload: action("replace_text", text=payload["text"], hold=0 if payload["final"] else 2),
    )
    async with hooked(tmp_path, {"a": program}) as (session, guests):
        shown, _ = await stream(session, ["abcd", "efgh", "ij"], pause_s=0.2)
        assert shown == ["", "abcdef", "", "ghij"]
        payloads = [each["payload"] for each in invoked(guests["a"])]
        assert [(each["offset"], each["text"], each["final"]) for each in payloads] == [
            (0, "abcdefgh", False),
            (6, "ghij", True),
        ]


async def test_each_hook_has_a_hold_of_its_own(tmp_path, autojump_clock) -> None:
    def hold(count):
        return lambda _, payload: action(
            "replace_text", text=payload["text"], hold=0 if payload["final"] else min(count, len(payload["text"]))
        )

    programs = {
        "a": hooker({"event": "message_delta"}, reply=hold(3)),
        "b": hooker({"event": "message_delta"}, reply=hold(2)),
    }
    async with hooked(tmp_path, programs) as (session, guests):
        shown, _ = await stream(session, ["abcde", "fghij", "klmno"], pause_s=0.2)
        assert "".join(shown) == "abcdefghijklmno"
        assert shown[1] == "abcde"  # of ten, three are held by one and two by the other
        assert invoked(guests["b"])[0]["payload"]["text"] == "abcdefg"


async def test_a_hook_that_fails_or_goes_lets_its_text_go_on_to_the_others(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        if "fail" in payload["text"]:
            return action("replace_text", text="", hold=1)
        return action("replace_text", text=payload["text"], hold=0 if payload["final"] else 1)

    programs = {"a": hooker({"event": "message_delta"}, reply=reply), "b": REDACTOR}
    async with hooked(tmp_path, programs) as (session, _):
        with session.open_run() as run:
            async with run.assistant_text("m1") as text:
                shown = await text.feed("x" * 256)
                await session.unload("a")
                shown += await text.feed("fail" + "y" * 256)
                shown += await text.finish()
                assert shown == "x" * 256 + "fail" + "y" * 256
        # The same where it is there, and its answer is not usable.
    async with hooked(tmp_path, programs) as (session, _):
        shown, _ = await stream(session, ["x" * 256, "fail" + "y" * 256])
        assert "".join(shown) == "x" * 256 + "fail" + "y" * 256


async def test_the_message_is_replaced_at_its_end_and_the_role_stays(tmp_path, autojump_clock) -> None:
    programs = {
        "a": hooker(
            {"event": "message_end"},
            reply=lambda *_: action("replace_message", message={"role": "assistant", "content": "better"}),
        ),
        "b": hooker(
            {"event": "message_end"},
            reply=lambda *_: action("replace_message", message={"role": "user", "content": "worse"}),
        ),
        "c": hooker(events=["assistant_message"]),
    }
    async with hooked(tmp_path, programs) as (session, guests):
        shown, text = await stream(session, ["plain"])
        assert shown == ["plain", ""]  # what was shown cannot be taken back
        assert (text.text, text.message["content"], text.original) == ("better", "better", "plain")
        await trio.testing.wait_all_tasks_blocked()
        assert [frame["text"] for frame in observed(guests["c"])] == ["better"]


async def test_a_message_with_more_than_text_keeps_what_it_has(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": REDACTOR}) as (session, _):
        with session.open_run() as run:
            async with run.assistant_text("m1") as text:
                await text.feed("the key is sk-abcdefg1")
                calls = [{"id": "t1", "name": "x"}]
                await text.finish({"role": "assistant", "content": "the key is sk-abcdefg1", "tool_calls": calls})
        assert text.message == {"role": "assistant", "content": "the key is [secret]", "tool_calls": calls, "id": "m1"}


async def test_nothing_is_shown_while_somebody_intercepts_the_whole_and_hooks_still_see_it(
    tmp_path, autojump_clock
) -> None:
    async def zot(guest):
        guest.greet(intercept=["assistant_message"])
        frame = await guest.frames("event_intercept")
        assert "sk-" not in frame["text"]
        guest.send(type="event_intercept_response", id=frame["id"], replace_text=frame["text"].upper())
        await guest.until_shutdown()

    async with hooked(tmp_path, {"a": REDACTOR, "zot": zot}) as (session, _):
        shown, text = await stream(session, ["key sk-abcde", "fg1 end" + "x" * 300])
        assert shown == ["", "", "KEY [SECRET] END" + "X" * 300]
        assert text.message["content"] == "key [secret] end" + "x" * 300


async def test_updates_coalesce_while_an_observer_does_not_read(tmp_path, autojump_clock) -> None:
    """Never reordered, the newest never lost, and every one that was passed over counted."""

    go = trio.Event()

    async def slow(guest):
        guest.greet(capabilities=["effects"], ready=False, events=["noise"])
        for number, event in enumerate(("message_update", "message_end"), 1):
            guest.send(
                type="register", registration_id=number, kind="hook", descriptor={"event": event, "class": "observe"}
            )
        guest.send(type="ready")
        await guest.frames("registered")
        await guest.frames("registered")
        await go.wait()
        await guest.until_shutdown()

    async with hooked(tmp_path, {"a": slow}) as (session, guests):
        filler = {"text": "f" * 30_000}
        with session.open_run() as run:
            async with run.assistant_text("m1") as text:
                for number in range(100):
                    if number == 10:
                        for _ in range(4):  # fills the pipe
                            session.emit("noise", filler)
                    if number == 60:
                        session.emit("noise", {"text": "between"})
                    await text.feed(f"{number} ")
                    await trio.testing.wait_all_tasks_blocked()
            assert len(session.observing.streams) == 0
        go.set()
        await trio.testing.wait_all_tasks_blocked()
        frames = guests["a"].received
        updates = [frame for frame in frames if frame.get("event") == "message_update"]
        assert len(updates) + sum(frame.get("dropped", 0) for frame in updates) == 100
        assert updates[-1]["payload"]["message"]["content"] == text.text
        assert updates[-1]["dropped"] > 80
        numbers = [frame["sequence"] for frame in frames if frame["type"] == "event"]
        assert numbers == sorted(numbers)
        assert [frame["event"] for frame in frames if frame["type"] == "event"][-3:] == [
            "noise",
            "message_update",
            "message_end",
        ]


async def test_a_gate_at_a_tool_call_is_no_part_of_streaming(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": hooker({"event": "tool_call"}, reply=lambda *_: gate("deny"))}) as (session, _):
        shown, _ = await stream(session, ["a", "b"])
        assert shown == ["a", "b", ""]
