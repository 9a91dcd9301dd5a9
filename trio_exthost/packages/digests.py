"""The digest of each extension that is to be started, so that it can be told later whether something has changed."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from trio_exthost.errors import TrustError
from trio_exthost.packages.catalogue import Candidate, Status
from trio_exthost.packages.digest import package_digest

MAX_FILES = 20_000
"""Of one extension; one that has more gets no digest, and counts as changed whenever one looks."""
MAX_BYTES = 64 * 1024 * 1024
"""As `MAX_FILES`, of its content: reading this much takes a fraction of a second."""


def with_digests(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates, with a digest for each that is to be started and can be read within the bounds.

    Reads their files: call it in a worker thread.
    """
    return tuple(_with_digest(each) for each in candidates)


def _with_digest(candidate: Candidate) -> Candidate:
    if candidate.status is not Status.EFFECTIVE or candidate.digest is not None:
        return candidate
    try:
        digest = package_digest(candidate.directory, max_files=MAX_FILES, max_bytes=MAX_BYTES)
    except TrustError:
        return candidate  # to start it, nobody needs one
    return attrs.evolve(candidate, digest=digest)
