"""Decisions and their explanation; how a chain of answers folds into one (pure)."""

from trio_exthost.policy.chain import Answer, Chain, Failure
from trio_exthost.policy.verdict import OnFailure, Outcome, Step, StepKind, Verdict

__all__ = ["Answer", "Chain", "Failure", "OnFailure", "Outcome", "Step", "StepKind", "Verdict"]
