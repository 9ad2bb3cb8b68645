"""The page of a study: what debiasing changes, per stream and method."""

from pathlib import Path
from typing import Any

from droptop.report import tables
from droptop.report.page import charts
from droptop.report.page.answer import FIGURES_NOTE
from droptop.report.page.attention import attention_data
from droptop.report.page.content import Chart, Page, Row, Section, Table
from droptop.results.statistics import FEWEST, verdict
from droptop.runs.records import read_maps
from droptop.sweeps.pairing import Plain
from droptop.sweeps.results import BY, FIGURES, also_varied, grouped_rows, with_short_names
from droptop.sweeps.study_folder import StudyFolder, requested_cells
from droptop.system.short_names import short_name

MOST_ROWS = 1500  # of the table


def page_of_study(study: Path, again: str, config_text: str, environment: dict[str, Any]) -> Page:
    """Return the page of a study, with what is measured so far."""
    folder, cells = StudyFolder(study), set(requested_cells(study))
    counts, failures = folder.counts(cells), [(cell, error) for cell, error in folder.failures() if cell in cells]
    values = [value for value in folder.values() if (value["run"], value["seed"]) in cells]
    page = Page("study", study.name or str(study), "", [], again, config_text, environment)
    if counts["done"] < len(cells):
        page.progress = f"{counts['done']} of {tables.counted(len(cells), 'cell')} are done, {counts['failed']} failed"
    page.notes += [
        f"failed: {cell.run}, seed {cell.seed}: {error.strip().splitlines()[-1]}" for cell, error in failures[:20]
    ]
    if not values:
        page.headline = "This study has not come to a result yet."
        return page
    rows = with_short_names(grouped_rows(values, BY, FIGURES), BY)
    if varied := also_varied(values, BY):
        page.notes.insert(0, f"{tables.averaged_over(varied)} here; `droptop results --by` tells them apart.")
    describe(page, [row for row in rows if row["figure"] == "A_avg"])
    page.attention = attention_of_a_pair(study, values, page.notes)
    if len(rows) > MOST_ROWS:
        page.notes.append(f"The table has the first {MOST_ROWS} of {len(rows)} rows; `droptop results` has all.")
    page.tables = [
        Table(
            "All figures",
            [*BY, "test set", "figure", "n", "mean", "to none", "95% interval", "p", "p (Holm)"],
            [cells_of(row) for row in rows[:MOST_ROWS]],
            FIGURES_NOTE,
        )
    ]
    return page


def attention_of_a_pair(study: Path, values: list[dict[str, Any]], notes: list[str]) -> dict[str, Any] | None:
    """Return maps of where a model looks without and with debiasing, of the first runs that differ in that alone.

    None where no pair recorded maps.
    """
    plain = Plain(values)
    pairs: dict[tuple[str, str], dict[str, Any]] = {}  # with a value of their first seed, which records maps
    for value in values:
        if (twin := plain.twin(value)) is not None:
            pairs.setdefault((twin["run"], value["run"]), value)
    for runs, value in pairs.items():
        pair = [read_maps(study / "runs" / run, value["seed"]) for run in runs]
        maps = {
            arm: recorded for arm, recorded in zip(("none", short_name(value["debias"])), pair) if recorded is not None
        }
        if len(maps) == 2:
            if len(pairs) > 1:
                notes.append(
                    f"Where the model looks is shown for {short_name(value['method'])} on "
                    f"{short_name(value['data'])}; reports of the study's runs show others."
                )
            return attention_data(maps, notes)
    return None


