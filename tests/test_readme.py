"""The README's two programs are run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trio_exthost.packages import TrustStore, package_digest

README = Path(__file__).parents[1] / "README.md"


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def run_in(folder: Path, program: str) -> str:
    script = folder / "agent.py"
    script.write_text(program)
    env = {**os.environ, "EXTHOST_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, script], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the README's extension in it."""
    folder = tmp_path / ".exthost/extensions/no-sudo"
    folder.mkdir(parents=True)
    manifest = re.search(r'holds `(\{"name": "no-sudo".*?\})`', README.read_text(), re.DOTALL)
    assert manifest is not None
    (folder / "extension.json").write_text(manifest[1])
    (folder / "main.py").write_text(programs()[0])
    return tmp_path


def test_embedding_program_with_the_first_extension_trusted_is_refused_by_it(project: Path) -> None:
    folder = project / ".exthost/extensions/no-sudo"
    store = TrustStore(project / "home/trust.json")
    store.trust(folder, package_digest(folder), name="no-sudo")
    output = run_in(project, programs()[1])
    assert output.splitlines()[0] == "tool_call: block by no-sudo: no sudo here"
    assert output.splitlines()[-1] == "no sudo here"


def test_embedding_program_without_trust_runs_without_the_extension(project: Path) -> None:
    output = run_in(project, programs()[1].replace("sudo ls", "echo done"))
    assert output.splitlines() == ["tool_call: allow", "done", ""]


def test_first_extension_has_15_lines_of_code_at_most() -> None:
    code = [line for line in programs()[0].splitlines() if line.strip() and not line.startswith("import")]
    assert len(code) <= 15
