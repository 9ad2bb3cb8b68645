"""Every recipe as a quick look, by the real command: about a minute each on two cores."""

import pytest

from droptop.paper import every_recipe

from toys import droptop


@pytest.mark.paper
@pytest.mark.parametrize("name", every_recipe())
def test_a_quick_look(name, tmp_path):
    out = tmp_path / "out"
    done = droptop("paper", name, "--quick", "--out", out, timeout=900)
    assert done.returncode == 0, done.stderr
    page = (out / f"{name}.md").read_text()
    assert f"droptop paper {name} --quick --out {out}" in page
    assert "**A quick look**" in page
    assert "(quoted)" not in page
    assert "Not complete" not in page
    written = {path.suffix for path in out.glob(f"{name}*") if path.stat().st_size > 0}
    assert written >= {".md", ".csv", ".tex"} or written >= {".md", ".png", ".pdf"}
    again = droptop("paper", name, "--out", out, timeout=300)
    assert again.returncode == 0, again.stderr
    assert "cells are done" not in again.stdout  # nothing was run
    assert (out / f"{name}.md").read_text() == page
