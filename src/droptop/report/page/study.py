"""The page of a study: what debiasing changes per stream and method, or any option beside any other value of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from droptop.options import NO_DEBIAS
from droptop.report import tables
from droptop.report.page import charts
from droptop.report.page.answer import FIGURES_NOTE
from droptop.report.page.attention import attention_data
from droptop.report.page.content import Chart, Page, Row, Section, Table
from droptop.report.page.over_option import add_curves, numeric_option
from droptop.report.page.stress import lead_with_cues
from droptop.report.sentences import VERBS
from droptop.results.statistics import FEWEST, verdict
from droptop.results.stress import stressed
from droptop.runs.seed_files import SeedFiles
from droptop.sweeps.pairing import Plain, reference_of
from droptop.sweeps.results import BY, FIGURES, also_varied, grouped_rows, with_short_names
from droptop.sweeps.study_folder import StudyFolder, requested_cells
from droptop.system.short_names import short_name

MOST_ROWS = 1500  # of the table


def page_of_study(
    study: Path,
    again: str,
    config_text: str,
    environment: dict[str, Any],
    by: Sequence[str] | None = None,
    against: str | None = None,
) -> Page:
    """Return the page of a study, with what is measured so far.

    Runs are grouped by stream and the options in `by`, by default method and debiasing; differences are to what
    `against` says, by default the same without debiasing. Of a study of cues, cues are told apart as well.
    """
    unread: list[str] = []
    folder, cells = StudyFolder(study, unread.append), set(requested_cells(study))
    counts, failures = folder.counts(cells), [(cell, error) for cell, error in folder.failures() if cell in cells]
    values = [value for value in folder.values() if (value["run"], value["seed"]) in cells]
    page = Page("study", study.name or str(study), "", [], again, config_text, environment)
    if counts["done"] < len(cells):
        page.progress = f"{counts['done']} of {tables.counted(len(cells), 'cell')} are done, {counts['failed']} failed"
    page.unfit = [*unread[:20], *folder.lines()]
    page.notes += [
        f"failed: {cell.run}, seed {cell.seed}: {error.strip().splitlines()[-1]}" for cell, error in failures[:20]
    ]
    if not values:
        page.headline = "This study has not come to a result yet."
        return page
    cues = (
        [] if by else stressed(values, (guess for guess in folder.guesses() if (guess["run"], guess["seed"]) in cells))
    )
    grouped = by or (*BY, *(["shortcut"] if cues else []))
    names, reference = tuple(dict.fromkeys(("data", *grouped))), reference_of(values, against)
    rows = with_short_names(grouped_rows(values, names, FIGURES, reference=reference), names)
    if varied := also_varied(values, names):
        page.notes.insert(0, f"{tables.averaged_over(varied)} here; `--by` tells them apart.")
    if reference.also:
        page.notes.append(f"{tables.listed(sorted(reference.also))}: each method has a value of its own.")
    describe(page, [row for row in rows if row["figure"] == "A_avg"], names, reference.name)
    if (over := numeric_option(values, by)) is not None:
        add_curves(page, values, over, by)
    if cues:
        lead_with_cues(page, cues)
    page.attention = attention_of_a_pair(folder, values, page)
    if len(rows) > MOST_ROWS:
        page.notes.append(f"The table has the first {MOST_ROWS} of {len(rows)} rows; `droptop results` has all.")
    page.tables = [
        Table(
            "All figures",
            [*names, "test set", "figure", "n", "mean", f"to {reference.name}", "95% interval", "p", "p (Holm)"],
            [cells_of(row, names) for row in rows[:MOST_ROWS]],
            FIGURES_NOTE,
        )
    ]
    return page


def attention_of_a_pair(folder: StudyFolder, values: list[dict[str, Any]], page: Page) -> dict[str, Any] | None:
    """Return maps of where a model looks without and with debiasing, of the first runs that differ in that alone.

    None where no pair recorded maps.
    """
    plain = Plain(values)
    pairs: dict[tuple[str, str], dict[str, Any]] = {}  # with a value of their first seed, which records maps
    for value in values:
        if (twin := plain.twin(value)) is not None:
            pairs.setdefault((twin["run"], value["run"]), value)
    for runs, value in pairs.items():
        files = [SeedFiles(folder.runs[run], value["seed"]) for run in runs]
        pair = [of_run.maps for of_run in files]
        page.unfit += [f"{line}: left out" for of_run in files for line in of_run.unfit]
        maps = {
            arm: recorded for arm, recorded in zip(("none", short_name(value["debias"])), pair) if recorded is not None
        }
        if len(maps) == 2:
            if len(pairs) > 1:
                page.notes.append(
                    f"Where the model looks is shown for {short_name(value['method'])} on "
                    f"{short_name(value['data'])}; reports of the study's runs show others."
                )
            return attention_data(maps, page.notes)
    return None


def describe(page: Page, rows: list[dict[str, Any]], by: Sequence[str], reference: str) -> None:
    """Put on the page the answer over all comparisons with the reference, and the accuracy of every group."""
    like = "without it" if reference == NO_DEBIAS else f"with {reference}"
    effects = [row for row in rows if row["diff"] is not None]
    if effects:
        page.headline = headline([word(row) for row in effects], reference, max(row["pairs"] for row in effects))
        page.findings = [
            "points of A_avg, paired by seed; p-values corrected by Holm's method for the number of these comparisons"
        ]
        differences: list[Row] = [
            [row["data"], label(row, by), row["diff"], row["low"], row["high"], row["p_holm"], word(row), row["pairs"]]
            for row in effects
        ]
        page.answer = Section(
            "answer",
            "The effect of debiasing" if reference == NO_DEBIAS else f"Differences to {reference}",
            f"Difference to the same runs {like}, with its 95% interval; filled where the corrected p < 0.05.",
            ["data", "row", "diff", "low", "high", "p", "verdict", "pairs"],
            differences,
            [
                Chart(
                    f"Differences to {reference} on {data}",
                    charts.effects([row[1] for row in differences if row[0] == data], "row", data, data=data),
                )
                for data in dict.fromkeys(row[0] for row in differences)
            ],
            across=2,
        )
    else:
        page.headline = f"{tables.counted(len({row['data'] for row in rows}), 'stream')}, nothing to compare with."
    colour = "debias" if "debias" in by else by[-1]
    names = dict.fromkeys(row[colour] for row in sorted(rows, key=lambda row: row[colour] != NO_DEBIAS))
    arms = [str(name) for name in names]
    means: list[Row] = [
        [
            row["data"],
            label(row, [name for name in by if name != colour]),
            str(row[colour]),
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


def headline(words: Sequence[str], reference: str, seeds: int) -> str:
    """Return what comparisons with the reference found in one sentence, from a verdict for each."""
    plain = reference == NO_DEBIAS
    of = f"Of {tables.counted(len(words), 'comparison')}{'' if plain else f' with {reference}'}"
    rest = words.count("no significant difference")
    found = {word: words.count(word) for word in ("better", "worse") if word in words}
    if found:
        helps = " and ".join(f"{VERBS[word]} in {count}" for word, count in found.items())
        other = " and ".join(f"{count} {'is' if count == 1 else 'are'} {word}" for word, count in found.items())
        end = f"; no significant difference in {rest}." if rest else "."
        return f"{of}, {f'debiasing {helps}' if plain else other}{end}"
    if rest:
        return f"No significant difference in any of {of.removeprefix('Of ')}."
    if seeds > 1:
        up, down = words.count("points to better"), words.count("points to worse")
        pointing = "debiasing points" if plain else "the seeds point"
        return f"{of}, {pointing} to better in {up}, to worse in {down}; no verdict below {FEWEST} seeds."
    return f"One seed cannot tell whether {'debiasing helps' if plain else f'anything is better than {reference}'}."


def word(row: dict[str, Any]) -> str:
    """Return what a row's difference means, by its corrected p-value: better, worse, or no claim."""
    return verdict(
        "A_avg",
        {"diff": row["diff"], "ci95": None, "p": row["p"], "p_holm": row["p_holm"], "n": row["pairs"], "least": None},
    )


def label(row: dict[str, Any], names: Sequence[str]) -> str:
    """Return the label of a row of a chart: the values of these options but the stream, and the test set."""
    group = " ".join(str(row[name]) for name in names if name != "data")
    return f"{group}: {row['test']}" if group else str(row["test"])


def cells_of(row: dict[str, Any], by: Sequence[str]) -> list[str]:
    """Return a row of results as text."""
    error = "" if row["error"] is None else f" ± {row['error']:.1f}"
    interval = None if row["low"] is None else [row["low"], row["high"]]
    effect = tables.effect_cells(
        {"diff": row["diff"], "ci95": interval, "p": row["p"], "n": row["pairs"], "least": None}
    )
    return [
        *(str(row[name]) for name in by),
        row["test"],
        row["figure"],
        str(row["n"]),
        f"{row['mean']:.1f}{error}",
        *effect,
        tables.p_text(row["p_holm"]),
    ]
