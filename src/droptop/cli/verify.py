"""`droptop verify`: whether all files of a run, comparison, study or tuning are what was written."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.errors import BadRequest, require
from droptop.report.tables import counted
from droptop.runs.folder import TUNE, TUNING, read_request
from droptop.runs.verify import Checked, verify_folder
from droptop.sweeps.tuning.tune_json import is_tuning
from droptop.sweeps.tuning.verify_tuning import verify_tuning
from droptop.sweeps.verify_study import verify_study
from droptop.system.short_names import short_names
from droptop.system.terminal import Console
from droptop.system.user_files import hidden

MOST_ROWS = 40  # of a table; runs with problems come first


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """Hold the options of `droptop verify`."""

    folder: Annotated[
        Positional[Path], arg(metavar="FOLDER", help="A run, comparison, study or tuning, finished or not.")
    ]
    recompute: bool = False
    """Compute finished seeds once more too: the result from the metrics, and the accuracy at the end by the last
    checkpoint. It takes the data, and about the time of one evaluation per seed."""
    trust: bool = False
    """Beside --recompute, execute Python files that only the folder names, and its copies of those that are gone or
    have changed. Read them first."""
    json: bool = False
    """Print a line of JSON, and nothing else."""

    def __post_init__(self) -> None:
        require(not self.trust or self.recompute, "trust", "--recompute beside it", self.trust)


def verify(args: list[str], console: Console) -> int:
    """Check all files of a folder; return the exit code: 0 if all fit, 1 if something does not."""
    about = "checks that all files of a run, comparison, study or tuning are what was written"
    options = arguments.read(VerifyOptions, args, "droptop verify", about)
    folder = options.folder
    if options.recompute and is_tuning(folder):
        raise BadRequest(f"--recompute takes a run, a comparison or a study; {folder} is a tuning")
    with hidden():
        found = checked_runs(folder)
    if options.recompute:
        with trusted_to_run(folder, options.trust):
            found[-1].problems += recomputed(folder, found)
    problems = list(dict.fromkeys(line for checked in found for line in checked.problems))
    names = ("seeds", "done", "unsealed", "files", "bytes")
    totals = {name: sum(getattr(checked, name) for checked in found) for name in names}
    if options.json:
        said = {"folder": str(folder), **totals, "recomputed": options.recompute, "problems": problems}
        console.print(json.dumps(said), soft_wrap=True)
        return int(bool(problems))
    console.print(table_of(found, folder))
    for line in problems:
        console.print(line, soft_wrap=True)
    console.print(summary(totals, len(problems), options.recompute), soft_wrap=True)
    return int(bool(problems))


def checked_runs(folder: Path) -> list[Checked]:
    """Return what is found of a folder, run by run; that its file of options cannot be read is a problem, too."""
    if (folder / "study.toml").is_file():
        return list(verify_study(folder))
    if is_tuning(folder):
        return list(verify_tuning(folder))
    try:
        *runs, whole = verify_folder(folder)
        return [*runs, *verified_tunings(folder), whole]
    except BadRequest as error:
        if not (folder / "config.toml").is_file():
            raise
        return [Checked(str(folder), problems=[str(error)])]


def verified_tunings(folder: Path) -> Iterator[Checked]:
    """Yield what is found of the tunings of a comparison's arms, named by their places in its folder."""
    for place in sorted(path.parent for path in (folder / TUNING).glob(f"*/{TUNE}")):
        *runs, whole = verify_tuning(place)
        for checked in runs:
            yield replace(checked, name=f"{TUNING}/{place.name}/{checked.name}")
        yield replace(whole, name=f"{TUNING}/{place.name}")


def trusted_to_run(folder: Path, trust: bool) -> AbstractContextManager[None]:
    """Return a context in which the files that a folder names may be executed, if they are trusted."""
    from droptop.runs.trust import trusted  # these load torch and every learner
    from droptop.sweeps.trust import trusted_study

    again, study = "the same command with --trust", folder / "study.toml"
    return trusted_study(study, folder, trust, again) if study.is_file() else trusted(folder, trust, again)


def recomputed(folder: Path, found: list[Checked]) -> list[str]:
    """Return what of the finished seeds is not what it comes to; those with problems are not computed again."""
    from droptop.runs.loading import SeedPlace  # these load torch and every learner
    from droptop.runs.requests import config_of
    from droptop.training.recompute import recompute

    is_study = (folder / "study.toml").is_file()
    places = [folder / "runs" / checked.name for checked in found[:-1]] if is_study else [folder]
    damaged = {checked.name for checked in found if checked.problems}
    lines = []
    for place in places:
        if is_study and place.name in damaged:
            continue
        for arm in read_request(place).arms:
            if arm.name in damaged:
                continue
            config = config_of(arm.options, place)
            done = (seed for seed in arm.seeds if (arm.path / f"seed-{seed}" / "result.json").is_file())
            lines += [line for seed in done for line in recompute(SeedPlace(config, arm.path, seed))]
    return lines


def table_of(found: list[Checked], folder: Path) -> Table:
    """Return a row per run, those with problems first."""
    table = Table("run", "finished seeds", "files", "MiB", "fits", title=str(folder))
    runs = sorted(found[:-1] or found, key=lambda checked: not checked.problems)
    short = short_names(checked.name for checked in runs)
    for checked in runs[:MOST_ROWS]:
        fits = "no" if checked.problems else "no checksums" if checked.unsealed else "yes"
        size = f"{checked.bytes / 2**20:.1f}"
        table.add_row(short[checked.name], f"{checked.done} of {checked.seeds}", str(checked.files), size, fits)
    if len(runs) > MOST_ROWS:
        table.add_row(f"{len(runs) - MOST_ROWS} more", "", "", "", "")
    return table


def summary(totals: dict[str, int], problems: int, recomputed: bool) -> str:
    """Return what was found in one sentence."""
    said = f"{counted(totals['files'], 'file')} of {counted(totals['done'], 'finished seed')} checked"
    said += ", figures computed again" if recomputed else ""
    said += f"; {counted(problems, 'problem')}" if problems else "; all fit"
    if totals["unsealed"]:
        said += f"; {counted(totals['unsealed'], 'seed')} without checksums, as of an earlier version"
    return said
