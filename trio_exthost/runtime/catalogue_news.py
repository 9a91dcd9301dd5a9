"""What the catalogue has to say about candidates is told like everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trio_exthost.diagnostics import Code, Severity

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.session import Session

_CODES = {
    "rejected": (Code.MANIFEST_INVALID, Severity.ERROR),
    "blocked": (Code.TRUST_REQUIRED, Severity.WARNING),
    "shadowed": (Code.SHADOWED, Severity.INFO),
}
"""By the catalogue's status; the others are no news."""


def tell_all(session: Session, candidates: Sequence[Candidate]) -> None:
    """Tell about each, and first of whom the policy speaks that is none of them: a misspelt name guards nothing."""
    for name in session.host.policy.unknown_extensions([each.name for each in candidates]):
        message = f"the policy speaks about {name!r}, which is not in the catalogue"
        session.host.report(Code.POLICY_UNKNOWN, Severity.WARNING, message, session=session)
    for candidate in candidates:
        tell_about(session, candidate)


def tell_about(session: Session, candidate: Candidate) -> None:
    """Tell why it is not to be started, if that is news, and what its manifest should be looked at for."""
    report, name = session.host.report, candidate.name
    known = _CODES.get(candidate.status.value)
    if known is not None:
        report(*known, candidate.reason, session=session, extension=name)
    for warning in candidate.warnings:
        report(Code.MANIFEST_WARNING, Severity.WARNING, warning, session=session, extension=name)
