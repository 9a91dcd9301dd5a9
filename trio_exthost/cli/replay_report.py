"""What extensions would have done to a recorded conversation: counted and grouped, in bounded memory."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from trio_exthost.cli.transcripts import ProposedCall, Unreadable
from trio_exthost.hooks import INTERCEPT_POINTS, Event
from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict
from trio_exthost.policy.quantiles import Durations
from trio_exthost.policy.shown import Keeper, cut, json_text, masked_text

GROUPS = 1000
"""Groups that are told apart; what comes beyond is counted together, as `OTHERS`."""
KINDS = 100
"""Types of what was skipped that are told apart."""
OTHERS = "(others)"
"""Stands for the tools, reasons and types beyond these."""
PROBLEMS = 20
"""Places that could not be read of which the reason is kept; all are counted."""

COUNTED = ("conversations", "system_prompts", "prompts", "turns", "texts", "calls", "results")
"""What a recording is made of, as it is counted."""


class Deed(enum.StrEnum):
    """What an extension would have done."""

    REFUSED = "refused"
    HIDDEN = "hidden"
    REWRITTEN = "rewritten"
    ASKED = "asked"
    """It wants a person asked."""
    NO_ANSWER = "no_answer"
    """It gave no usable answer, and the policy went on without one."""


_ORDER = tuple(Deed)
_FAILED = frozenset({StepKind.TIMED_OUT, StepKind.FAILED, StepKind.NOT_RUNNING, StepKind.OVERLOADED})
NOT_ASKED = frozenset({StepKind.NOT_RUNNING, StepKind.OVERLOADED, StepKind.OWN_CALL, StepKind.FILTERED})
"""How a member takes part without being sent a question."""


@attrs.frozen(order=True)
class Group:
    """What is counted together."""

    extension: str
    """Who; empty for the host itself."""
    deed: Deed
    point: str
    """Where: `tool_call`, `assistant_message`, ..."""
    tool: str
    """Of a tool call or a result."""
    reason: str
    """In the extension's words, masked and cut; or what went wrong."""


@attrs.define
class Finding:
    """How often, and the first of them."""

    count: int
    at: str
    """Where in the recording the first one stands."""
    tool_id: str
    """Of its tool call, if it is about one."""
    example: str
    """What it did there, in a line: the difference it made, or the value it was about; masked and cut."""


@attrs.define
class Asked:
    """How often one extension was asked, and how long it took."""

    points: Counter[str] = attrs.field(factory=Counter)
    durations: Durations = attrs.field(factory=Durations)


