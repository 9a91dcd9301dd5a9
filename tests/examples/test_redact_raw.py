"""What redact hides."""

from __future__ import annotations

from typing import Any

import pytest


def message(text: object) -> dict[str, Any]:
    return {"type": "event_intercept", "id": "7", "event": "assistant_message", "text": text}


KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "shown", "kinds"),
    [
        ("key sk-abcdefghijklmnop1234 ok", "key [redacted] ok", "API key"),
        ("ghp_" + "a1" * 18, "[redacted]", "GitHub token"),
        ("(AKIAABCDEFGHIJKLMNOP)", "([redacted])", "AWS access key"),
        (f"a\n{KEY}\nb", "a\n[redacted]\nb", "private key"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted]", "private key"),
        ("DB_PASSWORD=hunter2&x=1", "DB_PASSWORD=[redacted]&x=1", "password"),
        ('{"password": "two words"}', '{"password": [redacted]}', "password"),
        ("password=a\u2028password=b", "password=[redacted]\u2028password=[redacted]", "password"),
        (f"{KEY} password=x", "[redacted] password=[redacted]", "private key, password"),
    ],
)
def test_a_secret_is_hidden_and_the_user_is_told(shared, text, shown, kinds):
    extension = shared("redact")
    assert extension.ask(message(text)) == {"type": "event_intercept_response", "id": "7", "replace_text": shown}
    assert extension.receive() == {"type": "notify", "level": "warn", "message": f"hidden in the last message: {kinds}"}


@pytest.mark.parametrize(
    "text", ["", "hello", "task-abcdefghijklmnopqrstuv", "if password == x", "password: see below", "password=[redacted]", 5, None]
)  # fmt: skip
def test_a_message_without_a_secret_stays_as_it_is(shared, text):
    assert shared("redact").ask(message(text)) == {"type": "event_intercept_response", "id": "7"}
