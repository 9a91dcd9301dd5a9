"""The log of diagnostics: bounded, counted for ever, told in order."""

import pytest

from trio_exthost import Code, Diagnostic, DiagnosticLog, Severity


def diagnostic(number=0, code=Code.EXITED, extension=None):
    return Diagnostic(code, Severity.WARNING, f"number {number}", extension)


def test_log_over_its_bound_keeps_the_newest_and_counts_all():
    log = DiagnosticLog(keep=2)
    for number in range(5):
        log.add(diagnostic(number))
    assert [each.message for each in log] == ["number 3", "number 4"]
    assert len(log) == 2
    assert log.counts == {Code.EXITED: 5}


def test_counted_one_is_neither_kept_nor_told():
    log, told = DiagnosticLog(keep=2), []
    log.listen(told.append)
    log.count(Code.STRAY_OUTPUT)
    assert (len(log), told, log.counts[Code.STRAY_OUTPUT]) == (0, [], 1)


def test_listeners_are_told_in_order_from_then_on():
    log, told = DiagnosticLog(keep=1), []
    log.add(diagnostic(0))
    log.listen(lambda each: told.append(("first", each.message)))
    log.listen(lambda each: told.append(("second", each.message)))
    log.add(diagnostic(1))
    assert told == [("first", "number 1"), ("second", "number 1")]


def test_one_extensions_are_the_kept_ones_that_name_it():
    log = DiagnosticLog(keep=3)
    for number, extension in enumerate(["a", "a", "b", None]):
        log.add(diagnostic(number, extension=extension))
    assert [each.message for each in log.of("a")] == ["number 1"]
    assert [each.message for each in log.of("b")] == ["number 2"]
    assert log.of("c") == ()


def test_log_may_grow_while_it_is_read():
    log = DiagnosticLog(keep=5)
    log.add(diagnostic(0))
    for _ in log:
        log.add(diagnostic(1))
    assert len(log) == 2


def test_counts_cannot_be_written():
    with pytest.raises(TypeError):
        DiagnosticLog(keep=1).counts[Code.EXITED] = 0


def test_codes_are_their_own_words():
    assert all(code.value == code.name.lower() for code in Code)
