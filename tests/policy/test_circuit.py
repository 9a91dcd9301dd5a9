"""The circuit against a table of what it does, and against a naive model under generated histories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.policy.circuit import Circuit, CircuitState

CLOSED, OPEN, HALF = CircuitState.CLOSED, CircuitState.OPEN, CircuitState.HALF_OPEN


def history(circuit: Circuit, word: str) -> list[CircuitState]:
    """Plays f(ailed), s(ucceeded), p(robe) in the current epoch; the state after each."""
    states = []
    for letter in word:
        match letter:
            case "f":
                circuit.failed(circuit.epoch)
            case "s":
                circuit.succeeded(circuit.epoch)
            case "p":
                circuit.probe()
        states.append(circuit.state)
    return states


@pytest.mark.parametrize(
    ("word", "state", "wait_s"),
    [
        ("", CLOSED, 0),
        ("ff", CLOSED, 0),
        ("fff", OPEN, 5),
        ("ffsff", CLOSED, 0),
        ("ffsfff", OPEN, 5),
        ("ffff", OPEN, 5),
        ("fffp", HALF, 5),
        ("fffpf", OPEN, 10),
        ("fffpfpf", OPEN, 20),
        ("fffps", CLOSED, 0),
        ("fffpfpsfff", OPEN, 5),
        ("fff" + "pf" * 70, OPEN, 300),
    ],
)
def test_a_history_ends_in(word, state, wait_s):
    circuit = Circuit()
    history(circuit, word)
    assert (circuit.state, circuit.wait_s) == (state, wait_s)


def test_a_probe_of_a_circuit_that_is_not_open_is_a_bug():
    with pytest.raises(RuntimeError, match="closed"):
        Circuit().probe()


def test_many_failures_at_once_open_it_once_and_a_late_success_does_not_close_it():
    circuit = Circuit()
    asked = [circuit.epoch] * 10
    assert [circuit.failed(epoch) for epoch in asked].count(True) == 1
    assert not circuit.succeeded(asked[0])
    circuit.probe()
    assert not circuit.succeeded(asked[0])
    assert not circuit.failed(asked[0])
    assert circuit.state is HALF
    assert circuit.succeeded(circuit.epoch)


@given(st.lists(st.sampled_from("fsp"), max_size=60), st.integers(1, 4))
def test_against_a_naive_model(letters, threshold):
    circuit = Circuit(threshold=threshold, delay_s=1, delay_max_s=8)
    run, state, failed_probes = 0, CLOSED, 0
    for letter in letters:
        if letter == "p":
            if state is not OPEN:
                continue
            state = HALF
        elif letter == "s" and state is not OPEN:
            run, state, failed_probes = 0, CLOSED, 0
        elif letter == "f" and state is CLOSED:
            run += 1
            state = OPEN if run == threshold else CLOSED
        elif letter == "f" and state is HALF:
            state, failed_probes = OPEN, failed_probes + 1
        if letter != "s" or circuit.state is not OPEN:
            history(circuit, letter)
        assert circuit.state is state
        if state is OPEN:
            assert circuit.wait_s == min(2**failed_probes, 8)
