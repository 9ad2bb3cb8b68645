"""One thread: the number of threads is part of a run's bits, and two on a busy machine are many times slower."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import torch

torch.set_num_threads(1)
