"""Limits of the system on open files, on memory and on the size of files: one line, and a whole resume without them."""

import resource
from pathlib import Path

import pytest

from faults.commands import run
from faults.folders import RUN, mended, straight, whole

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return what a run leaves that has no limits."""
    return straight(tmp_path_factory.mktemp("run"), RUN)[0]


def limit(what: int, count: int) -> None:
    """Set a limit on this process; on memory, in bytes beyond what it has."""
    if what == resource.RLIMIT_AS:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        count += pages * resource.getpagesize()
    resource.setrlimit(what, (count, resource.getrlimit(what)[1]))


CASES = [
    *((resource.RLIMIT_NOFILE, count) for count in (5, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 64)),
    *((resource.RLIMIT_AS, mib << 20) for mib in (1, 4, 16, 32, 64, 96, 128, 192, 256, 384, 512)),
    *((resource.RLIMIT_FSIZE, count) for count in (1000, 2000, 4000, 8000, 16000, 32000)),
]
SAYS = {
    resource.RLIMIT_NOFILE: ("Too many open files",),
    resource.RLIMIT_AS: ("memory", "killed"),
    resource.RLIMIT_FSIZE: ("File too large",),
}
NAMES = {resource.RLIMIT_NOFILE: "files", resource.RLIMIT_AS: "memory", resource.RLIMIT_FSIZE: "size"}


@pytest.mark.parametrize(("what", "count"), CASES, ids=[f"{NAMES[what]}-{count}" for what, count in CASES])
def test_a_limit_is_told_in_a_line_and_a_resume_without_it_is_whole(tmp_path, files, fault_counts, what, count):
    out = tmp_path / "out"
    done = run(tmp_path / "said", *RUN, "--out", out, prepare=limit, given=(what, count))
    assert "Traceback" not in done.out + done.err, done
    assert done.code in (0, 1, 2), done
    assert len(done.err.splitlines()) == (done.code != 0), done
    assert done.code == 0 or any(text in done.err for text in SAYS[what]), done
    again = mended(out, RUN)
    assert again.code == 0, f"{done}\nthen {again}"
    assert whole(out) == files
    fault_counts.add(f"commands under a limit on {NAMES[what]}")
