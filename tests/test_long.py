"""Long ones, run by hand: pytest -m faults."""

import os
import subprocess
from pathlib import Path

import pytest
import torch

from droptop import Spec, make_learner

from toys import command, environment

pytestmark = pytest.mark.faults


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_million_samples_leave_memory_as_it_was(capsys):
    with pytest.warns(UserWarning, match="1 x 1"):  # small images, so that a million of them take two minutes
        learner = make_learner("er", Spec((3, 8, 8), tuple("abcd")), debias="droptop", width=1, memory=200, probe=64)
    x = torch.randint(0, 256, (1000, 3, 8, 8), dtype=torch.uint8)
    y = torch.randint(0, 4, (1000,))
    sizes = []
    for step in range(1000):
        learner.observe(x, y)
        if step % 100 == 99:
            sizes.append(resident_bytes())
    with capsys.disabled():
        print("\nMiB every 100,000 samples:", [size // 2**20 for size in sizes])
    assert max(sizes[1:]) < 1.05 * sizes[0]


def test_without_a_network_everything_but_download_works(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import socket\n"
        "real = socket.socket.connect\n"
        "def connect(self, *args):\n"
        "    if self.family in (socket.AF_INET, socket.AF_INET6):\n"
        "        raise OSError('no network')\n"
        "    return real(self, *args)\n"
        "socket.socket.connect = connect\n"
    )
    blocked = environment() | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    small = ["--limit", "64", "--width", "4", "--seeds", "1"]
    for args in (
        ["compare", *small, "--out", tmp_path / "c"],
        ["resume", tmp_path / "c"],
        ["data", "list"],
        ["run", *small, "--out", tmp_path / "r"],
        ["status", tmp_path / "c"],
    ):
        done = subprocess.run(command(*args), env=blocked, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    refused = subprocess.run(
        command("data", "download", "mnist", "--root", tmp_path),
        env=blocked,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (refused.returncode, len(refused.stderr.strip().splitlines()[-1:])) == (1, 1)
