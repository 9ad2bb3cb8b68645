"""Several seeds in one process: one that fails by a fault of its own does so alone, where somebody is told of it."""

from types import SimpleNamespace

import pytest

from droptop.config import configure
from droptop.engine.pool import Job
from droptop.engine.together import Together
from droptop.engine.train import Interrupted
from droptop.errors import Diverged
from droptop.study.local import companies


class Flier(SimpleNamespace):
    """Stands for a SeedRun: takes some turns, then ends or fails; ends early if asked to."""

    def work(self):
        for _ in range(self.turns):
            yield
            if self.stop():
                raise Interrupted("stopped")
            self.taken += 1
        if self.error is not None:
            raise self.error


def fliers(*errors):
    return [Flier(turns=3 + number, error=error, taken=0) for number, error in enumerate(errors)]


def test_one_failure_stops_all():
    runs = fliers(Diverged("the loss is nan"), None, None)
    with pytest.raises(Diverged):
        list(Together(runs, "cpu", most=3).finished())
    assert [run.taken for run in runs] == [3, 1, 0]  # each began a turn after the one before it


def test_unless_somebody_is_told_of_it():
    runs, told = fliers(None, Diverged("the loss is nan"), None), []
    done = list(Together(runs, "cpu", most=3, spoiled=lambda run, error: told.append((run, str(error)))).finished())
    assert done == [runs[0], runs[2]]
    assert told == [(runs[1], "the loss is nan")]


@pytest.mark.parametrize("error", [RuntimeError("CUDA error"), Interrupted("stopped")])
def test_what_is_not_a_fault_of_its_own_stops_all_the_same(error):
    runs = fliers(None, error, None, None)
    with pytest.raises(type(error)):
        list(Together(runs, "cpu", most=2, spoiled=lambda run, error: None).finished())
    assert runs[3].taken == 0


def test_a_gpu_takes_all_configurations_at_once_unless_they_switch_the_process(tmp_path):
    def pack(**options):
        return [Job(configure("fashion", "er", "none", device="cuda", **options), tmp_path, seed) for seed in range(2)]

    packs = [pack(), pack(lr=0.03), pack(precision="bf16"), pack(lr=0.01)]
    together, apart = companies(packs)
    assert together == packs[0] + packs[1] + packs[3]
    assert apart == packs[2]
