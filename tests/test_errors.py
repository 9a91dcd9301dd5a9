"""Each exception says whose fault it is, a stable word to branch on, and the way out."""

import inspect

import pytest

from trio_exthost import errors
from trio_exthost.errors import (
    CallAborted,
    CallError,
    CallTimedOut,
    ConfigError,
    ExtensionExited,
    HostError,
    LoadError,
    ManifestError,
    Overloaded,
    PayloadError,
    ProtocolError,
    WrongThread,
)  # fmt: skip

ALL = [each for _, each in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("kind", ALL)
def test_every_error_is_a_host_error_with_its_extension_and_its_way_out(kind):
    assert issubclass(kind, HostError)
    assert kind.__doc__
    error = kind("it broke", extension="guard")
    assert str(error).startswith("guard: ")
    assert "it broke" in error.message
    assert (error.extension, error.hint, error.code) == ("guard", "", kind.code)


def test_codes_are_distinct():
    assert len({kind.code for kind in ALL}) == len(ALL)


def test_message_has_the_extension_first_and_the_hint_last():
    assert str(HostError("it broke", extension="guard", hint="mend it")) == "guard: it broke (mend it)"
    assert str(HostError("it broke")) == "it broke"


def test_code_given_is_of_that_error_alone():
    assert HostError("it broke", code="other").code == "other"
    assert HostError("it broke").code == "host_error"


@pytest.mark.parametrize(
    ("kind", "base"), [(ConfigError, ValueError), (PayloadError, ValueError), (WrongThread, RuntimeError)]
)
def test_misuse_is_a_builtin_error_too(kind, base):
    assert issubclass(kind, base)


@pytest.mark.parametrize(
    ("path", "where", "text"),
    [("e.json", "$.name", "e.json at $.name: bad"), ("e.json", "", "e.json: bad"), ("", "", "bad")],
)
def test_manifest_error_names_the_place(path, where, text):
    error = ManifestError("bad", path=path, where=where)
    assert (str(error), error.path, error.where) == (text, path, where)


def test_load_error_tells_stage_exit_stderr_and_log_on_their_own_lines():
    error = LoadError(
        "it ended",
        extension="e",
        stage="hello",
        exit_status="exit 1",
        stderr_tail="one\ntwo\n",
        log_path="e.log",
        code="exited",
    )
    assert str(error).split("\n") == [
        "e: it ended", "  stage: hello", "  exit: exit 1", "  stderr: one", "          two", "  log: e.log",
    ]  # fmt: skip
    assert error.code == "exited"
    assert str(LoadError("it ended")) == "it ended"


def test_protocol_error_keeps_what_could_be_read_of_the_frame():
    error = ProtocolError("bad", code="too_long", frame_type="hello", frame_id="7")
    assert (error.code, error.frame_type, error.frame_id) == ("too_long", "hello", "7")


def test_call_error_says_whether_it_may_have_run():
    assert CallError("x").may_have_run
    assert not CallTimedOut("x", may_have_run=False).may_have_run
    assert not Overloaded("x").may_have_run


def test_exited_extension_is_an_aborted_call_that_tells_how_it_ended():
    error = ExtensionExited("gone", exit_status="signal 9", stderr_tail="oh", may_have_run=False)
    assert isinstance(error, CallAborted)
    assert (error.exit_status, error.stderr_tail, error.may_have_run) == ("signal 9", "oh", False)
