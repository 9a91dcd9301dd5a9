"""What is told about a batch that was committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from trio_exthost.state.entries import decode_value


@attrs.frozen(kw_only=True)
class Committed:
    """What a batch did; final when the store has it."""

    revision: int
    """Of the state, after it. As before, if it changed nothing."""
    texts: Mapping[str, bytes]
    """Key to the JSON that stands there now, of the keys it named; a key that is not there is left out."""
    changed: bool = True
    """Whether there was anything to store."""

    @property
    def values(self) -> dict[str, Any]:
        """The same as values: new objects at each look, which are the caller's."""
        return {key: decode_value(text) for key, text in self.texts.items()}
