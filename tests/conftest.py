"""One thread: the number of threads is part of a run's bits, and two on a busy machine are many times slower."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch
from hypothesis import settings

from toys import SHORT, droptop

torch.set_num_threads(1)
settings.register_profile("droptop", deadline=None)  # how busy the machine is says nothing about the code
settings.load_profile("droptop")


@pytest.fixture(scope="session")
def comparison(tmp_path_factory):
    """A folder that the real command made, and what it said; whoever changes the folder copies it first."""
    out = tmp_path_factory.mktemp("compare") / "first"
    done = droptop(
        "compare", "--data", "fashion-sticker", "--method", "er", "--debias", "droptop", *SHORT, "--out", out
    )
    assert done.returncode == 0, done.stderr
    return out, done.stdout
