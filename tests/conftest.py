"""One thread: the number of threads is part of a run's bits, and two on a busy machine are many times slower."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("droptop", deadline=None)  # how busy the machine is says nothing about the code
settings.load_profile("droptop")
