"""What an import loads (how long it takes is for benchmarks/import_cost.py)."""

import os
import subprocess
import sys

import pytest

HEAVY = frozenset(
    {
        "asyncio", "cattrs", "click", "concurrent.futures", "email", "http.client", "httpx", "hypothesis", "importlib.metadata",
        "importlib.resources", "jsonschema_rs", "multiprocessing", "platformdirs", "pydoc", "rich", "sqlite3", "tempfile",
        "unittest", "urllib.request", "xml",
    }
)  # fmt: skip


def loaded_by(statement):
    """Names of the modules that the statement loads over those that trio has loaded."""
    program = f"import sys, trio; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    # Coverage, where it measures this run, would load half of the list itself.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_else():
    assert loaded_by("import trio_exthost") == {"trio_exthost"}


@pytest.mark.parametrize("statement", ["from trio_exthost import open_host", "from trio_exthost import *"])
def test_importing_the_runtime_loads_nothing_heavy(statement):
    loaded = loaded_by(statement)
    assert "trio_exthost.runtime.host" in loaded
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith("trio_exthost.cli")}


def test_importing_the_ledger_loads_no_runtime():
    assert not {name for name in loaded_by("from trio_exthost import EffectLedger") if ".runtime" in name}


def test_heavy_module_would_be_seen():
    assert "sqlite3" in loaded_by("import sqlite3") & HEAVY
