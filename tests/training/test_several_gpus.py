"""Several GPUs of one machine: a worker process on each, and the same run whichever of them does it."""

import pytest
import torch
from fake_gpus import BOUND, Dies, Notes, pretend, tries

from droptop.errors import DroptopError
from droptop.runs.config import configure
from droptop.sweeps.local import local
from droptop.sweeps.on_ray import run_pack
from droptop.training import workers
from droptop.training.observer import Job, Observer
from droptop.training.worker_pool import by_switches, dealt, run_jobs
from droptop.training.workers import Failure, computing_on, prepare


def jobs_of(folder, device, seeds, kind=Notes):
    config = configure("fashion", "er", "none", device=device)
    return [Job(config, folder, seed, kind) for seed in range(seeds)]


@pytest.mark.parametrize(
    ("device", "used"),
    [("cuda:all", {"cuda:0", "cuda:1", "cuda:2"}), ("cuda:0,2", {"cuda:0", "cuda:2"}), ("cuda:1", {"cuda:1"})],
)
def test_every_gpu_has_one_process_and_its_share_of_the_seeds(tmp_path, monkeypatch, device, used):
    pretend(monkeypatch)
    run_jobs(jobs_of(tmp_path, device, 6), Observer(), 1)
    places = [place for [place] in tries(tmp_path).values()]
    assert len(places) == 6
    assert {gpu for gpu, _ in places} == used
    assert len(set(places)) == len(used)  # processes
    assert all(sum(gpu == other for other, _ in places) == 6 // len(used) for gpu in used)
    assert BOUND == []  # this process leaves the GPUs to its workers


def test_fewer_seeds_than_gpus_start_no_idle_process(tmp_path, monkeypatch):
    pretend(monkeypatch)
    run_jobs(jobs_of(tmp_path, "cuda:all", 2), Observer(), 1)
    assert sorted(gpu for [(gpu, _)] in tries(tmp_path).values()) == ["cuda:0", "cuda:1"]


class Driver(Observer):
    """Try again whatever failed."""

    def __init__(self):
        self.finished = []

    def done(self, job):
        self.finished.append((job.seed, job.config.options.device))

    def more(self):
        return []

    def retry(self, jobs, failure):
        return [list(jobs)]


def test_a_worker_that_dies_is_replaced_on_its_gpu(tmp_path, monkeypatch):
    pretend(monkeypatch)
    driver = Driver()
    local([jobs_of(tmp_path, "cuda:all", 6, Dies)], driver)
    assert sorted(set(driver.finished)) == [(seed, "cuda:all") for seed in range(6)]  # as they were asked for
    noted = tries(tmp_path)
    (gpu, dead), (again, other) = noted[4]
    assert gpu == again
    assert dead != other
    untouched = {process for seed, places in noted.items() for at, process in places if at != gpu}
    assert len(untouched) == 2


def test_arms_and_configurations_go_to_all_gpus_in_turn(tmp_path):
    """Arms of a comparison come in turn and cost different time; so do the configurations of a study, one by one."""
    arms = [configure("fashion", "er", arm, device="cuda:0,1") for arm in ("none", "droptop")]
    by_seed = [Job(arm, tmp_path, seed) for seed in range(4) for arm in arms]
    by_arm = [Job(arm, tmp_path, seed) for arm in arms for seed in range(4)]
    for jobs in (by_seed, by_arm):
        hands = dealt([jobs], 2)
        assert sorted(map(str, hands[0] + hands[1])) == sorted(map(str, jobs))
        assert [[job.config for job in hand].count(arms[0]) for hand in hands] == [2, 2]
    assert dealt([by_seed], 1) == [by_seed]
    other = Job(configure("fashion", "er", "none", device="cuda:0,1", precision="fp32"), tmp_path, 0)
    apart = dealt(by_switches([*by_seed, other]), 2)
    assert [len(hand) for hand in apart] == [4, 4, 1]  # a process computes in one precision at a time


def test_a_process_is_bound_before_its_switches_are_set(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(workers, "allow_tf32", lambda device, precision: BOUND.append("switches"))
    for flag in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, flag, getattr(torch.backends.cudnn, flag))
    prepare("cuda:1", False, "tf32")
    prepare("cuda", False, "tf32")
    assert BOUND == ["cuda:1", "switches", "switches"]


def test_jobs_in_this_process_leave_its_gpu_as_it_was(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: int(str(BOUND[-1])[-1]) if BOUND else 2)
    with computing_on(torch.get_num_threads()):
        torch.cuda.set_device("cuda:1")
    assert BOUND == ["cuda:1", 2]


def test_a_cluster_says_which_gpu_a_pack_has(tmp_path, monkeypatch):
    pretend(monkeypatch)
    for flag in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, flag, getattr(torch.backends.cudnn, flag))
    assert run_pack(jobs_of(tmp_path, "cuda:all", 2)) == (None, [])
    assert [(tmp_path / f"seed-{seed}/tries").read_text().split()[0] for seed in range(2)] == ["cuda", "cuda"]
    assert BOUND == []


def test_an_operation_that_apples_gpus_lack_is_told_in_a_line(tmp_path):
    [job] = jobs_of(tmp_path, "mps", 1)
    text = "The operator 'aten::_standard_gamma' is not currently implemented for the MPS device. If you want this op"
    try:
        raise NotImplementedError(f"{text}\nmore")
    except NotImplementedError as error:
        told = Failure.of(error, job).error
    assert type(told) is not DroptopError
    assert str(told) == (
        "none seed 0: torch has no aten::_standard_gamma for mps: PYTORCH_ENABLE_MPS_FALLBACK=1 lets the CPU compute it"
    )
