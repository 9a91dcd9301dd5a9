"""The points of a run at which hooks are asked or told, one call each; `Run` has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs

from trio_exthost.effects import Scope, read_command_answer
from trio_exthost.errors import MalformedReply
from trio_exthost.hooks import Batch, Event, Hook, HookClass, HookEvent, contract_of
from trio_exthost.policy import Verdict
from trio_exthost.runtime.confirmation import resolved
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.occasion import Occasion
from trio_exthost.runtime.outcomes import CommandOutcome, outcome_of_answer
from trio_exthost.runtime.results import clean_text
from trio_exthost.runtime.views import HookMember

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session

_POLICY = contract_of(HookEvent.BEFORE_MODEL_REQUEST, HookClass.TRANSFORM)
assert _POLICY is not None
POLICY_CONTRACT = attrs.evolve(_POLICY, allowed_actions=frozenset(_POLICY.primary))
"""What a request policy may answer: another request, and nothing else."""


@attrs.frozen
class Input:
    """What became of the user's input."""

    message: Mapping[str, Any]
    """The message as it stands: role and content."""
    outcome: CommandOutcome | None
    """Where an extension has handled the input itself: what it wants done, and no run goes on from it."""
    verdict: Verdict
    """Who changed what."""


@attrs.frozen
class RunContext:
    """What a run begins with."""

    system_prompt: str | None
    """In the place of the agent's own, if it is another; None where there is none."""
    messages: tuple[Mapping[str, Any], ...]
    """The messages as given, and those that extensions have added behind them."""
    verdict: Verdict
    """Who changed what."""


