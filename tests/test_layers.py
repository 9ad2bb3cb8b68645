"""What the source tree keeps to: rooms import one another in one direction only, and nothing is unpickled."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import droptop


def test_the_contracts_of_import_linter_hold():
    pytest.importorskip("importlinter", reason="needs import-linter, which the extra [dev] brings")
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


def test_nothing_is_unpickled():
    """A pickle runs what it names. CIFAR's files are some: they are read by a machine that runs nothing."""
    for path in Path(droptop.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            allowed = {"pickle"} if path.name == "pickles.py" else set()
            assert not {"pickle", "marshal", "shelve"} & set(names) - allowed, path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in {("torch", "save"), ("torch", "load")}, path
                assert node.value.id != "pickle" or node.attr == "_Unpickler", path  # the one written in Python
