"""The local engine: a cell that fails or takes its process with it costs the others nothing."""

import json
import os
import signal

from droptop.sweeps.local import local
from droptop.sweeps.sweep import sweep
from droptop.training.observer import Job
from droptop.training.seed_run import SeedRun

from studies import Silent, write_study


class Fails(SeedRun):
    """Seed 1 cannot be run."""

    def work(self):
        if self.seed == 1:
            raise RuntimeError("seed 1 is cursed")
        yield from super().work()


class Dies(SeedRun):
    """Seed 1 takes its process with it, once."""

    def work(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.seed == 1 and not (self.folder / "died").exists():
            (self.folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().work()


def by(kind):
    """The local engine with cells run by another class."""

    def engine(packs, driver):
        local([[Job(job.config, job.run, job.seed, kind) for job in pack] for pack in packs], driver)

    return engine


def test_a_cell_that_fails_twice_is_marked_and_the_rest_goes_on(tmp_path, here):
    study = write_study(tmp_path / "study.toml", debias="none", seeds=3)
    assert sweep(study, tmp_path / "out", by(Fails), Silent()) == {"done": 2, "waiting": 0, "failed": 1}
    [failed] = (tmp_path / "out").glob("runs/*/seed-1/failed.json")
    assert json.loads(failed.read_text())["tries"] == 2
    assert "seed 1 is cursed" in json.loads(failed.read_text())["traceback"]
    status = here("status", tmp_path / "out").stdout
    assert "2 done, 0 running, 0 waiting, 1 failed" in status
    assert "failed: fashion er none, seed 1: RuntimeError: seed 1 is cursed" in status
    assert sweep(study, tmp_path / "out", local, Silent()) == {"done": 3, "waiting": 0, "failed": 0}  # mended
    assert not failed.exists()


def test_a_worker_that_dies_is_replaced(tmp_path):
    study = write_study(tmp_path / "study.toml", debias="none", seeds=3)
    assert sweep(study, tmp_path / "out", by(Dies), Silent()) == {"done": 3, "waiting": 0, "failed": 0}
