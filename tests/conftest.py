"""One thread: the number of threads is part of a run's bits, and two on a busy machine are many times slower."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import shutil
import subprocess

import pytest
import torch
from hypothesis import settings

from droptop.cli import main

from studies import write_study
from toys import SHORT, droptop, made_once

pytest_plugins = ["fault_counts"]
torch.set_num_threads(1)
settings.register_profile("droptop", deadline=None)  # how busy the machine is says nothing about the code
settings.load_profile("droptop")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Keep a test's decoded images in its own folder, which is not made before they are."""
    monkeypatch.setenv("DROPTOP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
        done = droptop("compare", *names, *SHORT, "--out", out)
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


@pytest.fixture
def swept_copy(swept, tmp_path):
    """Return a copy of the study of four cells, to change."""
    return shutil.copytree(swept, tmp_path / "copy")
