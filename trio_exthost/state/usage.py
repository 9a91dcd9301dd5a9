"""How much of its quota an extension uses, and by what."""

from __future__ import annotations

import attrs


def size_of(name: str, text: bytes) -> int:
    """What a value, an event or a context counts: the bytes of its name and of its JSON."""
    return (len(name) if name.isascii() else len(name.encode())) + len(text)


@attrs.frozen(kw_only=True)
class Usage:
    """What is stored at one moment; sizes in bytes, names and JSON. What was deleted or replaced does not count."""

    values: int = 0
    """Keys."""
    value_bytes: int = 0
    """Of all keys with their values."""
    events: int = 0
    """Custom events."""
    event_bytes: int = 0
    """Of all of them, with ids and types."""
    contexts: int = 0
    """Model contexts."""
    context_bytes: int = 0
    """Of all of them, with ids."""

    @property
    def live_bytes(self) -> int:
        """What counts against the quota."""
        return self.value_bytes + self.event_bytes + self.context_bytes

    def explain(self) -> str:
        """Who uses how much, in words."""
        return (
            f"{self.value_bytes} by {self.values} keys, {self.event_bytes} by {self.events} custom events, "
            f"{self.context_bytes} by {self.contexts} model contexts"
        )


NOTHING = Usage()
"""Of a state in which nothing is stored."""
