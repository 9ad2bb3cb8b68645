"""Whoever watches many seeds: nobody has to listen, and jobs travel between processes."""

import inspect
import pickle

import pytest

from droptop.cli.sweep import CellProgress
from droptop.errors import DroptopError
from droptop.report.seed_progress import Live, Plain
from droptop.runs.config import configure
from droptop.sweeps.sweep import Sweep
from droptop.training.observer import Job, Observer, SeedProgress
from droptop.training.workers import Failure

HEARD = {"begin", "progress", "done", "failed", "note"}


def test_an_observer_hears_everything_and_does_nothing(tmp_path):
    observer, job = Observer(), Job(configure("fashion"), tmp_path, 3)
    assert {name for name in vars(Observer) if not name.startswith("_")} == HEARD
    calls = [
        observer.begin(4, 1),
        observer.begin(4),
        observer.progress(job, SeedProgress(1, 10, 0, 5, 0.5)),
        observer.done(job),
        observer.failed(job, Failure(DroptopError, "why", "where")),
        observer.note("text"),
    ]
    assert calls == [None] * 6


@pytest.mark.parametrize("kind", [Live, Plain, CellProgress, Sweep])
def test_every_observer_takes_what_it_is_given(kind):
    """A method that a subclass spells in another way would never be called."""
    assert issubclass(kind, Observer)
    for name in HEARD:
        ours, theirs = (inspect.signature(getattr(each, name)).parameters for each in (kind, Observer))
        assert [(each.name, each.default) for each in ours.values()] == [
            (each.name, each.default) for each in theirs.values()
        ], name


def test_a_job_travels_between_processes(tmp_path):
    job = Job(configure("fashion", gamma=2.5), tmp_path, 3)
    again = pickle.loads(pickle.dumps(job))
    assert again == job
    assert job.name == "droptop seed 3"
    assert Job(configure("fashion", debias="none"), tmp_path, 0).name == "none seed 0"
