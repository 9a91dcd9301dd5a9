"""The registration runtime, through a real extension process of the effect dialect."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
import trio
from runtime.puppets import (
    ALL,
    SOURCE,
    answer,
    command,
    do,
    provider,
    register,
    result,
    section,
    text_value,
    told,
    tool,
)
from runtime.real.programs import PATIENCE_S, QUICK, Place, nothing_left, text_of

from trio_exthost import (
    CallError,
    ExtensionPolicy,
    HostClient,
    InMemoryModelCatalogue,
    InvalidArguments,
    MalformedReply,
    ModelRef,
    Policy,
    ProvidedModel,
    SimpleTool,
    Success,
    UnknownCommand,
    UnknownTool,
    open_host,
)

GRANT = Policy(extensions={"puppet": ExtensionPolicy(grant=["tools.override:bash"])})


async def _bash(arguments):
    await trio.lowlevel.checkpoint()
    return "bare bash"


BASH = SimpleTool("bash", "The agent's own", {"type": "object"}, _bash)


@asynccontextmanager
async def puppets(tmp_path, *, policy=None, models=None, secrets=(), client=None, model=None, names=("puppet",)):
    """A session with real puppets of these names, loaded."""
    tmp_path.mkdir(exist_ok=True)
    place = Place(tmp_path)
    for name in names:
        place.add(
            name, SOURCE.replace('"do"', json.dumps("do" if name == "puppet" else f"do-{name}")), permissions=list(ALL)
        )
    with nothing_left(place, QUICK.stop_total_s) as leave, trio.fail_after(PATIENCE_S):
        async with open_host(place.config(), policy=policy or Policy(), secrets=secrets) as host:
            async with host.open_session(
                "s", cwd=tmp_path, tools=[BASH], models=models, client=client, model=model
            ) as session:
                await session.load_all()
                try:
                    yield session
                finally:
                    leave()


async def test_a_registered_tool_runs_and_is_gone_when_disposed_of(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        frames = await told(
            session,
            register(1, "tool", tool("greet")),
            answer(1, {"type": "progress", "output": "one "}, result(text_value("hello"))),
        )
        assert frames == [{"type": "registered", "registration_id": 1, "handle": 2}]
        assert [info.name for info in session.tools()] == ["bash", "greet"]
        assert text_of(await session.call_tool("greet", {"n": 1})) == "hello"
        (invoke,) = [frame for frame in await do(session) if frame["type"] == "invoke"]
        assert invoke["envelope"]["event"] == "tool"
        assert invoke["envelope"]["payload"]["arguments"] == {"n": 1}
        assert invoke["envelope"]["context"]["extension_id"] == "puppet"
        assert invoke["deadline_ms"] == 60_000
        assert await told(session, {"type": "dispose", "registration_id": 1}) == [
            {"type": "disposed", "registration_id": 1, "cause": "handle"}
        ]
        with pytest.raises(UnknownTool):
            await session.call_tool("greet", {})


async def test_override_and_restore(tmp_path) -> None:
    async with puppets(tmp_path, policy=GRANT) as session:
        await told(
            session,
            register(1, "tool", tool("bash", override=True)),
            answer(1, result(text_value("sandboxed"))),
        )
        assert [(info.name, info.extension) for info in session.tools()] == [("bash", "puppet")]
        assert text_of(await session.call_tool("bash", {})) == "sandboxed"
        await told(session, {"type": "dispose", "registration_id": 1})
        assert [(info.name, info.extension) for info in session.tools()] == [("bash", None)]
        assert text_of(await session.call_tool("bash", {})) == "bare bash"


async def test_an_override_without_a_grant_is_denied_and_a_name_of_the_agents_own_is_a_conflict(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        frames = await told(
            session, register(1, "tool", tool("bash", override=True)), register(2, "tool", tool("bash"))
        )
        assert [(frame["registration_id"], frame["code"]) for frame in frames] == [
            (1, "override_denied"),
            (2, "conflict"),
        ]
        assert text_of(await session.call_tool("bash", {})) == "bare bash"


async def test_a_conflict_refuses_the_second_alone(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        frames = await told(
            session,
            register(1, "command", command("deploy")),
            register(2, "command", command("deploy")),
            register(3, "command", command("undo")),
        )
        assert [(frame["type"], frame["registration_id"]) for frame in frames] == [
            ("registered", 1),
            ("rejected", 2),
            ("registered", 3),
        ]
        assert frames[1]["code"] == "conflict"
        assert [info.name for info in session.commands()] == ["do", "deploy", "undo"]


async def test_an_owner_goes_in_reverse_order_of_acceptance(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        await told(session, *(register(n, "tool", tool(f"t{n}")) for n in (1, 2, 3)))
        (record,) = [
            each for each in session.ledger.records_for_owner(owner_of(session)) if each.registration.key == "t1"
        ]
        changes = session.registrations.dispose_owner(record.owner)
        assert [change.record.registration.key for change in changes] == ["t3", "t2", "t1", "do"]


def owner_of(session):
    """The puppet's instance, as the ledger names it."""
    from trio_exthost.effects import EffectKind

    return session.ledger.active(EffectKind.COMMAND, "do").owner


