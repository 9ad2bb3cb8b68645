"""One thread: the number of threads is part of a run's bits, and two on a busy machine are many times slower."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import io
import shutil
import subprocess

import matplotlib.pyplot as plt
import pytest
import torch
from hypothesis import settings
from PIL import Image

from droptop.cli import main
from droptop.system.files import write_atomic

import at_hand
from studies import write_study
from toys import OF_TWO_TASKS, SHORT, droptop, made_once

pytest_plugins = ["fault_counts"]
torch.set_num_threads(1)
settings.register_profile("droptop", deadline=None)  # how busy the machine is says nothing about the code
settings.load_profile("droptop")


@pytest.fixture(autouse=True, scope="session")
def trusted_files(tmp_path_factory):
    """Keep the list of files that tests name away from that of who runs them."""
    os.environ["DROPTOP_TRUSTED"] = str(tmp_path_factory.mktemp("trusted") / "trusted.json")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Keep a test's decoded images in its own folder, which is not made before they are."""
    monkeypatch.setenv("DROPTOP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session", autouse=True)
def workers_at_hand():
    """Have commands in this process take workers that need not load torch first; the real command starts its own."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("training.worker_pool", "bench.costs"):
            patch.setattr(f"droptop.{module}.get_context", at_hand.context)
        yield


@pytest.fixture(scope="session", autouse=True)
def blank_figures():
    """Leave the figures of runs blank that commands in this process write: to draw them takes longer than to train.

    They are put together as ever. The real command draws them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("droptop.figures.run_figures.save", save_blank)
        yield


def save_blank(figure, run, name):
    """Write a picture of the figure's size with nothing on it, and close the figure."""
    (run / "figures").mkdir(exist_ok=True)
    size = [round(inches * 130) for inches in figure.get_size_inches()]
    file = io.BytesIO()
    Image.new("RGB", size, "white").save(file, "PNG")
    write_atomic(run / f"figures/{name}.png", file.getvalue())
    plt.close(figure)


@pytest.fixture
def here(capsys):
    """Return the command in this process, which starts sooner than the real one; its workers are processes as ever."""

    def call(*args):
        capsys.readouterr()
        code = main([*map(str, args)])
        said = capsys.readouterr()
        return subprocess.CompletedProcess(args, code, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def comparison(tmp_path_factory):
    """Return a folder that the real command made, and what it said; whoever changes the folder copies it first."""

    def make(out):
        names = ("--data", "fashion-sticker", "--method", "er", "--debias", "droptop")
        done = droptop("compare", *names, *SHORT, *OF_TWO_TASKS, "--out", out)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return made_once(tmp_path_factory, "compare", make)


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """Return the folder of a study of four cells that the real command ran; whoever changes it copies it first."""

    def make(out):
        done = droptop("sweep", write_study(out.parent / "study.toml"), "--out", out)
        assert done.returncode == 0, done.stderr
        assert "4 cells done, 0 failed" in done.stdout
        return done.stdout

    return made_once(tmp_path_factory, "sweep", make)[0]


@pytest.fixture(scope="session")
def tuned(tmp_path_factory):
    """Return the folder of a tuning that the real command made, and what it said; whoever changes it copies it."""
    few = "--limit 64 --width 4 --memory 20 --tasks 2 --trials 2 --confirm 1 --confirm-seeds 1 --at-once 1"
    over = "--over lr=log:0.01:0.2 --over momentum=0,0.9"

    def make(out):
        asked = f"--data fashion --method er --debias none {few} {over}".split()
        done = droptop("tune", *asked, "--out", out)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return made_once(tmp_path_factory, "tune", make)


@pytest.fixture
def swept_copy(swept, tmp_path):
    """Return a copy of the study of four cells, to change."""
    return shutil.copytree(swept, tmp_path / "copy")
