"""Check all files of a folder of ours against what was written of them: `droptop verify`.

What is derived is derived again: a summary from the results, a comparison from the summaries.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from droptop.errors import BadCheckpoint
from droptop.runs import checkpoint
from droptop.runs.compared import compared, read_tuned
from droptop.runs.findings import Findings
from droptop.runs.folder import TUNED, RunFolder, read_request
from droptop.runs.manifest import Unfit, read_manifest
from droptop.runs.seed_files import SeedFiles
from droptop.system.json_files import is_number, read_json
from droptop.system.locks import is_locked

CLOSE = 1e-6  # relative: p-values of another version of scipy may differ in the last digits


@dataclass
class Checked:
    """Hold what was found of one run, or of what a folder has besides its runs."""

    name: str
    seeds: int = 0  # in all
    done: int = 0
    unsealed: int = 0  # of those that are done, the ones without a manifest
    files: int = 0  # that were checked
    bytes: int = 0
    problems: list[str] = field(default_factory=list)

    def count(self, path: Path) -> None:
        """Count a file that was checked."""
        if path.is_file():
            self.files, self.bytes = self.files + 1, self.bytes + path.stat().st_size


def verify_folder(folder: Path) -> Iterator[Checked]:
    """Yield what is found of a run, or of every arm of a comparison, then of the folder itself.

    Raise BadRequest if this is no such folder.
    """
    request = read_request(folder)
    findings, summaries = Findings(folder), dict[str, dict[str, Any]]()
    for run in request.arms:
        checked = verify_run(run, findings)
        if (summary := check_summary(run, checked)) is not None:
            summaries[run.name] = summary
        yield checked
    whole = Checked(str(folder))
    for place in {folder: None} | {run.path: None for run in request.arms}:
        verify_derived(place, whole)
    altered, told = f"{folder / TUNED} is not what was written", " ".join(whole.problems)
    if (folder / TUNED).exists() and read_tuned(folder) is None and altered not in told:
        whole.problems.append(altered)
    if request.command == "compare" and len(summaries) == len(request.arms):
        whole.problems += differs(folder / "compare.json", compared(folder, summaries))
    whole.problems += findings.problems()
    yield whole


def verify_run(run: RunFolder, findings: Findings) -> Checked:
    """Return what is found of the seeds of a run."""
    checked = Checked(run.name, len(run.seeds))
    for seed in run.seeds:
        files = SeedFiles(run, seed, whole=True)
        checked.done += files.result is not None
        checked.unsealed += files.unsealed
        if is_locked(files.folder):  # it is being written
            continue
        if not files.foreign:
            verify_seed(files, checked)
        checked.problems += files.unfit
        findings.add(files)
    known = {f"seed-{seed}" for seed in run.seeds}
    others = sorted(path.parent for path in run.path.glob("seed-*/result.json") if path.parent.name not in known)
    checked.problems += [f"{path} is of no seed that config.toml has" for path in others]
    return checked


def verify_seed(files: SeedFiles, checked: Checked) -> None:
    """Check all files of a seed; what does not fit goes to `files.unfit`."""
    folder, manifest = files.folder, files.manifest
    if manifest is not None and files.result is not None:
        for name in manifest.files:
            if name != "result.json" and not name.startswith(("maps/", "confusion/")):
                files.fits(folder / name)
    if (folder / "metrics.jsonl").exists() and not files.lines and files.result is not None and not files.unfit:
        files.unfit.append(f"{folder / 'metrics.jsonl'} is damaged")
    for kind in ("maps", "confusion"):
        files.all_fit(kind)
    for header in checkpoint.newest_first(folder / "checkpoints"):
        files.unfit += checkpoint_problems(header, files)
    for path in (*folder.glob("*.json*"), *folder.glob("*/*.safetensors")):
        checked.count(path)


def checkpoint_problems(header: Path, files: SeedFiles) -> list[str]:
    """Return what is wrong with a checkpoint: its header, its tensors, or whose it is."""
    try:
        noted = checkpoint.read_header(header)
        if files.manifest is None:
            checkpoint.read(header)
        elif files.result is not None and noted["sha256"] not in files.manifest.files.values():
            return [f"{header} is not of what its manifest has"]
    except BadCheckpoint as error:
        return [str(error)]
    if noted["about"].get("seed") != files.seed:
        return [f"{header} is of seed {noted['about'].get('seed')}"]
    return []


def verify_derived(place: Path, checked: Checked) -> None:
    """Check the files of a run or a comparison that its own manifest has: summaries, costs, pictures."""
    try:
        manifest = read_manifest(place)
    except Unfit as error:
        checked.problems.append(str(error))
        return
    if manifest is None:
        return
    for name in manifest.files:
        checked.count(place / name)
        try:
            manifest.check(place / name, name)
        except Unfit as error:
            checked.problems.append(str(error))


def check_summary(run: RunFolder, checked: Checked) -> dict[str, Any] | None:
    """Check the summary of a run whose seeds are done and fit; return what it is to be, None where nobody can say."""
    if checked.done < checked.seeds or checked.problems:
        return None
    try:
        summary = run.summary()
    except LookupError:
        checked.problems.append(f"{run.path}: its seeds have not the same figures")
        return None
    checked.problems += differs(run.path / "summary.json", summary)
    return summary


def differs(path: Path, expected: Any) -> list[str]:
    """Return a line where a file of JSON is there and is not what results come to."""
    try:
        if not path.exists() or alike(read_json(path), expected):
            return []
    except (OSError, ValueError):
        pass
    return [f"{path} is not what the results come to"]


def alike(a: Any, b: Any) -> bool:
    """Return whether two values of JSON are equal but for the last digits of numbers."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(map(str, a)) == list(map(str, b)) and all(alike(x, y) for x, y in zip(a.values(), b.values()))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if is_number(a) and is_number(b):
        return abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b))
    return bool(a == b)