class RunPoints(ABC):
    """One call per point. Where nobody listens, each costs a look-up."""

    session: Session
    id: str
    _sections_told: frozenset[int]

    @abstractmethod
    def _check_open(self) -> None:
        """Raise where the run has ended."""

    @abstractmethod
    def emit(self, event: str, payload: Mapping[str, Any] | None = None) -> int | None:
        """As `Run.emit`."""

    @abstractmethod
    def _with_sections(self, base: str, *, but: Collection[int]) -> tuple[str, frozenset[int]]:
        """A prompt with the extensions' sections but these, and what was put in."""

    # --- the primitives ---

    def observe(self, event: HookEvent, payload: Mapping[str, Any], **about: Any) -> int | None:
        """Tell hooks that observe a point of this run; as `Session.observe`. Nothing where the session has ended."""
        if self.session.is_closed:
            return None
        return self.session.observing.tell(event, payload, run=self._run, **about)

    async def ask(self, event: HookEvent, payload: Mapping[str, Any], **about: Any) -> Verdict:
        """Ask the hooks of a point, one after the other; as `Session.intercept`, in this run."""
        self._check_open()
        return await self.session.ask(Occasion(event=event.value, payload=payload, run=self._run, **about))

    async def what_if(self, event: str, payload: Mapping[str, Any]) -> Verdict:
        """What would be decided at a point, were this the payload: everybody is asked, and nothing is done.

        Hooks are told that it is a dry run; nothing of their answers is committed or applied, and the verdict is not kept
        among the decisions. Extensions that intercept in zot's protocol are asked as if it were real, as that knows no dry
        run: the verdict names them (`unaware`).

        If this raises `trio.Cancelled`, a question that had not been written is withdrawn.

        Args:
          event: `tool_call`, `turn_start`, `assistant_message`, `before_agent_start`, or a gate or transform of the hook
            contract.
          payload: As there: the request's keys of zot's protocol, or what the schema of the point says.

        Raises:
          ValueError: There is no such point.
          PayloadError: The payload cannot be sent.
          ClosedError: The run or the session has ended.
        """
        self._check_open()
        first = self._policies() if event == HookEvent.BEFORE_MODEL_REQUEST else ()
        return await self.session.ask(Occasion(event=event, payload=payload, run=self._run, is_dry=True, first=first))

    @property
    def _run(self) -> Run:
        return cast("Run", self)

    async def _gate(self, event: HookEvent, payload: Mapping[str, Any]) -> Verdict:
        return await resolved(self.session, await self.ask(event, payload))

    # --- the beginning ---

    async def input(self, message: str | Mapping[str, Any], *, queued: bool = False, image_count: int = 0) -> Input:
        """The user has said something: hooks may change it, or handle it themselves; then `user_prompt_submit` is told.

        Args:
          message: A text, or a message with role and content.
          queued: Whether it had waited for another run.
          image_count: Images it came with.
        """
        given = {"role": "user", "content": clean_text(message)} if isinstance(message, str) else dict(message)
        outcomes: list[CommandOutcome] = []

        def took(batch: Batch) -> None:
            if (outcome := _outcome_in(batch)) is not None:
                outcomes.append(outcome)

        verdict = await self.ask(
            HookEvent.INPUT, {"message": given}, check=_check_outcome, took=took, stop=lambda: bool(outcomes)
        )
        result = Input(verdict.value["message"], outcomes[0] if outcomes else None, verdict)
        if result.outcome is None:
            self.prompt_submitted(text_of(result.message), queued=queued, image_count=image_count)
        return result

    def prompt_submitted(self, text: str, *, queued: bool = False, image_count: int = 0) -> None:
        """The model's input was accepted: tells `user_prompt_submit`. `input` does it, too."""
        self._check_open()
        payload: dict[str, Any] = {"text": clean_text(text)}
        if queued:
            payload["queued"] = True
        if image_count:
            payload["image_count"] = image_count
        self.emit(Event.USER_PROMPT_SUBMIT, payload)

    async def begin(
        self,
        *,
        system_prompt: str | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
    ) -> RunContext:
        """The run begins in earnest: hooks may give it another system prompt and more messages (`before_run`).

        Then `run_started` is told. `system_prompt` and `Run.system_prompt` go well together: give that what this returns.
        """
        payload = {
            "system_prompt": system_prompt,
            "messages": [dict(each) for each in messages],
            "options": dict(options or {}),
        }
        verdict = await self.ask(HookEvent.BEFORE_RUN, payload)
        self.observe(HookEvent.RUN_STARTED, {"metadata": {"run_id": self.id}})
        return RunContext(verdict.value["system_prompt"], tuple(verdict.value["messages"]), verdict)

    # --- a turn ---

    async def context(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The messages that the model is to see, as hooks want them."""
        verdict = await self.ask(HookEvent.CONTEXT, {"messages": list(messages)})
        return list(verdict.value["messages"])

    async def model_request(self, request: Mapping[str, Any], *, max_tokens: int | None = None) -> Mapping[str, Any]:
        """The request to the model, as extensions want it.

        First the prompt sections that this run's `system_prompt` has not put in already are appended to
        `system_instructions`; then request policies are asked, then hooks. A replacement must keep provider and model, and
        may offer no tool that the request did not.

        Args:
          request: provider, model, system_instructions (optional), messages, visible_tools, executable_tool_names,
            generation_options.
          max_tokens: The model's limit; `generation_options.max_tokens` must stay within. None: unknown.
        """
        self._check_open()
        draft = dict(request)
        base = str(draft.get("system_instructions") or "")
        whole, _ = self._with_sections(base, but=self._sections_told)
        if whole != base:
            draft["system_instructions"] = whole
        verdict = await self.ask(
            HookEvent.BEFORE_MODEL_REQUEST, {"request": draft}, max_tokens=max_tokens, first=self._policies()
        )
        replaced: Mapping[str, Any] = verdict.value["request"]
        return replaced

    def _policies(self) -> tuple[HookMember, ...]:
        session = self.session
        found = session.registrations.request_policies(
            session.model.provider, session.model.model, session.is_interactive, **where(self._run)
        )
        return tuple(
            HookMember(
                record,
                record.registration.value.instance,
                Hook(
                    event=HookEvent.BEFORE_MODEL_REQUEST,
                    hook_class=HookClass.TRANSFORM,
                    payload_schema=None,
                    priority=policy.priority,
                    contract=POLICY_CONTRACT,
                    scope=Scope.SESSION,
                ),
            )
            for record, policy in found
        )

    def model_response(self, response: Mapping[str, Any]) -> None:
        """The model has answered: tells `provider_response`."""
        self._check_open()
        self.observe(HookEvent.PROVIDER_RESPONSE, {"response": response})

    def model_failed(self, failure: Mapping[str, Any]) -> None:
        """The request to the model has failed: tells `provider_request_failed`."""
        self._check_open()
        self.observe(HookEvent.PROVIDER_REQUEST_FAILED, {"failure": failure})

    def turn_completed(self, message: Mapping[str, Any], tool_results: Sequence[Mapping[str, Any]] = ()) -> None:
        """The model's answer was worked off, its tools have run: tells `turn_completed`."""
        self._check_open()
        self.observe(HookEvent.TURN_COMPLETED, {"message": message, "tool_results": list(tool_results)})

    # --- compaction ---

    async def before_compaction(self, algorithm: str, *, from_hook: bool = False) -> Verdict:
        """May the transcript be compacted? Where the verdict is blocked, do not; its reason is for the user.

        A person is asked where a gate wants that, so the outcome is allow or block.
        """
        return await self._gate(HookEvent.BEFORE_COMPACTION, {"algorithm": algorithm, "from_hook": from_hook})


def _outcome_in(batch: Batch) -> CommandOutcome | None:
    if batch.primary is None or batch.primary.kind != "emit_command_outcome":
        return None
    return outcome_of_answer(read_command_answer(batch.primary.fields["outcome"]))


def _check_outcome(member: HookMember, batch: Batch) -> None:
    """Refuse an outcome that is none."""
    try:
        _outcome_in(batch)
    except ValueError as exc:
        raise MalformedReply(f"emit_command_outcome: {exc}", extension=member.name) from exc


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message whose content is a text, or blocks with texts among them."""
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(str(each.get("text", "")) for each in content if isinstance(each, dict))
