"""The rooms of the source tree import one another in one direction only: the contracts in pyproject.toml hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="needs import-linter, which the extra [dev] brings")


def test_the_contracts_of_import_linter_hold():
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "layers KEPT" in done.stdout  # and was not overlooked
    assert " 0 broken" in done.stdout
