from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's data directory; not there yet."""
    return tmp_path / "home"
