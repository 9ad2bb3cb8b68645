"""Small things to test with: images of a few pixels, a net of a few channels, a command of a few steps."""

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from torch import Tensor

from droptop import Learner, Samples, Spec, make_learner
from droptop.cli import main
from droptop.debias import members_of
from droptop.methods import METHODS
from droptop.nets import ViTConfig, build
from droptop.rng import generator, seeded
from droptop.runs.config import configure
from droptop.system import user_files

from models import ResNet

CLASSES = 4
SPEC = Spec((3, 16, 16), tuple("abcd"), mean=0.5, std=0.25)
FLOAT_SPEC = Spec((3, 16, 16), tuple("abcd"), dtype=torch.float32)
# The command line of a short run that decides on intensities.
SHORT = shlex.split("--limit 64 --width 4 --memory 40 --seeds 2 --period 1 --history 2 --significance 0.49 --kappa-0 2")
# As many steps over few classes, whose test images are soon evaluated.
OF_TWO_TASKS = shlex.split("--split 0,1/2,3 --limit 160")
# Short periods and histories, so that a dozen steps hold several decisions.
SMALL = {"width": 4, "stem": "3x3", "lr": 0.05, "memory": 20, "memory_batch": 6, "augment": "crop-flip"}
SMALL_VIT = {
    "weights": "random",
    "patch": 4,
    "width": 16,
    "depth": 5,
    "heads": 2,
    "input_size": 16,
    "memory": 20,
    "memory_batch": 6,
    "augment": "crop-flip",
}
ON_VIT = [name for name, kind in METHODS.items() if kind.net_type is ViTConfig]
OF_METHODS = {"ranpac": {"projections": 40}}
QUICK = {"period": 1, "history": 2, "significance": 0.4}


def toy_learner(
    method: str = "er",
    debias: str = "droptop",
    seed: int = 0,
    spec: Spec = SPEC,
    device: str = "cpu",
    own: bool = False,
    **options: Any,
) -> Learner:
    """A learner with a small net of droptop's or, as `own`, with a model that knows nothing of it."""
    user_files.named(method, debias)
    quick = QUICK if "droptop" in members_of(debias) else {}
    if own:
        options = {name: value for name, value in SMALL.items() if name not in ("width", "stem")} | quick | options
        with seeded(seed, "init"):
            model = ResNet(options.pop("width", 4))
        return make_learner(
            method, spec, debias, seed, model=model, first="maxpool", last="layer4", device=device, **options
        )
    config = configure("fashion", method, debias, **small(method) | quick | options)
    model = build(config.net, 3, CLASSES, seed, config.options.weights)
    return METHODS[method](model, spec, config.learner, config.chosen, seed=seed, device=device)


def small(method: str) -> dict[str, Any]:
    """Options for a net of a few channels, of the kind that the method takes, and for the method itself."""
    return (SMALL_VIT if method in ON_VIT else SMALL) | OF_METHODS.get(method, {})


def toy_batches(
    count: int, size: int = 8, seed: int = 0, spec: Spec = SPEC, tasks: int = 2
) -> list[tuple[Tensor, Tensor, int]]:
    """Batches whose classes differ in colour; two tasks of two classes, or one of four."""
    random = generator(seed, "toy")
    colours = torch.tensor([[190, 0, 0], [0, 190, 0], [0, 0, 190], [190, 190, 0]])
    batches = []
    for index in range(count):
        task = index * tasks // count
        classes = CLASSES // tasks
        y = torch.randint(classes * task, classes * (task + 1), (size,), generator=random)
        noise = torch.randint(0, 64, (size, *spec.shape), generator=random)
        x = (noise + colours[y][:, :, None, None]).to(torch.uint8)
        batches.append((x if spec.dtype == torch.uint8 else x.float() / 255, y, task))
    return batches


class Elsewhere:
    """The same samples, from a source that is not in memory."""

    def __init__(self, samples: Samples) -> None:
        self.samples, self.y = samples, samples.y

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, rows: Tensor) -> Samples:
        return self.samples[rows]


def feed(learner: Learner, batches: list[tuple[Tensor, Tensor, int]]) -> Learner:
    for x, y, task in batches:
        learner.observe(x, y, task)
    return learner


def snapshot(learner: Learner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in learner.state_dict().items()}


def differences(a: dict[str, Tensor], b: dict[str, Tensor]) -> list[str]:
    """Names whose bytes differ."""
    assert a.keys() == b.keys()
    return [name for name in a if a[name].numpy().tobytes() != b[name].numpy().tobytes()]


def droptop(*args: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """The real command."""
    return subprocess.run(command(*args), capture_output=True, text=True, timeout=timeout, env=environment())


def droptop_here(*args: str | Path) -> str:
    """Return what the command says in this process, where it must succeed; for folders that several tests share."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.setenv("COLUMNS", environment()["COLUMNS"])
        assert main([*map(str, args)]) == 0
    return said.getvalue()


def command(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "droptop", *map(str, args)]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "140"}


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], str]) -> tuple[Path, str]:
    """Have a folder made by the first worker of pytest-xdist that wants it; return a copy of it, and what was said."""
    own = factory.mktemp(name) / "out"
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return own, make(own)
    shared = factory.getbasetemp().parent / f"{name}-of-all" / "out"
    shared.parent.mkdir(exist_ok=True)
    said = shared.parent / "said.txt"
    with FileLock(shared.parent / "lock"):
        if not said.exists():
            shutil.rmtree(shared, ignore_errors=True)  # of a worker that failed
            text = make(shared)
            said.write_text(text)
    shutil.copytree(shared, own)
    return own, said.read_text().replace(str(shared), str(own))
