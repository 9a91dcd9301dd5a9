"""A place for the files of a target."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def scratch() -> Path:
    """A new directory, which goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="exthost-fuzz-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
