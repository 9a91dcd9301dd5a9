"""The examples that ship with the package: where they are, and what of them can run here."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click

import trio_exthost

COMPILERS = ("cc", "gcc", "clang")


def examples_directory() -> Path:
    """Beside the package in an installed wheel, beside its folder in a checkout."""
    package = Path(next(iter(trio_exthost.__path__)))
    for candidate in (package / "_examples", package.parent / "examples"):
        if (candidate / "agent" / "agent.py").is_file():
            return candidate
    raise click.ClickException(f"the examples are not there: looked beside {package}")


def agent_module(name: str) -> ModuleType:
    """A module of the example agent; the agent is loaded as a package of its own, `exthost_example_agent`."""
    package = "exthost_example_agent"
    if package not in sys.modules:
        directory = examples_directory() / "agent"
        spec = importlib.util.spec_from_file_location(
            package, directory / "__init__.py", submodule_search_locations=[str(directory)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[package] = module
        spec.loader.exec_module(module)
    return importlib.import_module(f"{package}.{name}")


def prepare_extensions(folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Copy the example extensions into `folder` and compile what has to be; those left out, with the reason."""
    ready: list[Path] = []
    left_out: dict[str, str] = {}
    for source in sorted((examples_directory() / "extensions").iterdir()):
        if not (source / "extension.json").is_file():
            continue
        target = folder / source.name
        shutil.copytree(source, target)
        problem = _prepare(target)
        if problem:
            left_out[source.name] = problem
        else:
            ready.append(target)
    return ready, left_out


def _prepare(directory: Path) -> str:
    """Make one extension runnable; why it is not, or nothing."""
    if directory.name == "redact" and shutil.which("node") is None:
        return "it needs Node, and there is no `node` on PATH"
    if directory.name != "weather":
        return ""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return f"it needs a C compiler, and there is none of {', '.join(COMPILERS)} on PATH"
    done = subprocess.run(
        [compiler, "-O2", "-o", "weather", "weather.c"], cwd=directory, capture_output=True, check=False
    )
    return "" if done.returncode == 0 else f"{compiler} failed: {done.stderr.decode(errors='replace').strip()[:200]}"
