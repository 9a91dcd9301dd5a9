"""The public names: one static, sorted list, all of them there and documented."""

import ast
import inspect
import itertools
from pathlib import Path

import pytest

import trio_exthost


def names_for_type_checkers():
    """What `if TYPE_CHECKING:` imports: name to module."""
    tree = ast.parse(Path(trio_exthost.__file__).read_text(encoding="utf-8"))
    block = next(each for each in tree.body if isinstance(each, ast.If))
    assert isinstance(block.test, ast.Name)
    assert block.test.id == "TYPE_CHECKING"
    return {alias.name: each.module for each in block.body for alias in each.names}


def test_list_is_sorted_and_names_nothing_twice():
    assert all(one < other for one, other in itertools.pairwise(trio_exthost.__all__))


def test_list_is_static():
    tree = ast.parse(Path(trio_exthost.__file__).read_text(encoding="utf-8"))
    (value,) = [
        each.value for each in tree.body if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__"
    ]
    assert ast.literal_eval(value) == trio_exthost.__all__


def test_type_checkers_and_programs_see_the_same_names_in_the_same_modules():
    homes = {name: f"trio_exthost.{module}" for name, module in trio_exthost._HOMES.items()}
    assert names_for_type_checkers() == homes
    assert sorted(homes) == trio_exthost.__all__


def test_star_import_gives_the_list():
    names = {}
    exec("from trio_exthost import *", names)
    assert sorted(names.keys() - {"__builtins__"}) == trio_exthost.__all__


@pytest.mark.parametrize("name", trio_exthost.__all__)
def test_public_name_is_there_and_documented(name):
    value = getattr(trio_exthost, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert "__doc__" in vars(value) or inspect.isfunction(value)
        assert value.__doc__
        assert not value.__doc__.startswith(f"{name}(")  # the signature that a dataclass gets in place of a docstring


def test_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="module 'trio_exthost' has no attribute 'opn_host'"):
        trio_exthost.opn_host  # noqa: B018 - asking is the test


def test_name_that_nobody_has_asked_for_yet_is_listed(monkeypatch):
    monkeypatch.delitem(vars(trio_exthost), "Session", raising=False)
    assert "Session" in dir(trio_exthost)