def describe(page: Page, rows: list[dict[str, Any]]) -> None:
    """Put on the page the answer over all comparisons, and the accuracy of every arm."""
    effects = [row for row in rows if row["diff"] is not None]
    if effects:
        words = [word(row) for row in effects]
        tally = [
            f"{verb} in {words.count(key)}" for key, verb in (("better", "helps"), ("worse", "hurts")) if key in words
        ]
        rest = words.count("no significant difference")
        if tally:
            page.headline = f"Of {tables.counted(len(effects), 'comparison')}, debiasing {' and '.join(tally)}"
            page.headline += f"; no significant difference in {rest}." if rest else "."
        elif rest:
            page.headline = f"No significant difference in any of {tables.counted(len(effects), 'comparison')}."
        elif max(row["pairs"] for row in effects) > 1:
            up, down = words.count("points to better"), words.count("points to worse")
            page.headline = (
                f"Of {tables.counted(len(effects), 'comparison')}, debiasing points to better in {up}, to worse in "
                f"{down}; no verdict below {FEWEST} seeds."
            )
        else:
            page.headline = "One seed cannot tell whether debiasing helps."
        page.findings = [
            "points of A_avg, paired by seed; p-values corrected by Holm's method for the number of these comparisons"
        ]
        differences: list[Row] = [
            [
                row["data"],
                label(row, row["debias"]),
                row["diff"],
                row["low"],
                row["high"],
                row["p_holm"],
                word(row),
                row["pairs"],
            ]
            for row in effects
        ]
        page.answer = Section(
            "answer",
            "The effect of debiasing",
            "Difference to the same runs without it, with its 95% interval; filled where the corrected p < 0.05.",
            ["data", "row", "diff", "low", "high", "p", "verdict", "pairs"],
            differences,
            [
                Chart(
                    f"Effect of debiasing on {data}",
                    charts.effects([row[1] for row in differences if row[0] == data], "row", data, data=data),
                )
                for data in dict.fromkeys(row[0] for row in differences)
            ],
            across=2,
        )
    else:
        page.headline = f"{tables.counted(len({row['data'] for row in rows}), 'stream')}, nothing to compare with."
    arms = list(dict.fromkeys(row["debias"] for row in sorted(rows, key=lambda row: row["debias"] != "none")))
    means: list[Row] = [
        [
            row["data"],
            label(row),
            row["debias"],
            row["mean"],
            row["error"] or 0,
            row["mean"] - (row["error"] or 0),
            row["mean"] + (row["error"] or 0),
            row["n"],
        ]
        for row in rows
    ]
    page.sections.append(
        Section(
            "accuracy",
            "Average accuracy",
            "Mean over seeds and one standard error.",
            ["data", "row", "arm", "mean", "error", "low", "high", "n"],
            means,
            [
                Chart(
                    f"Average accuracy on {data}",
                    charts.means(data, len({row[1] for row in means if row[0] == data}), arms),
                )
                for data in dict.fromkeys(row[0] for row in means)
            ],
            across=2,
            key={arm: charts.colour_of(arm, arms) for arm in arms},
        )
    )


def word(row: dict[str, Any]) -> str:
    """Return what a row's difference means, by its corrected p-value: better, worse, or no claim."""
    return verdict(
        "A_avg",
        {"diff": row["diff"], "ci95": None, "p": row["p"], "p_holm": row["p_holm"], "n": row["pairs"], "least": None},
    )


def label(row: dict[str, Any], arm: str = "") -> str:
    """Return the label of a row of a chart: method, arm and test set."""
    return f"{row['method']}{' ' + arm if arm else ''}: {row['test']}"


def cells_of(row: dict[str, Any]) -> list[str]:
    """Return a row of results as text."""
    error = "" if row["error"] is None else f" ± {row['error']:.1f}"
    interval = None if row["low"] is None else [row["low"], row["high"]]
    effect = tables.effect_cells(
        {"diff": row["diff"], "ci95": interval, "p": row["p"], "n": row["pairs"], "least": None}
    )
    return [
        *(str(row[name]) for name in BY),
        row["test"],
        row["figure"],
        str(row["n"]),
        f"{row['mean']:.1f}{error}",
        *effect,
        tables.p_text(row["p_holm"]),
    ]
