"""Every call that changes a file fails once, or from then on: the user gets one line, and the folder becomes whole."""

import shutil

import pytest

from faults.folders import COMPARE, harmed, mended, straight, whole
from faults.injection import Fault

SAYS = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return straight(tmp_path_factory.mktemp("compare"), COMPARE)


def check(tmp_path, fault, files):
    """Do one fault to a comparison; it says so in a line, and resume gives the files of an undisturbed one."""
    out, done = harmed(tmp_path, COMPARE, fault)
    said = f"{fault}: {done.code} {done.out} {done.err}"
    assert "Traceback" not in done.out + done.err, said
    if done.code == 0:  # what failed was worth a note, or had been done already
        assert "could not be written" in done.out or whole(out) == files, said
        assert done.err == "", said
    else:
        assert done.code in (1, 2), said
        assert len(done.err.splitlines()) == 1, said
        assert done.err.startswith("droptop: "), said
        assert SAYS[fault.harm] in done.err, said
    again = mended(out, COMPARE)
    assert again.code == 0, f"{said}\nthen {again}"
    assert whole(out) == files, said


@pytest.mark.faults
@pytest.mark.parametrize("half", range(8))
def test_every_call_on_every_file_fails(undisturbed, tmp_path, fault_counts, half):
    files, calls = undisturbed
    assert {"open", "write", "truncate", "fsync", "rename", "unlink", "mkdir"} == {call for call, _, _ in calls}
    failures = []
    for number, chance in enumerate(calls):
        if number % 8 != half:
            continue
        fault = Fault(*chance, harm="ENOSPC" if number % 16 < 8 else "EIO")
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        try:
            check(tmp_path / "one", fault, files)
        except AssertionError as error:
            failures.append(str(error))
        else:
            fault_counts.add("failing calls on files, each one line and a whole resume")
    assert not failures, "\n\n".join(failures)
