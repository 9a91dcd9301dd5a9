"""The operator's policy, decisions and their explanation; how a chain of answers folds into one (pure).

`parse_policy`, `load_policy` and `format_policy` are in `policy_file` and `policy_text`, which only who has a file needs.
"""

from trio_exthost.policy.chain import Answer, Chain, Failure
from trio_exthost.policy.effective import Declared, PolicyRow, effective_view
from trio_exthost.policy.extension_policy import ExtensionPolicy, PointPolicy, RestartPolicy
from trio_exthost.policy.policy import Policy
from trio_exthost.policy.rules import PRECEDENCE, MemberKind, Rule, Ruling
from trio_exthost.policy.settings import POINTS, HeadlessAsk, OnAbsent, RestartMode, Stream
from trio_exthost.policy.verdict import OnFailure, Outcome, Step, StepKind, Verdict

__all__ = [
    "POINTS",
    "PRECEDENCE",
    "Answer",
    "Chain",
    "Declared",
    "ExtensionPolicy",
    "Failure",
    "HeadlessAsk",
    "MemberKind",
    "OnAbsent",
    "OnFailure",
    "Outcome",
    "PointPolicy",
    "Policy",
    "PolicyRow",
    "RestartMode",
    "RestartPolicy",
    "Rule",
    "Ruling",
    "Step",
    "StepKind",
    "Stream",
    "Verdict",
    "effective_view",
]
