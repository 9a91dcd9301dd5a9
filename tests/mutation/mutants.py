"""The mutants of a layer: what each changes, which are only of a text for people, and a sample that is the same every time."""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

STORES = ("lease", "memory", "sqlite", "sqlite_extension", "sqlite_file", "sqlite_rows", "sqlite_session")


@attrs.frozen
class Mutant:
    """One change of one function."""

    name: str
    """As mutmut names it."""
    path: str
    """The file, from the root of the checkout."""
    function: str
    """`function`, or `Class.method`."""
    was: str
    """The lines that are changed, as Python writes them back from the syntax tree, joined by newlines."""
    becomes: str
    of_text: bool
    """Only a text for people differs: a string or an f-string that has a space in its wording."""

    @property
    def key(self) -> str:
        """What tells it from others, without any number that shifts when other code changes: two that make the same of the
        same line of a function are one."""
        return "\n".join((self.path, self.function, self.was, "->", self.becomes))


def files_of(layer: str, root: Path) -> list[str]:
    """The layer's files from the checkout's root, sorted; of `state` those that are pure."""
    found = sorted((root / "trio_exthost" / layer).glob("*.py"))
    return [str(each.relative_to(root)) for each in found if layer != "state" or each.stem not in STORES]


def mutants_of(path: str, root: Path) -> Iterator[Mutant]:
    """All mutants of a file, as mutmut makes them: of the bodies of functions that bear no decorator but `staticmethod` or `classmethod`."""
    from mutmut.mutation.file_mutation import mutate_file_contents  # not there in an ordinary test run

    made = mutate_file_contents(path, (root / path).read_text())
    trees = {each.name: each for each in ast.walk(ast.parse(made.code)) if isinstance(each, ast.FunctionDef)}
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for name in made.mutant_names:
        stem = name.rpartition("__mutmut_")[0]
        old, new = trees[f"{stem}__mutmut_orig"], trees[name]
        old.name = new.name = stem.removeprefix("x_").rpartition("ǁ")[2]
        changed = difflib.ndiff(ast.unparse(old).splitlines(), ast.unparse(new).splitlines())
        lines = [each for each in changed if each[0] in "+-"]
        yield Mutant(
            name=f"{module}.{name}",
            path=path,
            function=stem.removeprefix("x_").removeprefix("xǁ").replace("ǁ", "."),
            was="\n".join(each[2:].strip() for each in lines if each[0] == "-"),
            becomes="\n".join(each[2:].strip() for each in lines if each[0] == "+"),
            of_text=_of_text(old, new),
        )


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """`size` of them (all when they are fewer). Whether one is early or late in the draw depends on itself and the seed
    alone, so a change elsewhere in the code keeps the rest of the sample."""
    return sorted(mutants, key=lambda each: hashlib.sha256(f"{seed}\n{each.key}".encode()).digest())[:size]


def _of_text(old: ast.AST, new: ast.AST) -> bool:
    old, new = _smallest_difference(old, new)
    if isinstance(old, ast.Call) and isinstance(new, ast.Call) and len(old.args) == len(new.args) + 1:
        gone = next((a for a, b in zip(old.args, new.args, strict=False) if ast.dump(a) != ast.dump(b)), old.args[-1])
        return _is_text(gone)
    return _is_text(old) and isinstance(new, ast.Constant | ast.JoinedStr)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr):
        return any(_is_text(each) for each in node.values)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def _smallest_difference(old: ast.AST, new: ast.AST) -> tuple[ast.AST, ast.AST]:
    """The lowest node that holds all of what differs, in the old and the new tree."""
    if type(old) is not type(new):
        return old, new
    pairs = []
    for field in old._fields:
        a, b = getattr(old, field, None), getattr(new, field, None)
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            pairs += zip(a, b, strict=True)
        else:
            pairs.append((a, b))
    differing = [(a, b) for a, b in pairs if _dump(a) != _dump(b)]
    if len(differing) == 1 and all(isinstance(each, ast.AST) for each in differing[0]):
        a, b = differing[0]
        inner = _smallest_difference(a, b)
        if isinstance(old, ast.JoinedStr) and isinstance(inner[0], ast.Constant) and inner[0] is a:
            return old, new  # the wording of an f-string is one text, also where a part of it has no space
        return inner
    return old, new


def _dump(value: object) -> str:
    if isinstance(value, list):
        return repr([_dump(each) for each in value])
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)
