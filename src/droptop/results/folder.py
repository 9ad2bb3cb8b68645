"""The run folder: what a run leaves on disk, and how it is read back.

OUT/config.toml          runs again: droptop run --config OUT/config.toml
OUT/environment.json     versions, threads, device, commit; what of it was another when the run went on later
OUT/summary.json         the figures of every seed, once all are done
OUT/figures/
OUT/seed-K/metrics.jsonl     a line a step; no clock time, so that equal runs have equal files
OUT/seed-K/checkpoints/
OUT/seed-K/{maps,confusion}/ what pictures are drawn from (records.py)
OUT/seed-K/spec.json         what its learner must know of images, so that it predicts where the data is not
OUT/seed-K/result.json       there once the seed is done
"""

import fcntl
import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import torch

from droptop import __version__
from droptop.checkpoint import write_atomic
from droptop.config import Config
from droptop.errors import BadRequest, DroptopError
from droptop.results.metrics import Evaluation, Tasks, accuracy_curve, accuracy_matrix, metrics
from droptop.streams.stream import Spec

LOCK = ".lock"
LOCK_WAIT = 30.0  # seconds: longer than a worker lives on after the command that started it was killed


def keep(path: Path, data: bytes) -> None:
    """Sees to it that a file holds this; one that does is left alone, since it may lie where nobody can write."""
    if not (path.is_file() and path.read_bytes() == data):
        write_atomic(path, data)


