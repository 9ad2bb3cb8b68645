"""The table of a study's results: as many columns as a terminal has room for, and no digit cut."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from droptop.options import NO_DEBIAS
from droptop.report.compare_table import SPARED, Layout, Row, fitted, narrowest
from droptop.report.tables import LEGEND, p_text, signed
from droptop.results.statistics import FEWEST, NO_VERDICT

MEAN, INTERVAL = "mean ± error", "95% interval"
NUMBERS = ("n", MEAN)
OF_A_DIFFERENCE = (INTERVAL, "p", "p (Holm)")
NARROW = 6  # columns that a column of words may shrink to


def study_table(
    rows: Sequence[dict[str, Any]], by: Sequence[str], reference: str = NO_DEBIAS, width: int | None = None
) -> Table:
    """Return the table of a study: a row per group, test set and figure, with its difference to the reference.

    It has the columns that `width` has room for, by default all. Numbers stay whole: a table whose names are broken
    where they must, and which has no room yet, is wider.
    """
    difference = f"to {reference}"
    words = dict.fromkeys((*by, "test", "figure"), NARROW)
    few = any(row["p"] is not None and row["pairs"] < FEWEST for row in rows)
    layout = Layout(
        (*words, *NUMBERS, difference, *OF_A_DIFFERENCE),
        [[cells(row, by, difference) for row in rows]],
        (MEAN,),
        "percent; differences are paired by seed, p (Holm) is corrected for those of one figure",
        "",
        wordy=words,
        caption=f"{LEGEND}; n: seeds{f'; {NO_VERDICT}' if few else ''}",
    )
    table = fitted(layout, width, [spared for spared in SPARED if spared != {"accuracies"}])
    least = narrowest(table, table.show_edge, broken=True)
    table.width = least if width is not None and least > width else None
    return table


def cells(row: dict[str, Any], by: Sequence[str], difference: str) -> Row:
    """Return the cells of a row by the names of their columns."""
    error = "" if row["error"] is None else f" ± {row['error']:.1f}"
    shown = {name: str(row[name]) for name in (*by, "test", "figure", "n")} | {MEAN: f"{row['mean']:z.1f}{error}"}
    if row["diff"] is None:
        return shown
    interval = "-" if row["low"] is None else f"{signed(row['low'])} .. {signed(row['high'])}"
    return shown | {
        difference: signed(row["diff"]),
        INTERVAL: interval,
        "p": p_text(row["p"]),
        "p (Holm)": p_text(row["p_holm"]),
    }
