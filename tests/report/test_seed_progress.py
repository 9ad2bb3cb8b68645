"""What is left of a command, as its lines say."""

from types import SimpleNamespace

import pytest

from droptop.report import seed_progress as progress
from droptop.report.seed_progress import Plain
from droptop.training.observer import SeedProgress


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


def test_time_left_counts_only_steps_made_now(clock, capsys):
    """Two jobs of 100 steps; one goes on from step 60. 40 steps in 10 s, then 100 are left."""
    listener, one, other = Plain(), SimpleNamespace(name="none seed 0"), SimpleNamespace(name="none seed 1")
    listener.begin(2)
    listener.progress(one, SeedProgress(60, 100, 3, 5, 1.0))
    clock.seconds += 10
    listener.progress(one, SeedProgress(100, 100, 4, 5, 1.0))
    listener.done(one)
    assert capsys.readouterr().out.splitlines()[-1] == "none seed 0: done, 1 of 2, about 25 s left"
    listener.progress(other, SeedProgress(0, 100, 0, 5, 1.0))
    clock.seconds += 400
    listener.progress(other, SeedProgress(50, 100, 2, 5, 1.0))
    assert listener.whole.left() == ", about 4 min left"  # 90 steps in 410 s
    listener.progress(other, SeedProgress(100, 100, 4, 5, 1.0))
    listener.done(other)
    assert capsys.readouterr().out.splitlines()[-1] == "none seed 1: done, 2 of 2"
