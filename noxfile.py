"""Every check of the project. `nox` runs the default ones; `nox -l` lists them all."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True
PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
STORES = ("lease", "memory", "sqlite", "sqlite_extension", "sqlite_file", "sqlite_rows", "sqlite_session")
STATE = sorted(each for each in Path("trio_exthost/state").glob("*.py") if each.stem not in STORES)
PURE = ",".join([*(f"trio_exthost/{each}/*" for each in ("wire", "effects", "hooks", "policy")), *map(str, STATE)])


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests, on each Python that is present."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(python=PYTHONS[0])
def cover(session: nox.Session) -> None:
    """Branch coverage: 100 % of the pure layers, a report of the rest."""
    session.install("-e", ".[test]")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", "-q", *session.posargs)
    session.run("coverage", "combine", "-q")
    session.run("coverage", "report")
    session.run("coverage", "report", f"--include={PURE}", "--fail-under=100")


@nox.session(python=PYTHONS[0])
def types(session: nox.Session) -> None:
    """mypy strict; pyright for the completeness of the public face."""
    session.install("-e", ".[dev]")
    session.run("mypy")
    session.chdir(session.create_tmp())  # in the checkout pyright would take the package for sources, not for installed
    session.run("pyright", "--ignoreexternal", "--verifytypes", "trio_exthost")


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """ruff, flake8-async, and the import contracts."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    sources = map(str, sorted(Path("trio_exthost").rglob("*.py")))  # it takes files, not directories
    session.run("flake8-async", "--enable=ASYNC", "--disable=ASYNC910,ASYNC911,ASYNC913", *sources)
    session.run("lint-imports")


@nox.session(python=PYTHONS[0], default=False)
def bench(session: nox.Session) -> None:
    """The benchmarks, quick; what is given goes to the one of fan-out instead (`nox -s bench -- --json FILE`: a full run)."""
    session.install("-e", ".[bench]")
    session.run("python", "benchmarks/fanout.py", *(session.posargs or ["--quick"]))
    if not session.posargs:
        session.run("python", "benchmarks/ledger.py", "--quick")
        session.run("python", "benchmarks/state.py", "--quick")


@nox.session(python=PYTHONS[0], default=False)
def soak(session: nox.Session) -> None:
    """The property tests with many more examples, and chaos for ten minutes, of seeds that nobody has chosen."""
    session.install("-e", ".[test]")
    session.run(
        "pytest", "tests/wire", "tests/effects", "tests/policy", "tests/state", "tests/runtime", "tests/fuzz",
        env={"HYPOTHESIS_PROFILE": "soak", "EXTHOST_CRASHES": "200", "EXTHOST_SWEEPS": "20"},
    )  # fmt: skip
    chaos = {
        "EXTHOST_CHAOS_SECONDS": "60",
        "EXTHOST_CHAOS_SEEDS": "10",
        "EXTHOST_CHAOS_SEED": str(int(time.time()) % 10**6),
    }
    session.run(
        "pytest", "-s", "tests/chaos", env={**chaos, **{key: each for key, each in os.environ.items() if key in chaos}}
    )


@nox.session(python=PYTHONS[0], default=False)
def fuzz(session: nox.Session) -> None:
    """Coverage-guided fuzzing of one target, on Linux: `nox -s fuzz -- TARGET -max_total_time=600`; without, their names."""
    session.install("-e", ".[fuzz]")
    session.run("python", "tests/fuzz/run.py", *session.posargs)


@nox.session(python=PYTHONS[0], default=False)
def mutation(session: nox.Session) -> None:
    """The mutation score of one pure layer: `nox -s mutation -- wire`; docs/mutation.md says how it is counted."""
    session.install("-e", ".[mutation]")
    session.run("python", "tests/mutation/score.py", "--work", session.create_tmp(), *session.posargs)


@nox.session(python=PYTHONS[0], default=False)
def demo(session: nox.Session) -> None:
    """The demo, from an installed wheel: what a user gets."""
    shutil.rmtree("dist", ignore_errors=True)
    session.install("build")
    session.run("python", "-m", "build", "--wheel", "-o", "dist")
    session.install("--force-reinstall", "trio-exthost[demo]", "--find-links", "dist")
    session.run("exthost", "demo")
