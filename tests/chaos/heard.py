"""What the witness of a chaos run has written down, against what it was told."""

from __future__ import annotations

import json
from array import array
from pathlib import Path


def check_heard(path: Path, told: array[int], *, is_whole: bool) -> str:
    """What is wrong with what the witness has written down; nothing if it has heard all, in order, gaps declared."""
    place, gaps, ticks = 0, [], -1
    for line in path.read_text().splitlines():
        what, *about = json.loads(line)
        if what == "gap":
            gaps.append(about)
            continue
        number = about[0]
        begun = place
        while place < len(told) and told[place] < number:
            place += 1
        if place == len(told) or told[place] != number:
            return f"it heard {what} {number}, which was not told then"
        missing = told[begun:place]
        if len(missing) != sum(count for count, _, _ in gaps):
            return f"before {number} it missed {len(missing)}, and was told of {gaps}"
        if any(not any(first <= each <= last for _, first, last in gaps) for each in missing):
            return f"before {number} it missed {list(missing)}, and was told of {gaps}"
        gaps = []
        place += 1
        if what == "tick":
            if about[1] <= ticks:
                return f"tick {about[1]} came after {ticks}"
            ticks = about[1]
    if is_whole and place != len(told) and not gaps:
        return f"it heard nothing of the last {len(told) - place} of {len(told)}"
    return ""