class Report:
    """Everything that is counted while a recording is played. Mutable."""

    def __init__(self, mask: Sequence[str] | None = None) -> None:
        """Nothing yet.

        Args:
          mask: Regular expressions of secrets; the default ones if not given.
        """
        self._mask = mask
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        """By a word of `COUNTED`."""
        self.unpaired_results: int = 0
        """Results of calls that nobody made; they were left out."""
        self.skipped: Counter[str] = Counter()
        """What is no part of a conversation, by its type."""
        self.unreadable: int = 0
        """How much could not be read, or not be asked about."""
        self.problems: list[Unreadable] = []
        """The first `PROBLEMS` of these."""
        self.findings: dict[Group, Finding] = {}
        self.asked: dict[str, Asked] = {}
        """By extension."""
        self.verdicts: dict[str, Counter[str]] = {}
        """By point, how often the outcome was which; counted where anybody took part."""
        self.unaware: set[str] = set()
        """Who was asked in a protocol that knows no dry run, so that it may have acted on it."""

    def add_skipped(self, what: str) -> None:
        """Something is no part of a conversation."""
        name = masked_text(what, self._mask)
        self.skipped[name if name in self.skipped or len(self.skipped) < KINDS else OTHERS] += 1

    def add_problem(self, problem: Unreadable) -> None:
        """Something could not be read, or not be asked about."""
        self.unreadable += 1
        if len(self.problems) < PROBLEMS:
            self.problems.append(problem)

    def add_unusable(self, call: ProposedCall, tool_id: str, problem: str) -> None:
        """The host itself would refuse a call: its arguments are no JSON object."""
        group = Group("", Deed.REFUSED, Event.TOOL_CALL, masked_text(call.name, self._mask), problem)
        self._add(group, call.at, tool_id, lambda: json_text(Keeper(self._mask).value(call.arguments)))

    def add_verdict(self, verdict: Verdict, at: str, *, tool: str = "", tool_id: str = "") -> None:
        """Somebody, or nobody, was asked.

        Args:
          verdict: What came of it.
          at: About what in the recording.
          tool: Of a tool call or a result.
          tool_id: Of that call.
        """
        if not verdict.steps:
            return
        self.verdicts.setdefault(verdict.event, Counter())[verdict.outcome.value] += 1
        self.unaware.update(verdict.unaware)
        is_asking_told = False
        for step in verdict.steps:
            self._count(verdict.event, step)
            deed = _deed(verdict, step)
            if deed is not None:
                self._find(verdict, step, deed, at, tool, tool_id)
            is_asking_told = is_asking_told or (deed is Deed.ASKED and step.extension == verdict.by)
        if verdict.outcome is Outcome.ASK and verdict.by is not None and not is_asking_told:
            # It rewrote the value, too, so its step says that.
            step = Step(verdict.by, StepKind.ASKS, reason=verdict.reason)
            self._find(verdict, step, Deed.ASKED, at, tool, tool_id)

    def _count(self, point: str, step: Step) -> None:
        asked = self.asked.setdefault(step.extension, Asked())
        if step.kind not in NOT_ASKED:
            asked.points[point] += 1
            asked.durations.add(step.seconds)

    def _find(self, verdict: Verdict, step: Step, deed: Deed, at: str, tool: str, tool_id: str) -> None:
        name, reason = masked_text(tool, self._mask), masked_text(step.reason, self._mask)
        group = Group(step.extension, deed, verdict.event, name, reason)
        self._add(group, at, tool_id, lambda: self._example(verdict, step))

    def _example(self, verdict: Verdict, step: Step) -> str:
        if step.kind is StepKind.REWROTE:
            return step.diff(self._mask).explain()
        point = INTERCEPT_POINTS.get(verdict.event)
        key = point.value_key if point is not None else None
        if point is not None and key is None:
            return ""
        value = verdict.value if key is None else verdict.value.get(key)
        return json_text(Keeper(self._mask).value(value))

    def _add(self, group: Group, at: str, tool_id: str, example: Callable[[], str]) -> None:
        if group not in self.findings and len(self.findings) >= GROUPS:
            group = attrs.evolve(group, tool=OTHERS if group.tool else "", reason=OTHERS)
        finding = self.findings.get(group)
        if finding is None:
            finding = self.findings[group] = Finding(0, at, cut(tool_id), example())
        finding.count += 1

    def ordered(self) -> list[tuple[Group, Finding]]:
        """The findings: by extension in the order in which they were asked, the host last; then by deed, the most first."""
        order = {name: place for place, name in enumerate(self.asked)}

        def rank(found: tuple[Group, Finding]) -> tuple[int, int, int, Group]:
            group, finding = found
            return (order.get(group.extension, len(order)), _ORDER.index(group.deed), -finding.count, group)

        return sorted(self.findings.items(), key=rank)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            **self.counts,
            "unpaired_results": self.unpaired_results,
            "skipped": dict(self.skipped.most_common()),
            "unreadable": self.unreadable,
            "problems": [attrs.asdict(each) for each in self.problems],
            "verdicts": {
                point: {each.value: counts[each.value] for each in Outcome} for point, counts in self.verdicts.items()
            },
            "unaware": sorted(self.unaware),
            "findings": [
                {**attrs.asdict(group), "extension": group.extension or None, **attrs.asdict(finding)}
                for group, finding in self.ordered()
            ],
        }


def _deed(verdict: Verdict, step: Step) -> Deed | None:
    """What a member did, in a word; None where it let the value be."""
    match step.kind:
        case StepKind.REWROTE:
            return Deed.REWRITTEN
        case StepKind.ASKS:
            return Deed.ASKED
        case kind if kind is StepKind.BLOCKED or (kind in _FAILED and _is_blocked_by(verdict, step)):
            return Deed.HIDDEN if verdict.event == Event.ASSISTANT_MESSAGE else Deed.REFUSED
        case kind:
            return Deed.NO_ANSWER if kind in _FAILED else None


def _is_blocked_by(verdict: Verdict, step: Step) -> bool:
    """Whether the policy refused in the place of a member that gave no usable answer."""
    return step.policy is OnFailure.BLOCK and verdict.blocked and verdict.by == step.extension
