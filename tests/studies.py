"""Small studies to test with."""

from pathlib import Path

CELLS = "a net of width 4, 2 tasks of 2 steps"
TINY = {"limit": 64, "width": 4, "memory": 20, "tasks": 2, "checkpoint_seconds": 0.0}


class Silent:
    """Watches a sweep and says nothing."""

    def __init__(self) -> None:
        self.done, self.cells, self.notes, self.failures = 0, [], [], 0

    def start(self, done, total):
        self.done, self.began, self.total = done, done, total

    def cell(self, job, status, done, failed):
        self.done, self.failures = done, failed
        if status == "done":
            self.cells.append((job.run.name, job.seed))

    def note(self, text):
        self.notes.append(text)


def write_study(path: Path, **options) -> Path:
    values = {"debias": ["none", "droptop"], "method": "er", "data": "fashion", "seeds": 2} | TINY | options
    lines = [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}" for name, value in values.items()
    ]
    path.write_text("\n".join(lines).replace("'", '"') + "\n")
    return path
