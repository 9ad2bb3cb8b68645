"""`droptop results`: the results of a study, grouped by any of its options. Loads neither torch nor a learner."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.errors import BadRequest, require, typed
from droptop.report import tables
from droptop.sweeps.results import FIGURES, also_varied, export, grouped_rows, with_short_names
from droptop.sweeps.study_folder import StudyFolder, requested_cells


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """Hold the options of `droptop results`."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A study's folder.")]
    by: str = "data,method,debias"
    """Options to group by, separated by commas; with seed among them, there is a row per seed."""
    figures: str = ",".join(FIGURES)
    """Figures to show, separated by commas."""
    tests: str = ""
    """Test sets to show, separated by commas; by default all."""
    export: Path | None = None
    """File to write the rows to as well, .csv or .parquet; by default none."""


def results(args: list[str], console: Console) -> int:
    """Print what a study found; return the exit code."""
    options = arguments.read(
        ResultsOptions, args, "droptop results", "shows what a study found, grouped by any of its options"
    )
    if not (options.folder / "study.toml").is_file():
        shown = f"; {typed('report', options.folder)} shows a run or comparison"
        raise BadRequest(
            f"{options.folder} is no study: it has no study.toml"
            f"{shown if (options.folder / 'config.toml').is_file() else ''}"
        )
    by, figures = names(options.by), names(options.figures)
    if options.export is not None:
        require(
            options.export.parent.is_dir() and not options.export.is_dir(),
            "export",
            "a file in an existing folder",
            options.export,
        )
        require(options.export.suffix in (".csv", ".parquet"), "export", "a .csv or .parquet file", options.export)
    cells = set(requested_cells(options.folder))
    study = StudyFolder(options.folder, note=lambda text: print(f"note: {text}", file=sys.stderr))
    values = [value for value in study.values() if (value["run"], value["seed"]) in cells]
    if not values:
        raise BadRequest(f"{options.folder} has no cell that is done")
    rows = with_short_names(grouped_rows(values, by, figures, names(options.tests)), by)
    if not rows:
        raise BadRequest(f"nothing was measured of {options.figures} on {options.tests or 'any test set'}")
    console.print(tables.study_table(rows, by))
    if varied := also_varied(values, by):
        console.print(
            f"{tables.averaged_over(varied)}; --by {','.join([*by, *varied])} tells them apart",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if options.export is not None:
        export(rows, options.export)
        console.print(f"{len(rows)} rows in {options.export}", highlight=False, markup=False, soft_wrap=True)
    return 0


def names(text: str) -> Sequence[str]:
    """Return the names in a text that separates them by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