def write_json(path: Path, value: Any) -> None:
    keep(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def seed_folder(run: Path, seed: int) -> Path:
    return run / f"seed-{seed}"


@lru_cache
def environment(device: str, threads: int) -> dict[str, Any]:
    """What a run's bits depend on besides its configuration."""

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


def environments(run: Path) -> list[dict[str, Any]]:
    """Where a run began and wherever else it went on, by its environment.json; none if that is not there or damaged."""
    try:
        first = json.loads((run / "environment.json").read_text())
        later = first.pop("later", [])
        return [first, *(first | changed for changed in later)]
    except (OSError, ValueError, AttributeError, TypeError):
        return []


def cpu_name() -> str:
    """The processor, as Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@contextmanager
def locked(folder: Path, note: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """One writer a folder; `note` is told of a wait. The system frees the lock when its holder dies, anyhow."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        begun, told = time.monotonic(), False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - begun
                if waited > LOCK_WAIT:
                    raise DroptopError(f"{folder} is being written by another process") from None
                if waited > 1 and not told:
                    note(f"{folder} is being written by another process; waiting for it up to {LOCK_WAIT:g} s")
                    told = True
                time.sleep(0.1)
        yield


def is_locked(folder: Path, name: str = LOCK) -> bool:
    """Is somebody writing there?"""
    try:
        with (folder / name).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


class MetricsFile:
    """metrics.jsonl, with the length and hash that a checkpoint remembers it by."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Opens the file cut back to `length` bytes."""
        self.file: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        self.hash = hashlib.sha256(self.file.read(length))
        self.file.truncate(length)
        self.file.seek(length)

    def append(self, line: dict[str, Any]) -> None:
        data = (json.dumps(line) + "\n").encode()
        self.file.write(data)
        self.hash.update(data)

    def mark(self) -> dict[str, Any]:
        """Puts what was written so far on the disk and says how to recognise it."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return {"bytes": self.file.tell(), "sha256": self.hash.hexdigest()}

    def close(self) -> None:
        self.file.close()


def matches(path: Path, mark: dict[str, Any]) -> bool:
    """Does the file begin with what was marked?"""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.sha256(file.read(mark["bytes"])).hexdigest() == mark["sha256"]


def read_metrics(run: Path, seed: int, tasks: int = 0) -> list[dict[str, Any]]:
    """A seed's metrics, with the ends of so many tasks at least."""
    path, lines = seed_folder(run, seed) / "metrics.jsonl", list[dict[str, Any]]()
    try:
        lines.extend(map(json.loads, path.read_text().splitlines()))
    except FileNotFoundError:
        raise BadRequest(f"{path} is not there") from None
    except ValueError as error:
        raise BadRequest(f"{path} is damaged in line {len(lines) + 1}: {error}") from None
    if (ended := sum("task_end" in line for line in lines)) < tasks:
        raise BadRequest(f"{path} is damaged: it has the ends of {ended} tasks, not of {tasks}")
    return lines


def write_spec(folder: Path, spec: Spec) -> None:
    write_json(folder / "spec.json", vars(spec) | {"dtype": str(spec.dtype).removeprefix("torch.")})


def read_spec(folder: Path) -> Spec | None:
    """What the images of a seed are like; None where nobody noted it."""
    path = folder / "spec.json"
    if not path.exists():
        return None
    try:
        noted: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in json.loads(path.read_bytes()).items()
        }
        return Spec(**noted | {"dtype": getattr(torch, noted["dtype"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadRequest(f"{path} is damaged: {error}") from None


def is_done(run: Path, seed: int) -> bool:
    """Is a seed's result there, whole? A damaged one is removed, so that it will be made anew."""
    path = seed_folder(run, seed) / "result.json"
    if not path.exists():  # nothing to remove, then: somebody may be about to write it
        return False
    if whole_result(run, seed) is not None:
        return True
    path.unlink(missing_ok=True)
    return False


def whole_result(run: Path, seed: int) -> dict[str, Any] | None:
    """A seed's result; None where it is not there or damaged. Whoever asks whether a seed is done goes by this."""
    try:
        result = read_result(run, seed)
        tests = result["tests"].values()
        return result if tests and all(isinstance(figures, dict) for figures in tests) else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None


def read_result(run: Path, seed: int) -> dict[str, Any]:
    return json.loads((seed_folder(run, seed) / "result.json").read_text())


def seed_result(
    lines: list[dict[str, Any]], classes: tuple[str, ...], tasks: Tasks, eval_every: int | None = None
) -> dict[str, Any]:
    """The figures of one seed from its metrics; the anytime accuracy where evaluations came between tasks too."""
    after: list[dict[str, Evaluation]] = [line["eval"] for line in lines if line.get("task_end")]
    tests = {}
    for name in after[0]:
        evaluations = [evaluation[name] for evaluation in after]
        anytime = [(line["step"], line["eval"][name]) for line in lines if "eval" in line and eval_every]
        tests[name] = {
            **metrics(evaluations, tasks, anytime),
            "A": accuracy_curve(evaluations),
            "matrix": accuracy_matrix(evaluations, tasks),
        }
    result: dict[str, Any] = {"classes": classes, "tasks": tasks, "tests": tests}
    dropped = [line["dropped"] for line in lines if "dropped" in line]
    if dropped:  # mean over the stream, in percent
        result["dropped"] = {name: 100 * sum(d[name] for d in dropped) / len(dropped) for name in ("share", "chance")}
    if used := [line["prompts"] for line in lines if "prompts" in line]:
        result["prompts"] = used  # how often each was chosen up to the end of every task
    if moved := {group: kappa for line in lines for group, kappa in line.get("kappa", {}).items()}:
        result["kappa"] = moved  # where the intensities ended that did not stay at kappa_0
    return result


def summarise(config: Config, run: Path, seeds: Sequence[int] | None = None) -> dict[str, Any]:
    """One arm: every figure of every test set, a value a seed; of all seeds unless told."""
    return summary_of(config, {seed: read_result(run, seed) for seed in (config.seeds if seeds is None else seeds)})


def summary_of(config: Config, by_seed: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """The results of some seeds, put together."""
    results = list(by_seed.values())
    tests = {
        test: {figure: [result["tests"][test][figure] for result in results] for figure in figures}
        for test, figures in results[0]["tests"].items()
    }
    options = config.options
    summary = {
        "data": options.data,
        "method": options.method_name,
        "debias": options.debias,
        "seeds": list(by_seed),
        "tests": tests,
    }
    if all("dropped" in result for result in results):
        summary["dropped"] = {name: [result["dropped"][name] for result in results] for name in ("share", "chance")}
    if config.droptop is not None and config.droptop.drop == "adaptive":
        summary["kappa"] = [result.get("kappa", {}) for result in results]
    return summary
