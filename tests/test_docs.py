"""Every code block of the documentation, run in order, a page in a folder of its own.

python   is executed; blocks of a page share their names. With title="FILE" it is written there instead
toml     is written to the file that its title names
sh       is run by bash
text     is there to be read
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return [found.groups() for found in BLOCK.finditer(page.read_text())]


def test_every_block_is_of_a_kind_that_is_checked():
    for page in PAGES:
        assert page.read_text().count("\n```") == 2 * len(blocks(page)), page
        for kind, title, _ in blocks(page):
            assert kind in ("python", "sh", "text") or (kind == "toml" and title), (page, kind)


@pytest.mark.docs
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(kind != "text" for kind, *_ in blocks(page))], ids=lambda page: page.stem
)
def test_runs_as_written(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROPTOP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    names = {"__name__": "__main__"}
    for kind, title, text in blocks(page):
        if title:
            Path(title).write_text(text)
        elif kind == "python":
            exec(compile(text, str(page), "exec"), names)
        elif kind == "sh":
            subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True)
