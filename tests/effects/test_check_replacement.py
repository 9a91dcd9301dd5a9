"""What a replacement would be refused for can be asked before, and asking changes nothing."""

from __future__ import annotations

import pytest

from trio_exthost.effects import EffectKind, EffectLedger, EffectOwner, Registration, Scope, ScopeBinding
from trio_exthost.errors import Conflict

UNBOUND = ScopeBinding.setup(Scope.SESSION)
OLD, NEW, OTHER = (EffectOwner(name, "s", number) for name, number in (("a", 1), ("a", 2), ("b", 3)))


def registration(key: str) -> Registration:
    return Registration(EffectKind.COMMAND, key, None, 1)


def test_it_raises_what_the_replacement_would_and_changes_nothing() -> None:
    ledger = EffectLedger()
    ledger.accept(OLD, UNBOUND, registration("mine"))
    ledger.accept(OTHER, UNBOUND, registration("theirs"))
    before = ledger.records_for_owner(OLD), ledger.statistics()
    with pytest.raises(Conflict):
        ledger.check_replacement(OLD, NEW, [(UNBOUND, registration("mine")), (UNBOUND, registration("theirs"))])
    ledger.check_replacement(OLD, NEW, [(UNBOUND, registration("mine"))])
    assert (ledger.records_for_owner(OLD), ledger.statistics()) == before
    assert ledger.records_for_owner(NEW) == ()
