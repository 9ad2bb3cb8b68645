"""Kill -9 of the real command while it tunes: it goes on to what an undisturbed one finds, to the byte."""

import os
import signal
import subprocess
import time

import pytest

from studies import digests
from toys import command, environment
from tunings import read

TUNE = (
    "tune --data fashion --debias none --limit 320 --width 4 --memory 40 --checkpoint-seconds 0 --over lr=log:0.01:0.5"
)
FEW = "--trials 4 --confirm 2 --confirm-seeds 2 --at-once 1"


@pytest.mark.faults
def test_kill_minus_nine_of_a_tuning(tmp_path):
    straight, out = tmp_path / "straight", tmp_path / "out"
    asked = [*TUNE.split(), *FEW.split()]
    subprocess.run(command(*asked, "--out", straight), check=True, env=environment(), capture_output=True)
    kills = 0
    while True:
        process = subprocess.Popen(
            command(*asked, "--out", out), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        before = sum(len(path.read_bytes()) for path in out.glob("runs/*/seed-*/metrics.jsonl"))
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            if kills < 6 and sum(len(path.read_bytes()) for path in out.glob("runs/*/seed-*/metrics.jsonl")) > before:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                break
        said = process.communicate(timeout=300)[1].decode()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said
    assert kills == 6
    assert digests(out) == digests(straight)
    assert read(out)["trials"] == read(straight)["trials"]
    assert read(out)["chosen"] == read(straight)["chosen"]
    assert (out / "best.toml").read_bytes() == (straight / "best.toml").read_bytes()
