"""What a run's bits depend on besides its configuration: versions, machine, device, threads, commit."""

import os
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from droptop import __version__


@lru_cache
def environment(device: str, threads: int) -> dict[str, Any]:
    """Return what a run's bits depend on besides its configuration."""

    def installed(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    try:
        git = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10
        )
        commit = git.stdout.strip() if git.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired):
        commit = None
    if device == "cpu":
        name: str | None = cpu_name()
    else:  # None where a study is read or begun on a machine without the GPUs that it runs on
        name = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "versions": {"droptop": __version__}
        | {name: installed(name) for name in ("torch", "numpy", "scipy", "safetensors")},
        "device": device,
        "device_name": name,
        "threads": threads,
        "cores": len(os.sched_getaffinity(0)),
        "commit": commit,
    }


def cpu_name() -> str:
    """Return the processor as Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
