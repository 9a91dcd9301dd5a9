"""Several instruments as one."""

import inspect

import pytest

from trio_exthost import HostInstrument
from trio_exthost.runtime.instruments import Instruments

HOOKS = [name for name in vars(HostInstrument) if not name.startswith("_")]


def heard_by(name, log):
    """An instrument that writes down every call."""

    def note(hook):
        return lambda _self, *arguments: log.append((name, hook, arguments))

    return type("Noting", (HostInstrument,), {hook: note(hook) for hook in HOOKS})()


@pytest.mark.parametrize("hook", HOOKS)
def test_each_instrument_hears_each_call_in_order_with_all_it_says(hook):
    log = []
    arguments = tuple(range(len(inspect.signature(getattr(HostInstrument, hook)).parameters) - 1))
    getattr(Instruments(heard_by("a", log), heard_by("b", log)), hook)(*arguments)
    assert log == [("a", hook, arguments), ("b", hook, arguments)]


def test_none_is_made_of_none_and_one_stays_itself():
    one, other = HostInstrument(), HostInstrument()
    assert Instruments.of() is None
    assert Instruments.of(None, None) is None
    assert Instruments.of(None, one) is one
    both = Instruments.of(one, None, other)
    assert isinstance(both, Instruments)
    assert both.instruments == (one, other)
