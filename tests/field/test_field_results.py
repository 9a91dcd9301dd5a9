"""Cases from the field: results that are too large for a frame, for a model, or for an event."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import trio
from field.helpers_b import offers
from runtime.fakes import Guest, world
from runtime.puppets import ALL, answer, do, puppet, register, result, tool
from runtime.real.programs import Place, row_of, running, text_of

from trio_exthost import CallError, Limits


async def test_c61_5_mib_are_refused_at_once_and_less_is_cut_only_where_others_are_told(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("big", "serve(lambda f: result(f['id'], 'ä' * f['args']['n']), tools=['t'])")
    place.add(
        "told",
        "greet(events=['tool_result'], tools=['seen'])\nlast = {}\nfor f in frames():\n"
        "    if f['type'] == 'event': last = f['result']\n"
        "    if f['type'] == 'tool_call':\n"
        "        block = last['content'][0]['text']\n"
        "        result(f['id'], f\"{last.get('truncated')} {len(block.encode())} {set(block)}\")",
    )
    async with running(place) as (host, session):
        with pytest.raises(CallError, match="4194305 bytes or more"):
            await session.call_tool("t", {"n": 5 << 20})
        with session.open_run() as run:
            async with run.tool_call("1", "t", {"n": 300_000}) as call:
                assert (await call.execute()).text == "ä" * 300_000
        assert text_of(await session.call_tool("seen", {})) == f"True {host.config.limits.event_body_bytes} {{'ä'}}"


LARGE = "serve(lambda f: result(f['id'], 'ä' * f['args']['n']), tools=['t'])"


async def test_c61_5_mib_of_text_are_cut_and_marked_and_kept_whole_in_a_file(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("big", LARGE)
    limits = Limits(frame_bytes=16 << 20)
    async with running(place, limits=limits) as (host, session):
        result = await session.call_tool("t", {"n": 5 << 19})
        assert result.truncated
        assert len("".join(block.text for block in result.content).encode()) <= limits.tool_result_bytes
        shown, note = result.content
        assert set(shown.text) == {"ä"}
        (file,) = (tmp_path / "data" / "results").iterdir()
        assert note.text == (
            f"[truncated: the tool gave {5 << 20} bytes of text, more than the {1 << 20} allowed; full text in {file}]"
        )
        assert file.read_text() == "ä" * (5 << 19)
        assert file.stat().st_mode & 0o777 == 0o600
        assert result.details["full_text"] == str(file)
        (told,) = [each.message for each in host.diagnostics if each.code == "result_truncated"]
        assert (
            "exthost.tool_result_bytes in its manifest, or limits.tool_result_bytes of the host, is the limit" in told
        )


async def test_c61_the_limit_is_the_extensions_own_up_to_the_operators_maximum(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("small", LARGE.replace("'t'", "'small'"), tool_result_bytes=300)
    place.add("large", LARGE.replace("'t'", "'large'"), tool_result_bytes=5000)
    place.add("greedy", LARGE.replace("'t'", "'greedy'"), tool_result_bytes=5001)
    limits = Limits(tool_result_bytes=1000, tool_result_maximum_bytes=5000, kept_results=2)
    async with running(place, limits=limits) as (_host, session):
        for name, limit in (("small", 300), ("large", 5000), ("greedy", 5000)):
            whole = await session.call_tool(name, {"n": limit // 2})
            assert (whole.text, whole.truncated) == ("ä" * (limit // 2), False)
            cut = await session.call_tool(name, {"n": limit})
            assert cut.truncated
            assert len("".join(block.text for block in cut.content).encode()) <= limit
        warning = "exthost.tool_result_bytes asks for 5001, and gets 5000: the operator's maximum (limits.tool_result_maximum_bytes)"
        assert [row_of(session, name).warnings for name in ("small", "large", "greedy")] == [(), (), (warning,)]
        kept = {each.name.split("-")[0] for each in (tmp_path / "data" / "results").iterdir()}
        assert kept == {"large", "greedy"}, "of all files, the newest stay"


async def test_c61_where_no_file_can_be_written_the_note_says_so(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("big", LARGE, tool_result_bytes=400)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "results").write_text("in the way")
    async with running(place) as (_host, session):
        result = await session.call_tool("t", {"n": 1000})
        assert f"the full text could not be kept in {tmp_path}/data/results: File exists]" in result.text
        assert "full_text" not in result.details
        assert result.truncated


async def test_c61_images_stay_whole_where_text_is_cut_also_in_the_effect_dialect(tmp_path, autojump_clock) -> None:
    image = {"type": "image", "mime_type": "image/png", "data": base64.b64encode(b"x" * 900).decode()}
    blocks = [
        {"type": "text", "text": "a" * 100},
        image,
        {"type": "text", "text": "b" * 900},
        {"type": "text", "text": "c"},
    ]
    async with (
        world(tmp_path, limits=Limits(tool_result_bytes=700)) as (around, host),
        host.open_session("s") as session,
    ):
        around.add("p", puppet, permissions=ALL)
        await session.load_all()
        await do(session, register(1, "tool", tool("t")), answer(1, result({"content": blocks})))
        got = await session.call_tool("t", {})
    assert [block.type for block in got.content] == ["text", "image", "text", "text"]
    assert got.content[1].data == image["data"]
    assert set(got.content[2].text) == {"b"}
    assert "more than the 700 allowed" in got.content[3].text


async def test_c61_an_image_is_never_cut_in_half(tmp_path, autojump_clock) -> None:
    image = base64.b64encode(b"x" * 300_000).decode()

    async def draw(guest: Guest, frame: dict[str, Any]) -> None:
        # More than a pipe holds: in pieces.
        blocks = [{"type": "text", "text": "seen"}, {"type": "image", "mime_type": "image/png", "data": image}]
        data = guest_frame(type="tool_result", id=frame["id"], content=blocks)
        for place in range(0, len(data), 30_000):
            guest.write(data[place : place + 30_000])
            await trio.testing.wait_all_tasks_blocked()

    async def told(guest: Guest) -> None:
        guest.greet(events=["tool_result"])
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", offers("t", on_call=draw))
        around.add("told", told)
        async with host.open_session("s") as session:
            await session.load_all()
            with session.open_run() as run:
                async with run.tool_call("1", "t", {}) as call:
                    assert (await call.execute()).content[1].data == image
            await trio.testing.wait_all_tasks_blocked()
            event = around.guests["told"].received[-1]
            assert event["result"]["truncated"]
            assert [block["type"] for block in event["result"]["content"]] == ["text"]


def guest_frame(**frame: Any) -> bytes:
    """A frame as a guest writes it."""
    return json.dumps(frame).encode() + b"\n"
