"""redact while text streams: no split lets a secret through, and nothing else is changed or lost."""

from __future__ import annotations

import random
import shutil

import pytest
import trio
from raw_extension import EXTENSIONS

from trio_exthost import HostConfig, open_host

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\nabc-def\n-----END RSA PRIVATE KEY-----"
PLAIN = "Some words, a task-list and 5 == 5; \U0001f511 the password: see below. "
SECRETS = [
    "sk-abcdefghijklmnop1234",
    "ghp_" + "a1" * 18,
    "AKIAABCDEFGHIJKLMNOP",
    KEY,
    "password=hunter2",
    '"passphrase": "two words"',
]
VISIBLE = ["[redacted]", "[redacted]", "[redacted]", "[redacted]", "password=[redacted]", '"passphrase": [redacted]']


def pieces_of(text: str, chooser: random.Random) -> list[str]:
    """The text cut at random, now finely, now coarsely."""
    pieces, place = [], 0
    longest = chooser.choice([1, 3, 20, 400])
    while place < len(text):
        size = chooser.randint(1, longest)
        pieces.append(text[place : place + size])
        place += size
    return pieces


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
async def test_no_split_of_a_stream_lets_a_secret_through(tmp_path) -> None:
    chooser = random.Random(5)
    with trio.fail_after(120):
        async with open_host(HostConfig(data_dir=tmp_path)) as host, host.open_session("s", cwd=tmp_path) as session:
            await session.load(EXTENSIONS / "redact")
            for _ in range(40):
                order = [chooser.randrange(len(SECRETS)) for _ in range(chooser.randint(1, 4))]
                padding = [PLAIN * chooser.randint(1, 6) for _ in order]
                text = "".join(f"{pad}{SECRETS[n]} " for pad, n in zip(padding, order, strict=True))
                expected = "".join(f"{pad}{VISIBLE[n]} " for pad, n in zip(padding, order, strict=True))
                shown = ""
                with session.open_run() as run:
                    async with run.assistant_text("m") as streaming:
                        for piece in pieces_of(text, chooser):
                            shown += await streaming.feed(piece)
                            assert expected.startswith(shown)
                        shown += await streaming.finish()
                assert shown == expected
                assert streaming.message["content"] == expected


async def test_text_without_a_secret_streams_on(tmp_path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    with trio.fail_after(60):
        async with open_host(HostConfig(data_dir=tmp_path)) as host, host.open_session("s", cwd=tmp_path) as session:
            await session.load(EXTENSIONS / "redact")
            with session.open_run() as run:
                async with run.assistant_text("m") as streaming:
                    shown = await streaming.feed(PLAIN * 10)
                    assert len(shown) > len(PLAIN) * 9  # all but the last word or two comes at once
