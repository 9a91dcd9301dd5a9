"""Which registrations of a successor would be refused, each alone, before anything is replaced."""

from __future__ import annotations

from collections.abc import Sequence

from trio_exthost.effects import EffectLedger, EffectOwner, Registration, ScopeBinding
from trio_exthost.errors import LedgerError

Placed = tuple[ScopeBinding, Registration]


def refusals(
    ledger: EffectLedger, old: EffectOwner, new: EffectOwner, registrations: Sequence[Placed]
) -> dict[int, LedgerError]:
    """By place, what `EffectLedger.replace_owner` would refuse, and why; it takes all the others together.

    Args:
      ledger: Is asked, and not changed.
      old: Whose records go.
      new: Who takes over.
      registrations: Each with its binding, in order; every override among them is authorized.
    """
    refused: dict[int, LedgerError] = {}
    kept = list(range(len(registrations)))

    def refusal(count: int) -> LedgerError | None:
        try:
            ledger.check_replacement(old, new, [registrations[place] for place in kept[:count]])
        except LedgerError as exc:
            return exc.with_traceback(None)
        return None

    while refusal(len(kept)) is not None:
        # A longer list claims more predecessors, so what is refused stays refused: the shortest list that is refused
        # ends with the culprit.
        accepted, count = 0, len(kept)
        while count - accepted > 1:
            middle = (accepted + count) // 2
            if refusal(middle) is None:
                accepted = middle
            else:
                count = middle
        error = refusal(count)
        assert error is not None
        refused[kept.pop(count - 1)] = error
    return refused
