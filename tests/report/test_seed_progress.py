"""What is left of a command, as its lines say."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from droptop.report import seed_progress as progress
from droptop.report.seed_progress import Plain
from droptop.report.time_left import TimeLeft
from droptop.runs.config import configure
from droptop.training.observer import Job, SeedProgress


def job(seed, run="none", **options):
    return Job(configure("fashion", debias="none", **options), Path(run), seed)


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


def test_time_left_counts_only_steps_made_now(clock, capsys):
    """Two jobs of 100 steps; one goes on from step 60. 40 steps in 10 s, then 100 are left."""
    listener, one, other = Plain(), job(0), job(1)
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


def at(step, steps=100):
    return SeedProgress(step, steps, 0, 5, 1.0)


def test_the_time_that_is_left_is_said_once_by_simulation(clock):
    """Two workers, four jobs of 100 steps: an arm of 0.5 s per step and one of 1 s, whose first job goes on from 40."""
    left, said, second = TimeLeft(4), [], {"none": 0.5, "slow": 1.0}
    jobs = [job(0, "none"), job(0, "slow")]
    began = clock.seconds
    for tick in range(0, 20):
        clock.seconds = began + tick
        for each in jobs:
            done = int(tick / second[each.run.name]) + 40 * (each.run.name == "slow")
            said.append(left.update(each, at(done)))
    (text,) = filter(None, said)
    assert said.index(text) < 2 * 10  # within ten seconds
    # The first report after 4 s is that of the fast arm; of the other, three steps are known.
    expected = (92 * 0.5 + 57 * 1.0 + 200 * 0.75) / 2
    assert text.startswith(f"about {expected / 60:.0f} minutes left: 0.75 s per step")
    assert text.endswith("s per step, 2 seeds at once")


def test_a_slow_step_is_waited_for(clock):
    left = TimeLeft(1)
    assert left.update(job(0), at(0)) == ""
    clock.seconds += 30
    assert left.update(job(0), at(0)) == ""  # not a step was made: nobody can know
    clock.seconds += 10
    assert left.update(job(0), at(1)).startswith("about 66 minutes left: 40 s per step; ")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"width": 64}, "--width 16 "), ({"width": 8}, "--limit 500 "), ({"width": 8, "limit": 900}, "a GPU is faster")],
)
def test_a_long_run_on_a_cpu_gets_one_suggestion(clock, options, said):
    left = TimeLeft(10)
    left.update(job(0, **options), at(0, 1000))
    clock.seconds += 5
    text = left.update(job(0, **options), at(10, 1000))
    assert text.startswith(f"about 83 minutes left: 0.5 s per step; {said}")
    short, on_gpu = TimeLeft(1), job(0, device="cuda", **options)
    short.update(on_gpu, at(0, 10_000))
    clock.seconds += 5
    assert short.update(on_gpu, at(10, 10_000)) == "about 83 minutes left: 0.5 s per step"


@pytest.mark.parametrize("options", [{"net": "timm:resnet50"}, {"model": "my_model.py"}])
def test_no_width_is_suggested_for_a_net_that_droptop_does_not_build(clock, options):
    left, theirs = TimeLeft(10), Job(configure("split-cifar10", debias="none", **options), Path("none"), 0)
    assert theirs.config.net.width == 64  # the stream's, which such a net has no use for
    left.update(theirs, at(0, 1000))
    clock.seconds += 5
    assert "s per step; --limit 500 " in left.update(theirs, at(10, 1000))


def test_the_estimate_is_a_line_of_its_own(clock, capsys):
    listener = Plain()
    listener.begin(2)
    listener.progress(job(0), at(0))
    clock.seconds += 5
    listener.progress(job(0), at(50))
    listener.progress(job(0), at(51))
    assert capsys.readouterr().out.splitlines()[1:] == ["about 15 seconds left: 0.1 s per step"]
