"""Damaged files: no command that looks fails with a traceback, hangs, or shows a wrong figure without a word."""

import random
import shutil

import pytest

from damage import check_looks, damages, files_of, look, without_checksums

LOOKING = ("status", "results", "report", "verify")
AT_A_TUNING = ("status", "report", "verify")
UNCHECKED = (
    "a flipped bit",
    "a changed digit",
    "of a wrong type",
    "exchanged",
)  # of environment.json, parts of which may change


def check_all(kind, folder, tmp_path, monkeypatch, draw, every=1, first=0, promised=True):
    """Damage a folder in all ways, or in every so many of them; return what was done, by name."""
    looking = AT_A_TUNING if kind == "tuning" else LOOKING
    before, done = look(folder, tmp_path / "page.html", monkeypatch, looking), []
    assert set(before.codes.values()) == {0}
    for damage in list(damages(folder, draw))[first::every]:
        if damage.data == damage.path.read_bytes():
            continue  # what was drawn is what stands there, such as true for true
        with damage.done():
            now = look(folder, tmp_path / "page.html", monkeypatch, looking)
        done.append(damage.how)
        if promised:
            check_looks(damage, before, now)
            may_change = damage.path.name == "environment.json" or damage.path.parent.name == "checkpoints"
            # The last digits of a summary in a study, which has no manifest of runs, may be another machine's.
            may_change |= kind == "study" and damage.path.name == "summary.json"
            journal = damage.path.name == "optuna.log"  # what it says is compared once it is in tune.json
            if not (may_change and damage.how in UNCHECKED) and damage.how != "gone" and not journal:
                assert now.codes["verify"] == 1, f"{damage.path}, {damage.how}: verify finds nothing"
        assert all(code in (0, 1, 2) for code in now.codes.values())
        assert all(len(line) < 1000 for line in now.said), damage
    assert look(folder, tmp_path / "page.html", monkeypatch, looking) == before  # it is whole again
    return done


@pytest.fixture
def folder(kind, request, tmp_path):
    """Return a folder of a kind, to damage."""
    fixture = {"comparison": "comparison", "study": "swept", "tuning": "tuned"}[kind]
    made = request.getfixturevalue(fixture)
    return shutil.copytree(made if kind == "study" else made[0], tmp_path / "copy")


@pytest.mark.parametrize("kind", ["comparison", "study", "tuning"])
def test_a_sample_of_damaged_files_is_noticed(kind, folder, tmp_path, monkeypatch):
    total = len(files_of(folder))
    done = check_all(kind, folder, tmp_path, monkeypatch, random.Random(0), every=total // 4, first=3)
    assert len(done) > 15


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["comparison", "study", "tuning"])
def test_every_damaged_file_is_noticed(kind, folder, tmp_path, monkeypatch, fault_counts):
    done = check_all(kind, folder, tmp_path, monkeypatch, random.Random(1))
    old = without_checksums(shutil.copytree(folder, tmp_path / "old"))
    more = check_all(kind, old, tmp_path, monkeypatch, random.Random(2), promised=False)
    fault_counts.add("damaged files: 0 tracebacks, 0 hangs, 0 figures that are wrong without a word", len(done))
    fault_counts.add("damaged files in folders without checksums: 0 tracebacks, 0 hangs", len(more))
