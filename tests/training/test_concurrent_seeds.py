"""Several seeds in one process: one that fails by a fault of its own does so alone, where somebody is told of it."""

from types import SimpleNamespace

import pytest
import torch

from droptop.errors import Diverged
from droptop.runs.config import configure
from droptop.sweeps.local import PatientPool, merged
from droptop.training.concurrent_seeds import ConcurrentSeeds
from droptop.training.observer import Job, Observer
from droptop.training.seed_run import Interrupted
from droptop.training.worker_pool import Worker, WorkerPool, run_jobs


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
    return [Flier(turns=3 + number, error=error, taken=0, steps_key=None) for number, error in enumerate(errors)]


def test_one_failure_stops_all():
    runs = fliers(Diverged("the loss is nan"), None, None)
    with pytest.raises(Diverged):
        list(ConcurrentSeeds(runs, "cpu", most=3).finished())
    assert [run.taken for run in runs] == [3, 1, 0]  # each began a turn after the one before it


def test_a_failure_that_is_reported_stops_one_seed():
    runs, told = fliers(None, Diverged("the loss is nan"), None), []
    done = list(
        ConcurrentSeeds(runs, "cpu", most=3, failed_alone=lambda run, error: told.append((run, str(error)))).finished()
    )
    assert done == [runs[0], runs[2]]
    assert told == [(runs[1], "the loss is nan")]


@pytest.mark.parametrize("error", [ValueError("a mistake in somebody's method"), torch.OutOfMemoryError("too large")])
def test_errors_of_a_method_and_of_memory_stop_one_seed(error):
    """What does not fit beside others is tried again, and is to blame once it does not fit alone; the others go on
    side by side."""
    runs, told = fliers(None, error, *[None] * 8), []
    together = ConcurrentSeeds(runs, "cpu", most=4, failed_alone=lambda run, error: told.append(run))
    done = list(together.finished())
    assert sorted(map(id, done)) == sorted(id(run) for run in runs if run is not runs[1])
    assert told == [runs[1]]
    assert together.most == 4


@pytest.mark.parametrize("error", [RuntimeError("CUDA error: an illegal memory access"), Interrupted("stopped")])
def test_errors_of_the_device_and_interrupts_stop_all(error):
    runs = fliers(None, error, None, None)
    together = ConcurrentSeeds(runs, "cpu", most=2, failed_alone=lambda run, error: None)
    with pytest.raises(type(error)):
        list(together.finished())
    assert runs[3].taken == 0
    assert together.culprit is runs[1]


def test_no_seed_starts_after_a_stop():
    asked = iter([False] * 3 + [True] * 100)
    runs = fliers(None, None, None)
    with pytest.raises(Interrupted):
        list(ConcurrentSeeds(runs, "cpu", stop=lambda: next(asked), most=1).finished())
    assert runs[1].taken == runs[2].taken == 0


def shared_by(kinds, most, errors=()):
    """The numbers of the runs that shared the same steps, in order, and those that were done."""
    runs, shared = fliers(*[dict(errors).get(number) for number in range(len(kinds))]), {}
    for number, (run, kind) in enumerate(zip(runs, kinds)):
        run.steps_key, run.number, work = kind, number, run.work

        def noted(run=run, work=work):
            shared.setdefault(id(run.kept), (run.kept, []))[1].append(run.number)
            yield from work()

        run.work, run.turns = noted, 2
    together = ConcurrentSeeds(runs, "cpu", most=most, failed_alone=lambda run, error: None)
    done = [run.number for run in together.finished()]
    assert all(run.kept is None for run in runs)  # tensors live no longer than the seeds that need them
    return [numbers for _, numbers in shared.values()], done


def test_steps_take_all_seeds_of_their_kind():
    """Two at once: each kind has its steps, and a kind has more of them where the other one is done."""
    shared, done = shared_by("aaabbb", most=2)
    assert shared == [[0, 1, 2], [3, 4, 5]]
    assert sorted(done) == list(range(6))
    shared, _ = shared_by("aaaab", most=2)
    assert shared == [[0, 1, 3], [4], [2]]


def test_seeds_of_no_kind_have_steps_of_their_own():
    shared, _ = shared_by([None] * 4, most=2)
    assert shared == [[0], [1], [2], [3]]


@pytest.mark.parametrize("error", [Diverged("the loss is nan"), torch.OutOfMemoryError("too large")])
def test_steps_whose_seed_failed_are_thrown_away(error):
    """What did not fit beside others is tried once more, with other steps."""
    shared, done = shared_by("aaab", most=2, errors={0: error}.items())
    assert sorted(done) == [1, 2, 3]
    assert all(numbers[-1] == 0 for numbers in shared if 0 in numbers)


def test_a_seed_that_does_not_fit_beside_the_steps_before_it_begins_without_them():
    """A seed at a time: what the first one left is given up, and the second one is not to blame."""
    runs, begun = fliers(None, None), []
    for run in runs:
        run.steps_key = "a"

        def work(run=run):
            begun.append(run)
            if run.kept.steps is not None:
                raise torch.OutOfMemoryError("too large")
            run.kept.steps = object()
            yield

        run.work = work
    assert list(ConcurrentSeeds(runs, "cpu", most=1).finished()) == runs
    assert begun == [runs[0], runs[1], runs[1]]


class Driver:
    """Keeps what it is told."""

    def __init__(self):
        self.heard = []

    def retry(self, jobs, failure):
        self.heard.append([job.seed for job in jobs])
        return [list(jobs)]


def test_a_seed_that_failed_alone_is_not_retried_twice(tmp_path):
    class Pipe:
        messages = [("failed alone", 1, "its own"), ("failed", 0, "of all")]
        sent = []

        def recv(self):
            return self.messages.pop(0)

        send = sent.append

    jobs = [Job(configure("fashion", "er", "none", device="cuda"), tmp_path, seed) for seed in range(3)]
    pool = PatientPool(None, [], driver=Driver())
    worker = Worker(SimpleNamespace(is_alive=lambda: True), Pipe(), jobs)
    pool.hear(worker)
    assert pool.waiting == [[jobs[1]]]
    pool.hear(worker)
    assert pool.driver.heard == [[1], [0, 2]]
    assert pool.waiting == [[jobs[0], jobs[2]]]
    assert worker.jobs == [jobs[1]]  # which came first


def test_packs_are_merged_unless_their_options_switch_the_process(tmp_path):
    def pack(**options):
        return [Job(configure("fashion", "er", "none", device="cuda", **options), tmp_path, seed) for seed in range(2)]

    packs = [pack(), pack(lr=0.03), pack(precision="bf16"), pack(lr=0.01)]
    together, apart = merged(packs)
    assert together == packs[0] + packs[1] + packs[3]
    assert apart == packs[2]


def test_arms_on_a_gpu_share_a_process_unless_their_options_switch_it(tmp_path, monkeypatch):
    """One process after the other: two at once would slow each other down."""
    given = []
    monkeypatch.setattr(WorkerPool, "run", lambda pool, *size: given.append((pool.waiting, *size)))
    arms = [configure("fashion", "er", arm, device="cuda", **more) for arm, more in (("none", {}), ("droptop", {}))]
    arms.append(configure("fashion", "er", "none", device="cuda", precision="fp32"))
    jobs = [Job(arm, tmp_path, seed) for seed in range(2) for arm in arms]
    run_jobs(jobs, Observer(), 1, lambda: 8)
    assert given == [([[jobs[0], jobs[1], jobs[3], jobs[4]], [jobs[2], jobs[5]]], 1, ["cuda"])]
