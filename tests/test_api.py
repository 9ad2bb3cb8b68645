"""The main jobs as functions, in a file as people write it, and requests that cannot be met."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch

import droptop
from droptop import BadRequest
from droptop.debias import DropTopConfig
from droptop.memory.buffer import Buffer
from droptop.methods import ER
from droptop.runs.config import configure
from droptop.system import memory

from compasses import FILE

SMALL = "seeds=1, out='out', limit=32, width=4, memory=20"


def script(tmp_path, text, stdin=False):
    file = tmp_path / "mine.py"
    file.write_text(textwrap.dedent(text))
    with file.open() as source:
        given = {"stdin": source} if stdin else {}
        words = [sys.executable, *([] if stdin else [file])]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, **given)


@pytest.mark.parametrize("stdin", [False, True])
def test_a_script_without_a_guard_runs_once(tmp_path, stdin):
    """From a file as from standard input: seeds' processes import nothing of it."""
    done = script(tmp_path, f"print('begun')\nimport droptop\ndroptop.run('fashion', 'er', None, {SMALL})\n", stdin)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begun") == 1
    assert (tmp_path / "out/summary.json").exists()


def test_a_script_that_its_seeds_import_takes_a_guard(tmp_path):
    text = textwrap.dedent(FILE) + f"import droptop\ndroptop.run(compass, 'er', 'none', {SMALL})\n"
    done = script(tmp_path, text)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert 'runs are started under `if __name__ == "__main__":`' in said
    assert not (tmp_path / "out").exists()


def test_a_tracker_of_the_script_hears_of_seeds(tmp_path):
    text = f"""
        import droptop

        class Heard(droptop.Tracker):
            def __init__(self, folder, group, name):
                self.folder = folder

            def scalars(self, step, values):
                (self.folder / "heard").write_text("yes")

        if __name__ == "__main__":
            droptop.run("fashion", "er", "none", log=Heard, {SMALL})
    """
    done = script(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/seed-0/heard").exists(), done.stdout


def test_a_seed_whose_process_is_killed_is_named_with_what_continues(tmp_path):
    (tmp_path / "deadly.py").write_text(
        "import os, signal\nfrom droptop.methods import ER\n\n\nclass Deadly(ER):\n"
        "    def enter(self, task):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with pytest.raises(droptop.DroptopError) as raised:
        droptop.run("fashion", str(tmp_path / "deadly.py"), None, out=tmp_path / "out", limit=32, width=4, seeds=1)
    assert str(raised.value) == (
        f"none seed 0: its process died in its first step (signal {int(signal.SIGKILL)}); it was killed, as happens "
        "where memory runs out"
    )
    assert raised.value.__notes__ == [f"`droptop resume {tmp_path / 'out'}` begins the seed again"]


def test_a_process_that_dies_later_is_not_said_to_have_died_in_its_first_step(tmp_path):
    """In its third step: only with checkpoints is there something to continue from."""
    (tmp_path / "later.py").write_text(
        "import os, signal\nfrom droptop.methods import ER\n\n\nclass Later(ER):\n"
        "    def enter(self, task):\n        if self.clock['step'] == 2:\n"
        "            os.kill(os.getpid(), signal.SIGABRT)\n"
        "        super().enter(task)\n"
    )
    short = {"limit": 32, "width": 4, "seeds": 1}
    for seconds, then in ((0, "continues"), (1000, "begins the seed again")):
        out = tmp_path / str(seconds)
        with pytest.raises(droptop.DroptopError) as raised:
            droptop.run("fashion", str(tmp_path / "later.py"), None, out=out, **short | {"checkpoint_seconds": seconds})
        assert str(raised.value) == f"none seed 0: its process died (signal {int(signal.SIGABRT)})"
        assert raised.value.__notes__ == [f"`droptop resume {out}` {then}"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"debias": DropTopConfig()},
            "debias takes a name, such as droptop, not a DropTopConfig; settings are options",
        ),
        ({"method": ER}, "method takes a name, such as er, not the class ER"),
        ({"debias": ["droptop", 3]}, "debias takes a name, such as droptop, not (an int|a list)"),
        (
            {"memory": 10**9},
            r"--memory takes as many samples as the machine can hold: 1,000,000,000 take 2,\d+\.\d GiB",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(options, says, tmp_path):
    for function in (droptop.run, droptop.compare):
        with pytest.raises(BadRequest, match=says):
            function(**{"data": "fashion", "out": tmp_path / "out", "limit": 32, "width": 4} | options)
    assert not (tmp_path / "out").exists()


def test_none_is_no_debiasing(tmp_path):
    assert configure("fashion", debias=None) == configure("fashion", debias="none")
    spec = droptop.Spec((3, 16, 16), ("a", "b"))
    assert droptop.make_learner("er", spec, None, width=4).debias.droptop is None


def test_a_memory_may_take_what_there_is(monkeypatch, tmp_path):
    """Of the machine, or of the container if that has less; rows of 12 bytes, and one past the end."""
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 2 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    columns = {"x": torch.zeros(4, dtype=torch.uint8), "y": torch.tensor(0)}
    assert Buffer(169, columns).capacity == 169  # 170 rows of 12 bytes are 2,040
    with pytest.raises(BadRequest, match="171 take"):
        Buffer(171, columns)
    (tmp_path / "memory.max").write_text("1500\n")
    (tmp_path / "memory.current").write_text("300\n")
    Buffer(99, columns)
    with pytest.raises(BadRequest, match="100 take"):
        Buffer(100, columns)
    (tmp_path / "memory.max").write_text("max\n")
    Buffer(100, columns)


def test_this_machine_has_memory():
    assert 2**20 < memory.room_on(torch.device("cpu")) <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
