"""The registration runtime without a wire: roll-backs, merging, the catalogue, numbers, progress."""

from __future__ import annotations

import math

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from runtime.puppets import provider

from trio_exthost import (
    Change,
    Conflict,
    EffectKind,
    EffectOwner,
    InMemoryModelCatalogue,
    OverrideDenied,
    Progress,
    ProvidedModel,
    Registration,
    RegistrationRefused,
    Registrations,
    Scope,
    ScopeBinding,
)
from trio_exthost.effects import Registrant, read_descriptor
from trio_exthost.runtime.declarations import UsedNumbers
from trio_exthost.runtime.merging import Clash, merge
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.progress import NOTES_KEPT, ProgressQueue
from trio_exthost.runtime.views import Entry

OWNER = EffectOwner("x", "s", 1)
OTHER = EffectOwner("y", "s", 1)
UNBOUND = ScopeBinding.session()


def registration(
    kind: EffectKind, key: str, descriptor=None, *, override: bool = False, number: int = 1
) -> Registration:
    return Registration(kind, key, Entry(None, descriptor, number), number, override)


def a_provider(provider_id: str, *models: str, **more) -> Registration:
    registrant = Registrant(extension_id="x", granted={"providers.register", "secrets.read:k"})
    admitted = read_descriptor("provider", provider(provider_id, *models, **more), registrant=registrant)
    return registration(EffectKind.PROVIDER, provider_id, admitted.descriptor)


