"""The ledger against a naive model, over generated histories."""

from __future__ import annotations

from hypothesis import settings
from ledger_machine import LedgerMachine

TestLedgerAgainstModel = LedgerMachine.TestCase
TestLedgerAgainstModel.settings = settings(stateful_step_count=30)
