"""kill -9 at every call that changes a file: of the process that calls, before it, after it or within a write, and of
all processes of the command. What is continued then has the files of what nobody disturbed.
"""

import shutil
import signal

import pytest

from faults.folders import RUN, harmed, mended, straight, whole
from faults.injection import KILL, Fault

PARTS = 6  # of the calls, each a test, to be shared by workers
STUDY = """
data = "fashion-sticker"
method = "er"
debias = ["none", "droptop"]
limit = 64
width = 4
memory = 40
tasks = 2
seeds = 1
checkpoint_seconds = 0.0
"""


@pytest.fixture(scope="module")
def run_alone(tmp_path_factory):
    return RUN, *straight(tmp_path_factory.mktemp("run"), RUN)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    place = tmp_path_factory.mktemp("sweep")
    (place / "study.toml").write_text(STUDY)
    args = ["sweep", str(place / "study.toml")]
    files, calls = straight(place, args)
    of_seeds = [call for call in calls if "/seed-" in call[1]]  # as in a run, but for what the sweep does about it
    return args, files, [call for call in calls if call not in of_seeds] + of_seeds[::3]


def check(tmp_path, args, fault, files):
    """Kill a command, and continue it."""
    out, done = harmed(tmp_path, args, fault)
    said = f"{fault}: {done.code} {done.out} {done.err}"
    assert "Traceback" not in done.out + done.err, said
    if done.code == 1:  # a worker was killed, and the command lives on to say so
        assert "its process died" in done.err, said
        assert len(done.err.splitlines()) == 1, said
    else:
        assert done.code == -signal.SIGKILL or (args[0] == "sweep" and done.code == 0), said
    again = mended(out, args)
    assert again.code == 0, f"{said}\nthen {again}"
    assert whole(out) == files, said


def check_part(tmp_path, command, fault_counts, part):
    """Do every kill of one part of a command's calls; collect what went wrong."""
    args, files, calls = command
    failures = []
    for number, chance in enumerate(calls):
        if number % PARTS != part:
            continue
        fault = Fault(*chance, harm=KILL[(number // PARTS) % len(KILL)])
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        try:
            check(tmp_path / "one", args, fault, files)
        except AssertionError as error:
            failures.append(str(error))
        else:
            fault_counts.add(f"kill -9 of a {args[0]} at a call on a file, resumed to equal bytes")
    assert not failures, "\n\n".join(failures)


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
def test_a_run_killed_at_any_call_becomes_whole(run_alone, tmp_path, fault_counts, part):
    check_part(tmp_path, run_alone, fault_counts, part)


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
def test_a_sweep_killed_at_any_call_becomes_whole(swept, tmp_path, fault_counts, part):
    check_part(tmp_path, swept, fault_counts, part)
