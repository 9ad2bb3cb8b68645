"""Small studies to test with."""

import hashlib
from pathlib import Path

from droptop.training.observer import Job, Observer
from droptop.training.workers import Failure

CELLS = "a net of width 4, 2 tasks of 2 steps"
TINY = {"limit": 64, "width": 4, "memory": 20, "tasks": 2, "checkpoint_seconds": 0.0}


class Silent(Observer):
    """Keep what an observer of a sweep is told, and say nothing."""

    def __init__(self) -> None:
        self.total = self.began = 0
        self.cells: list[tuple[str, int]] = []  # done, in turn
        self.failures: list[tuple[str, int]] = []
        self.notes: list[str] = []

    def begin(self, total: int, done: int = 0) -> None:
        self.total, self.began = total, done

    def done(self, job: Job) -> None:
        self.cells.append((job.run.name, job.seed))

    def failed(self, job: Job, failure: Failure) -> None:
        self.failures.append((job.run.name, job.seed))

    def note(self, text: str) -> None:
        self.notes.append(text)


def write_study(path: Path, **options) -> Path:
    """Write a study of four short cells, unless told otherwise."""
    values = {"debias": ["none", "droptop"], "method": "er", "data": "fashion", "seeds": 2} | TINY | options
    lines = [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}" for name, value in values.items()
    ]
    path.write_text("\n".join(lines).replace("'", '"') + "\n")
    return path


def digests(study: Path) -> dict[str, str]:
    """Return hashes of what every cell found, by file."""
    return {
        str(path.relative_to(study)): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in ("metrics.jsonl", "result.json")
        for path in sorted(study.glob(f"runs/*/seed-*/{name}"))
    }
