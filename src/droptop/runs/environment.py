"""The environment of a run, on which its bits depend besides its configuration: versions, machine, device, threads."""

import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from droptop import __version__
from droptop.system.devices import name_of
from droptop.system.processes import cores


@lru_cache
def environment(device: str, threads: int, libraries: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the versions, machine, device, threads and commit of this process, as environment.json has them.

    `libraries` are packages that nets come from, whose versions count too.
    """

    def installed_version(name: str) -> str | None:
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
    packages = ("torch", "numpy", "scipy", "safetensors", *libraries)
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "versions": {"droptop": __version__} | {name: installed_version(name) for name in packages},
        "device": device,
        "device_name": cpu_name() if device == "cpu" else name_of(device),
        "threads": threads,
        "cores": cores(),
        "commit": commit,
    }


def cpu_name() -> str:
    """Return the processor as Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