async def test_providers_models_come_and_go_with_it_and_a_clash_is_refused(tmp_path) -> None:
    models = InMemoryModelCatalogue(ProvidedModel("acme", "taken"))
    async with puppets(tmp_path, models=models) as session:
        frames = await told(
            session,
            register(1, "provider", provider("acme", "new", "taken")),
            register(2, "provider", provider("other", "m1", "m2")),
        )
        assert [(frame["type"], frame.get("code")) for frame in frames] == [
            ("rejected", "conflict"),
            ("registered", None),
        ]
        assert "acme/taken" in frames[0]["message"]
        assert [(each.provider, each.model) for each in models.models()] == [
            ("acme", "taken"),
            ("other", "m1"),
            ("other", "m2"),
        ]
        await told(session, {"type": "update", "registration_id": 2, "descriptor": provider("other", "m2", "m3")})
        assert [each.model for each in models.models()] == ["taken", "m2", "m3"]
    assert [each.model for each in models.models()] == ["taken"]


async def test_a_missing_credential_refuses_the_provider(tmp_path) -> None:
    async with puppets(tmp_path, secrets={"another"}) as session:
        (frame,) = await told(session, register(1, "provider", provider("p", "m", credential_ref="the-key")))
        assert (frame["type"], frame["code"]) == ("rejected", "invalid_payload")
        assert "there is no secret 'the-key'" in frame["message"]
        assert session.registrations.credential_ref("p") is None
    async with puppets(tmp_path / "second", secrets={"the-key"}) as session:
        await told(session, register(1, "provider", provider("p", "m", credential_ref="the-key")))
        assert session.registrations.credential_ref("p") == "the-key"


SCHEMA = {"type": "object", "required": ["env"], "properties": {"env": {"enum": ["prod", "test"]}}}


