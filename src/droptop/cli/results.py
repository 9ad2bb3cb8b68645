"""`droptop results`: the results of a study or comparison, grouped by any options. Loads no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.cli.arguments import names
from droptop.errors import BadRequest, require, typed
from droptop.report import tables
from droptop.report.study_table import study_table
from droptop.runs.folder import read_request
from droptop.sweeps.pairing import reference_of
from droptop.sweeps.results import BY, also_varied, export, grouped_rows, usual_figures, with_short_names
from droptop.sweeps.study_folder import StudyFolder, requested_cells, values_of_comparison
from droptop.system.terminal import Console, note


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """Hold the options of `droptop results`."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A study or comparison, finished or not.")]
    by: str | None = None
    """Options to group by, separated by commas; with seed among them, there is a row per seed. By default
    data,method,debias, or the arm of a comparison."""
    against: str | None = None
    """Reference of the differences: a debiasing, a method, an option with its value (lr=0.1), or several of these; by
    default the same without debiasing, or the first arm of a comparison."""
    figures: str | None = None
    """Figures to show, separated by commas; by default A_avg, A_last, F_last and, of groups, the worst and the gap."""
    tests: str = ""
    """Test sets to show, separated by commas; by default all."""
    export: Path | None = None
    """File to write the rows to as well, .csv or .parquet; by default none."""


def results(args: list[str], console: Console) -> int:
    """Print what a study found; return the exit code."""
    options = arguments.read(
        ResultsOptions, args, "droptop results", "shows what a study or comparison found, grouped by any options"
    )
    is_study = (options.folder / "study.toml").is_file()
    if options.export is not None:
        require(
            options.export.parent.is_dir() and not options.export.is_dir(),
            "export",
            "a file in an existing folder",
            options.export,
        )
        require(options.export.suffix in (".csv", ".parquet"), "export", "a .csv or .parquet file", options.export)
    values = values_of_study(options.folder) if is_study else values_of_arms(options.folder)
    if not values:
        raise BadRequest(f"{options.folder} has no {'cell' if is_study else 'seed'} that is done")
    by = names(options.by) or (BY if is_study else ["arm"])
    figures = names(options.figures) or usual_figures(values)
    reference = reference_of(values, options.against)
    rows = with_short_names(grouped_rows(values, by, figures, names(options.tests) or [], reference), by)
    if not rows:
        raise BadRequest(f"nothing was measured of {', '.join(figures)} on {options.tests or 'any test set'}")
    console.print(study_table(rows, by, reference.name, console.width), crop=False)
    if varied := also_varied(values, by):
        console.print(
            f"{tables.averaged_over(varied)}; --by {','.join([*by, *varied])} tells them apart", soft_wrap=True
        )
    if reference.also:
        console.print(
            f"{tables.listed(sorted(reference.also))}: each method has a value of its own here; all else is equal",
            soft_wrap=True,
        )
    if options.export is not None:
        export(rows, options.export)
        console.print(f"{len(rows)} rows in {options.export}", soft_wrap=True)
    return 0


def values_of_study(folder: Path) -> list[dict[str, Any]]:
    """Return every figure of every cell that the study asks for and that is done."""
    cells = set(requested_cells(folder))
    study = StudyFolder(folder, note)
    for line in study.lines():
        note(line)
    return [value for value in study.values() if (value["run"], value["seed"]) in cells]


def values_of_arms(folder: Path) -> list[dict[str, Any]]:
    """Return every figure of every seed of a comparison that is done; refuse what is no comparison."""
    if not (folder / "config.toml").is_file() or read_request(folder).command != "compare":
        shown = f"; {typed('report', folder)} shows a run" if (folder / "config.toml").is_file() else ""
        raise BadRequest(f"{folder} is neither a study nor a comparison{shown}")
    values, findings = values_of_comparison(folder)
    for line in findings.lines():
        note(line)
    return values