class Unreliable(InMemoryModelCatalogue):
    """Raises at the n-th call of `register` from now on, and at every `unregister` if told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails_in = math.inf
        self.keeps = False

    def register(self, model: ProvidedModel) -> None:
        self.fails_in -= 1
        if self.fails_in < 0:
            raise RuntimeError("no room")
        super().register(model)

    def unregister(self, provider: str, model: str) -> None:
        super().unregister(provider, model)
        if self.keeps:
            raise RuntimeError("it would rather stay")


@given(st.lists(st.integers(1, 4), max_size=5), st.integers(0, 20))
def test_one_that_fails_outside_is_refused_alone_at_every_position(sizes, fails_in):
    models, seen, failures = Unreliable(), [], []
    registrations = Registrations(models=models, publish=seen.extend, on_failure=failures.append)
    models.fails_in = fails_in
    wanted = [a_provider(f"p{n}", *(f"m{i}" for i in range(size))) for n, size in enumerate(sizes)]
    accepted = registrations.accept_all(OWNER, [(UNBOUND, each) for each in wanted])
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    # From the first that does not fit on, every one fails: the catalogue never recovers.
    good = [n for n, size in enumerate(sizes) if starts[n] + size <= fails_in]
    assert [record.registration.key for record in registrations.ledger.active_records(EffectKind.PROVIDER)] == [
        f"p{n}" for n in good
    ]
    assert len(accepted.handles) == len(good)
    assert (
        [error.code for error in accepted.errors]
        == ["conflict"] * (len(sizes) - len(good))
        == ["conflict"] * len(failures)
    )
    assert [(each.provider, each.model) for each in models.models()] == [
        (f"p{n}", f"m{i}") for n in good for i in range(sizes[n])
    ]
    assert [change.record.handle for change in seen] == list(accepted.handles)
    registrations.dispose_all()
    assert len(models) == registrations.active_count == 0


def test_an_update_that_fails_outside_leaves_the_old_value_and_its_models():
    models = InMemoryModelCatalogue(ProvidedModel("p", "taken"))
    seen: list[Change] = []
    registrations = Registrations(models=models, publish=seen.extend)
    handle = registrations.accept(OWNER, UNBOUND, a_provider("p", "a", "b")).handle
    with pytest.raises(RegistrationRefused, match="p/taken"):
        registrations.update(handle, a_provider("p", "b", "taken").value)
    assert [each.model for each in models.models()] == ["taken", "a", "b"]
    assert [each.id for each in registrations.ledger.record(handle).registration.value.descriptor.models] == ["a", "b"]
    registrations.update(handle, a_provider("p", "c").value)
    assert [each.model for each in models.models()] == ["taken", "c"]
    assert [change.action.value for change in seen] == ["accepted", "updated"]


def test_a_catalogue_that_fails_to_take_out_is_told_of_and_stops_nothing():
    models, failures = Unreliable(), []
    registrations = Registrations(models=models, on_failure=failures.append)
    registrations.accept(OWNER, UNBOUND, a_provider("p", "a", "b"))
    models.keeps = True
    registrations.dispose_owner(OWNER)
    assert len(failures) == 2
    assert len(models) == 0


def test_a_missing_secret_names_the_field():
    registrations = Registrations(secrets={"other"})
    with pytest.raises(RegistrationRefused, match="there is no secret 'k'") as caught:
        registrations.accept(OWNER, UNBOUND, a_provider("p", "m", credential_ref="k"))
    assert caught.value.field == "credential_ref"
    assert registrations.active_count == 0


def test_the_seeds_questions():
    registrations = Registrations(secrets={"k"})
    assert not registrations.has_request_effects()
    assert registrations.credential_ref("p") is None
    registrations.accept(OWNER, UNBOUND, a_provider("p", "m", credential_ref="k"))
    assert registrations.credential_ref("p") == "k"
    bound = registrations.accept(OWNER, ScopeBinding.run("r"), registration(EffectKind.REQUEST_POLICY, "q", number=2))
    assert not registrations.has_request_effects()
    assert registrations.has_request_effects(run_id="r")
    assert registrations.is_active(OWNER, 2)
    assert not registrations.is_active(OTHER, 2)
    assert registrations.active_count == 2
    registrations.dispose(bound.handle)
    assert not registrations.is_active(OWNER, 2)
    registrations.accept(OWNER, UNBOUND, registration(EffectKind.CONTRIBUTION, "c", "shown", number=3))
    assert [shown for _, shown in registrations.contributions()] == ["shown"]
    registrations.dispose_scope(Scope.SESSION)
    assert registrations.active_count == 0


def test_overrides_need_the_operators_word():
    registrations = Registrations()
    wanted = [
        (UNBOUND, registration(EffectKind.TOOL, key, override=override))
        for key, override in (("a", False), ("a", False), ("a", True), ("b", True))
    ]
    accepted = registrations.accept_all(OWNER, wanted, may_override=lambda each: each.key == "a")
    assert len(accepted.handles) == 2
    assert [type(error) for error in accepted.errors] == [Conflict, OverrideDenied]


# --- merging ---


def test_merging_is_pure_and_says_what_it_left_out():
    registrations = Registrations(reserved=lambda _run_id, _request_id: {"bash": ["sandbox"], "mail": ["post"]})
    sandbox = EffectOwner("sandbox", "s", 1)
    for owner, key, override in (
        (OWNER, "read", False),
        (OWNER, "new", False),
        (OTHER, "bash", False),
        (sandbox, "write", True),
    ):
        registrations.accept(
            owner, UNBOUND, registration(EffectKind.TOOL, key, override=override), override_authorized=True
        )
    base = [(name, name.upper()) for name in ("read", "bash", "write", "grep")]

    def merged():
        return registrations.merge(base, lambda record: record.registration.key)

    assert merged() == merged()
    assert merged().tools == ("READ", "write", "GREP", "new")
    assert merged().clashes == (Clash("read", "x", 1),)
    assert merged().reserved == ("bash", "mail")
    handle = registrations.accept(
        sandbox,
        ScopeBinding.run("r"),
        registration(EffectKind.TOOL, "bash", override=True),
        override_authorized=True,
    ).handle
    assert merged().reserved == ("bash", "mail")
    inside = registrations.merge(base, lambda record: record.registration.key, run_id="r")
    assert inside.tools == ("READ", "bash", "write", "GREP", "new")
    registrations.dispose(handle)
    assert registrations.active_count == 4


@given(st.permutations(["a", "b", "c"]), st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")))
def test_merging_keeps_the_agents_order_and_loses_nothing(base, registered, overriding):
    registrations = Registrations()
    for key in sorted(registered):
        registrations.accept(
            OWNER, UNBOUND, registration(EffectKind.TOOL, key, override=key in overriding), override_authorized=True
        )
    merged = merge(
        [(name, ("host", name)) for name in base],
        registrations.ledger.active_records(EffectKind.TOOL),
        offer=lambda record: ("extension", record.registration.key),
        reserved={},
    )
    assert [name for _, name in merged.tools] == [*base, *(["d"] if "d" in registered else [])]
    assert {name for who, name in merged.tools if who == "extension"} == (registered & overriding) | (
        registered & {"d"}
    )
    assert [clash.name for clash in merged.clashes] == sorted((registered - overriding) & set(base))


# --- the catalogue in memory ---


def test_the_catalogue_in_memory():
    catalogue = InMemoryModelCatalogue(ProvidedModel("p", "a"))
    catalogue.register(ProvidedModel("p", "b"))
    assert catalogue.has("p", "b")
    assert catalogue.get("p", "b") == ProvidedModel("p", "b")
    assert catalogue.get("q", "b") is None
    with pytest.raises(ValueError, match="p/a already"):
        catalogue.register(ProvidedModel("p", "a"))
    catalogue.unregister("p", "a")
    assert [each.model for each in catalogue.models()] == ["b"]
    with pytest.raises(KeyError):
        catalogue.unregister("p", "a")


# --- numbers, patience, progress ---


@given(st.lists(st.integers(1, 30), unique=True))
def test_used_numbers_are_a_set_in_few_intervals(numbers):
    used = UsedNumbers()
    for place, number in enumerate(numbers):
        used.add(number)
        assert [n for n in range(32) if n in used] == sorted(numbers[: place + 1])
    assert used.intervals == sum(1 for n in numbers if n - 1 not in numbers)


async def test_patience_names_the_limit_that_has_passed(autojump_clock) -> None:
    patience = Patience(5, 8)
    assert (patience.deadline, patience.limit_s, patience.is_over) == (5, 5, False)
    await trio.sleep(4)
    patience.restart()
    assert (patience.deadline, patience.limit_s) == (8, 8)
    with patience.scope() as scope:
        await trio.sleep_forever()
    assert scope.cancelled_caught
    assert (trio.current_time(), patience.is_over) == (8, True)
    assert Patience(10, 3).limit_s == 3


async def test_a_scope_follows_a_deadline_that_moves(autojump_clock) -> None:
    patience = Patience(5)

    async def beat() -> None:
        await trio.sleep(4)
        patience.restart()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        with patience.scope():
            await trio.sleep_forever()
    assert trio.current_time() == 9


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=300))
def test_output_is_never_dropped_and_the_last_note_always_comes(steps):
    async def main() -> None:
        queue, outputs, got, last = ProgressQueue(), [], [], None
        for number, (is_output, reads) in enumerate(steps):
            progress = Progress(output=f"{number}") if is_output else Progress(f"{number}")
            if is_output:
                outputs.append(progress.output)
            else:
                last = progress.text
            queue.put(progress)
            for _ in range(reads):
                try:
                    got.append(queue.receive.receive_nowait())
                except trio.WouldBlock:
                    break
        waiting = queue.receive.statistics().current_buffer_used
        assert waiting <= NOTES_KEPT + len(outputs)
        queue.close()
        got += [each async for each in queue.receive]
        assert [each.output for each in got if each.output] == outputs
        notes = [each.text for each in got if each.text is not None]
        assert notes == sorted(notes, key=int)
        assert (notes[-1] if notes else None) == last
        queue.receive.close()
        queue.put(Progress("nobody"))

    trio.run(main)


def test_many_notes_that_nobody_reads_become_the_newest():
    async def main() -> None:
        queue = ProgressQueue()
        for number in range(10_000):
            queue.put(Progress(f"{number}"))
        assert queue.receive.statistics().current_buffer_used <= NOTES_KEPT
        queue.receive.close()
        queue.put(Progress("nobody"))
        queue.put(Progress(output="nobody"))

    trio.run(main)
