"""Damaged files: no command that looks fails with a traceback, hangs, or shows a wrong figure without a word."""

import random
import shutil

import pytest

from damage import check_looks, counted, damages, files_of, look, without_checksums

LOOKING = ("status", "results", "report", "verify")
UNCHECKED = (
    "a flipped bit",
    "a changed digit",
    "of a wrong type",
    "exchanged",
)  # of environment.json, parts of which may change


def check_all(kind, folder, tmp_path, monkeypatch, draw, every=1, first=0, promised=True):
    """Damage a folder in all ways, or in every so many of them; return what was done, by name."""
    before, done = look(folder, tmp_path / "page.html", monkeypatch, LOOKING), []
    assert set(before.codes.values()) == {0}
    for damage in list(damages(folder, draw))[first::every]:
        with damage.done():
            now = look(folder, tmp_path / "page.html", monkeypatch, LOOKING)
        done.append(damage.how)
        if promised:
            check_looks(damage, before, now)
            may_change = damage.path.name == "environment.json" or damage.path.parent.name == "checkpoints"
            # The last digits of a summary in a study, which has no manifest of runs, may be another machine's.
            may_change |= kind == "study" and damage.path.name == "summary.json"
            if not (may_change and damage.how in UNCHECKED) and damage.how != "gone":
                assert now.codes["verify"] == 1, f"{damage.path}, {damage.how}: verify finds nothing"
        assert all(code in (0, 1, 2) for code in now.codes.values())
        assert all(len(line) < 1000 for line in now.said), damage
    assert look(folder, tmp_path / "page.html", monkeypatch, LOOKING) == before  # it is whole again
    return done


@pytest.mark.parametrize("kind", ["comparison", "study"])
def test_a_sample_of_damaged_files_is_noticed(kind, comparison, swept, tmp_path, monkeypatch):
    folder = shutil.copytree(comparison[0] if kind == "comparison" else swept, tmp_path / "copy")
    total = len(files_of(folder))
    done = check_all(kind, folder, tmp_path, monkeypatch, random.Random(0), every=total // 4, first=3)
    assert len(done) > 15


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["comparison", "study"])
def test_every_damaged_file_is_noticed(kind, comparison, swept, tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(comparison[0] if kind == "comparison" else swept, tmp_path / "copy")
    done = check_all(kind, folder, tmp_path, monkeypatch, random.Random(1))
    old = without_checksums(shutil.copytree(folder, tmp_path / "old"))
    more = check_all(kind, old, tmp_path, monkeypatch, random.Random(2), promised=False)
    with capsys.disabled():
        print(f"\n{kind}: {len(done)} damaged files ({counted(done)}), 0 tracebacks, 0 hangs, 0 silently wrong figures")
        print(f"{kind} without checksums: {len(more)} damaged files ({counted(more)}), 0 tracebacks, 0 hangs")
