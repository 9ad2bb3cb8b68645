"""The top of the page of a run or a comparison: the answer as a sentence, a chart and a table."""

from pathlib import Path
from typing import Any

from droptop.options import NO_DEBIAS
from droptop.report import sentences, tables
from droptop.report.diagnosis_text import diagnosis_lines
from droptop.report.next_steps import Facts, next_steps
from droptop.report.page import charts
from droptop.report.page.arms import Arm
from droptop.report.page.content import Chart, Page, Row, Section, Table
from droptop.report.tuning import tuned_alike
from droptop.results.diagnosis import diagnose
from droptop.results.statistics import CURVES, FEWEST, verdict
from droptop.runs.compared import compared
from droptop.runs.folder import fewest_steps
from droptop.sweeps.tuning.tune_json import in_words
from droptop.system.short_names import short_name

MOST_ACROSS = 4  # panels side by side
FIGURES_NOTE = "Percent, mean ± standard error over seeds; for F_last, forgetting, lower is better."


def describe_run(page: Page, arm: Arm, done: list[int]) -> None:
    """Put the accuracy of a run on its page, and what it leans on."""
    summary = arm.run.summary(done)
    means = [f"{tables.mean_error(figures['A_avg'])}% on {test}" for test, figures in summary["tests"].items()]
    debias = f" with {arm.name}" if arm.name != "none" else ""
    page.headline = f"{short_name(summary['method'])}{debias} reaches an average accuracy of {tables.listed(means)}."
    found = diagnose(arm.name, summary)
    page.diagnosis = diagnosis_lines(found, summary)
    if not page.progress:
        steps = fewest_steps(arm.run.path, done[0])
        page.steps = next_steps(Facts(arm.run.path, page.command, arm.run.options, found, steps=steps))
    page.findings = [f"{tables.counted(len(done), 'seed')}; mean ± standard error where there are several"]
    rows: list[Row] = [
        [test, seed, value] for test, figures in summary["tests"].items() for seed, value in zip(done, figures["A_avg"])
    ]
    page.answer = Section(
        "answer",
        "Average accuracy",
        "A dot per seed, a bar at their mean.",
        ["test", "seed", "A_avg"],
        rows,
        [Chart(page.headline, charts.accuracies(list(summary["tests"])))],
    )
    page.tables = [
        Table(
            "All figures",
            ["test set", "figure", arm.name],
            [
                [test, tables.NAMES.get(figure, figure), tables.mean_error(values)]
                for test, figures in summary["tests"].items()
                for figure, values in figures.items()
                if figure not in CURVES
            ],
            FIGURES_NOTE,
        )
    ]


def describe_comparison(page: Page, arms: list[Arm], done: list[int], costs: dict[str, Any], out: Path) -> None:
    """Put on the page of a comparison what its reference does, and what each other arm changes, with intervals.

    It claims only what is significant. `costs` is what a step of each arm costs, by its name; empty where that was not
    measured. `out` is the folder of the comparison.
    """
    comparison = sentences.readable(compared(out, {arm.name: arm.run.summary(done) for arm in arms}))
    effects, ranking, words = comparison["effects"], sentences.ranked(comparison), sentences.words_of(comparison)
    several = len(ranking) > 1
    page.diagnosis = diagnosis_lines(comparison["diagnosis"], next(iter(comparison["arms"].values())))
    if not page.progress:
        first, steps = arms[0].run, fewest_steps(arms[0].run.path, done[0])
        page.steps = next_steps(Facts(out, page.command, first.options, comparison["diagnosis"], comparison, steps))
    page.headline = sentences.headline(comparison)
    page.findings = sentences.answer(comparison)
    if len(done) < len(arms[0].run.seeds):
        page.findings.append(f"so far, from {tables.counted(len(done), 'seed')} that all arms have finished")
    tests, averages = (
        list(effects[ranking[0]]),
        {arm: {test: of["A_avg"] for test, of in effects[arm].items()} for arm in ranking},
    )
    rows: list[Row] = [
        [test, arm, effect["diff"], *(effect["ci95"] or (None, None)), effect["p_holm"], words[arm][test], len(done)]
        for test in tests
        for arm in ranking
        for effect in [averages[arm][test]]
    ]
    corrected = f"the number of {'arms times ' * several}test sets"
    reference = next(iter(comparison["arms"]))
    seeds = tables.counted(len(done), "paired seed")
    note = f"The difference to {sentences.reference_name(reference)} in average accuracy, of {seeds}"
    note += (
        f", and its 95% interval; filled where p < 0.05, corrected for {corrected}, of {FEWEST} seeds or more."
        if len(done) > 1
        else "; one seed has no interval."
    )
    note += tables.said_of_cuts(effect for of_arm in averages.values() for effect in of_arm.values())
    edges = [edge for row in rows for edge in row[2:5] if edge is not None]
    drawn = (
        [
            Chart(
                f"Effect of every arm on {test}",
                charts.effects(ranking, "arm", test, (min(edges), max(edges)), test=test),
            )
            for test in tests
        ]
        if several and edges
        else [Chart(page.headline, charts.effects(tests))]
    )
    page.answer = Section(
        "answer",
        "The effect of every arm"
        if several
        else "The effect of debiasing"
        if reference == NO_DEBIAS
        else f"{ranking[0]} beside {reference}",
        note,
        ["test", "arm", "diff", "low", "high", "p", "verdict", "seeds"],
        rows,
        drawn,
        min(len(drawn), MOST_ACROSS),
    )
    page.tables = [all_figures(comparison, ranking), *([cost_table(costs)] if costs else [])]
    page.tables += [tuned_table(tuned)] if (tuned := comparison.get("tuning")) else []


def all_figures(comparison: dict[str, Any], ranking: list[str]) -> Table:
    """Return every figure of every arm beside the reference, the arms in this order."""
    plain_name, plain = next(iter(comparison["arms"].items()))
    return Table(
        "All figures",
        ["test set", "figure", "arm", plain_name, "with it", "difference", "95% interval", "p", "p (Holm)", ""],
        [
            [
                test,
                tables.NAMES.get(figure, figure),
                arm,
                tables.mean_error(plain["tests"][test][figure]),
                tables.mean_error(comparison["arms"][arm]["tests"][test][figure]),
                *tables.effect_cells(effect),
                verdict(figure, effect),
            ]
            for test, figures in comparison["effects"][ranking[0]].items()
            for figure in figures
            for arm in ranking
            for effect in [comparison["effects"][arm][test][figure]]
        ],
        FIGURES_NOTE
        + tables.said_of_cuts(
            effect for tests in comparison["effects"].values() for of in tests.values() for effect in of.values()
        ),
    )


def tuned_table(tuned: dict[str, Any]) -> Table:
    """Return the options that each arm was given by tuning, beside the usual ones."""
    return Table(
        "Tuned options",
        ["arm", "tuned", "usual", "on held-out images"],
        [
            [
                arm,
                in_words(of["settings"]),
                in_words(of["usual"]),
                f"{mean['mean']:.1f}" if (mean := of.get("confirmed")) else "-",
            ]
            for arm, of in tuned["arms"].items()
        ],
        f"{'. '.join(line[0].upper() + line[1:] for line in tuned_alike(tuned)[:1])}.",
    )


def cost_table(costs: dict[str, Any]) -> Table:
    """Return what a training step of each arm costs."""
    return Table("Cost of a step", tables.COST_COLUMNS, tables.cost_rows(costs), f"{tables.COST}.")