async def test_arguments_that_do_not_match_the_schema_never_reach_the_extension(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        await told(
            session,
            register(1, "command", command("deploy", argument_schema=SCHEMA)),
            register(2, "tool", tool("t", input_schema=SCHEMA)),
            answer(1, result({"status": "success", "message": "done", "data": [1]})),
        )
        for arguments in ({"env": "moon"}, {}, '{"env": 1}', "not JSON"):
            with pytest.raises(InvalidArguments, match="deploy") as caught:
                await session.run_command("deploy", arguments)
            assert not caught.value.may_have_run
        with pytest.raises(InvalidArguments, match=r"env"):
            await session.call_tool("t", {"env": "moon"})
        assert await session.run_command("deploy", {"env": "prod"}) == Success("done", [1])
        assert await session.run_command("/DEPLOY", '{"env": "test"}') == Success("done", [1])
        assert len([frame for frame in await do(session) if frame["type"] == "invoke"]) == 2


async def test_a_result_that_does_not_match_its_schema_is_refused(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        await told(
            session,
            register(1, "tool", tool("t", result_schema={"type": "object", "required": ["n"]})),
            answer(1, result(text_value("x", structured_content={"m": 1}))),
        )
        with pytest.raises(MalformedReply, match="result_schema"):
            await session.call_tool("t", {})


async def test_a_command_is_unavailable_in_another_context(tmp_path) -> None:
    async with puppets(tmp_path, model=ModelRef("acme", "small")) as session:
        await told(
            session,
            register(1, "command", command("large", availability={"models": ["large"]})),
            register(2, "command", command("ask", availability={"requires_interactive_client": True})),
            register(3, "command", command("here", availability={"providers": ["acme"]})),
            answer(3, result({"status": "rejected", "code": "busy", "message": "not now"})),
        )
        for name in ("large", "ask"):
            with pytest.raises(CallError, match="not available") as caught:
                await session.run_command(name)
            assert caught.value.code == "unavailable"
            assert not caught.value.may_have_run
        outcome = await session.run_command("here")
        assert (outcome.action, outcome.code, outcome.message) == ("rejected", "busy", "not now")
        assert [(info.name, info.available) for info in session.commands()][1:] == [
            ("large", False),
            ("ask", False),
            ("here", True),
        ]


async def test_what_was_disposed_of_cannot_be_updated(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        frames = await told(
            session,
            register(1, "tool", tool("t")),
            {"type": "dispose", "registration_id": 1},
            {"type": "dispose", "registration_id": 1},
            {"type": "update", "registration_id": 1, "descriptor": tool("t")},
            {"type": "dispose", "registration_id": 7},
        )
        assert [frame["type"] for frame in frames] == ["registered", "disposed", "rejected"]
        assert "was disposed of" in frames[-1]["message"]
        assert [each.code.value for each in session.host.diagnostics.of("puppet")] == ["registration_refused"] * 2


async def test_what_is_bound_to_a_run_or_a_request_ends_with_it(tmp_path) -> None:
    async with puppets(tmp_path) as session:
        with session.open_run(run_id="r1") as run, session.open_run(run_id="r2") as other:
            with run.open_request("q1"):
                frames = await told(
                    session,
                    register(1, "tool", tool("t", scope="run"), scope="run", id="r1"),
                    register(2, "tool", tool("t", scope="run"), scope="run", id="r2"),
                    register(3, "command", command("c", scope="request"), scope="request", id="q1"),
                    register(4, "tool", tool("u", scope="run"), scope="run", id="nowhere"),
                    answer(1, result(text_value("in r1"))),
                    answer(2, result(text_value("in r2"))),
                )
                assert [frame.get("code") for frame in frames] == [None, None, None, "scope_mismatch"]
                assert text_of(await session.call_tool("t", {}, run=run)) == "in r1"
                assert text_of(await session.call_tool("t", {}, run=other)) == "in r2"
                assert [info.name for info in session.commands(run)] == ["do", "c"]
                assert [info.name for info in session.commands()] == ["do"]
                with pytest.raises(UnknownTool):
                    await session.call_tool("t", {})
            with pytest.raises(UnknownCommand):
                await session.run_command("c", run=run)
        assert [
            (frame["registration_id"], frame["cause"]) for frame in await do(session) if frame["type"] == "disposed"
        ] == [
            (3, "scope"),
            (2, "scope"),
            (1, "scope"),
        ]
        assert session.registrations.active_count == 1


async def test_sections_and_policies_come_by_predicate_then_priority_then_sequence(tmp_path) -> None:
    async with puppets(tmp_path, model=ModelRef("acme", "small"), client=HostClient()) as session:
        await told(
            session,
            register(1, "prompt_section", section("low", "Low.", priority=-1)),
            register(2, "prompt_section", section("first", "First.")),
            register(3, "prompt_section", section("second", "Second.", predicate={"models": ["small"]})),
            register(4, "prompt_section", section("other", "Other.", predicate={"models": ["large"]}, priority=9)),
            register(
                5,
                "prompt_section",
                section("high", "High.", priority=5, predicate={"requires_interactive_client": True}),
            ),
            register(6, "request_policy", {"policy_id": "p1", "priority": 1}),
            register(7, "request_policy", {"policy_id": "p2", "priority": 2}),
        )
        registrations = session.registrations
        assert registrations.has_request_effects()
        found = registrations.prompt_sections("acme", "small", True)
        assert [each.section_id for _, each in found] == ["high", "first", "second", "low"]
        assert [each.section_id for _, each in registrations.prompt_sections("acme", "large", False)] == [
            "other",
            "first",
            "low",
        ]
        assert [each.policy_id for _, each in registrations.request_policies("x", "y", False)] == ["p2", "p1"]
        with session.open_run() as run:
            assert await run.system_prompt("Base.") == "Base.\n\nHigh.\n\nFirst.\n\nSecond.\n\nLow."


async def test_a_key_given_up_in_an_answer_is_free_for_the_very_next_frame(tmp_path) -> None:
    """Always: the answer is applied on arrival, not when its caller gets to run."""
    async with puppets(tmp_path) as session:
        for n in range(1, 101):
            await told(
                session,
                register(2 * n - 1, "tool", tool("t")),
                answer(
                    2 * n - 1,
                    result(text_value("x"), dispose=[2 * n - 1]),
                    register(2 * n, "tool", tool("t", description=f"number {n}")),
                ),
            )
            assert text_of(await session.call_tool("t", {})) == "x"
            # Two round trips: `register` may still be in the pipe when the first one begins.
            received = [*await do(session), *await do(session)]
            assert [frame["type"] for frame in received if "registration_id" in frame] == [
                "invoke",
                "disposed",
                "registered",
            ]
            assert [info.description for info in session.tools() if info.name == "t"] == [f"number {n}"]
            assert session.registrations.is_active(owner_of(session), 2 * n)
            await told(session, {"type": "dispose", "registration_id": 2 * n})
