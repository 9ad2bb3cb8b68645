"""The top of the page of a run or a comparison: the answer as a sentence, a chart and a table."""

from typing import Any

from droptop.report import tables
from droptop.report.page import charts
from droptop.report.page.arms import Arm
from droptop.report.page.content import Chart, Page, Row, Section, Table
from droptop.results.statistics import CURVES, compare, verdict
from droptop.system.short_names import short_name

MOST_ACROSS = 4  # panels side by side
FIGURES_NOTE = "Percent, mean ± standard error over seeds; for F_last, forgetting, lower is better."


def describe_run(page: Page, arm: Arm, done: list[int]) -> None:
    """Put the accuracy of a run on its page; without an arm to compare with, it claims nothing."""
    summary = arm.run.summary(done)
    means = [f"{tables.mean_error(figures['A_avg'])}% on {test}" for test, figures in summary["tests"].items()]
    debias = f" with {arm.name}" if arm.name != "none" else ""
    page.headline = f"{short_name(summary['method'])}{debias} reaches an average accuracy of {tables.listed(means)}."
    page.findings = [f"{counted(len(done), 'seed')}; mean ± standard error where there are several"]
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


def describe_comparison(page: Page, arms: list[Arm], done: list[int], costs: dict[str, Any]) -> None:
    """Put on the page of a comparison what each arm changes, with intervals; claim only what is significant.

    `costs` is what a step of each arm costs, by its name; empty where that was not measured.
    """
    comparison = compare({arm.name: arm.run.summary(done) for arm in arms})
    run, effects, ranking = arms[-1].run, comparison["effects"], tables.ranked(comparison)
    several = len(ranking) > 1
    words = {arm: {test: verdict("A_avg", of["A_avg"]) for test, of in tests.items()} for arm, tests in effects.items()}
    page.headline = headline(tables.contenders(ranking), short_name(run.method), short_name(run.data), words)
    page.findings = tables.answer(comparison)
    if len(done) < len(arms[0].run.seeds):
        page.findings.append(f"so far, from {counted(len(done), 'seed')} that all arms have finished")
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
    note = f"The difference to the plain arm in average accuracy, of {counted(len(done), 'paired seed')}"
    note += (
        f", and its 95% interval; filled where p < 0.05, corrected for {corrected}."
        if len(done) > 1
        else "; one seed has no interval."
    )
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
        "The effect of every arm" if several else "The effect of debiasing",
        note,
        ["test", "arm", "diff", "low", "high", "p", "verdict", "seeds"],
        rows,
        drawn,
        min(len(drawn), MOST_ACROSS),
    )
    page.tables = [all_figures(comparison, ranking), *([cost_table(costs)] if costs else [])]


def all_figures(comparison: dict[str, Any], ranking: list[str]) -> Table:
    """Return every figure of every arm beside the plain one, the arms in this order."""
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
        FIGURES_NOTE,
    )


def cost_table(costs: dict[str, Any]) -> Table:
    """Return what a training step of each arm costs."""
    return Table("Cost of a step", tables.COST_COLUMNS, tables.cost_rows(costs), f"{tables.COST}.")


def headline(arms: list[str], method: str, data: str, words: dict[str, dict[str, str]]) -> str:
    """Return the answer in one sentence, from the arms, best first, and a verdict per arm and test set."""
    helping = [arm for arm in arms if "better" in words[arm].values()]
    if len(arms) == 1:
        return sentence(arms[0], method, data, words[arms[0]])
    if not helping:
        return f"None of {len(arms)} arms helps {method} on {data} by a significant difference."
    said = sentence(helping[0], method, data, words[helping[0]])
    return f"The best of {len(arms)} arms: {said[0].lower()}{said[1:]}"


def sentence(debias: str, method: str, data: str, words: dict[str, str]) -> str:
    """Return the answer in one sentence, from a verdict per test set."""
    by_word: dict[str, list[str]] = {}
    for test, word in words.items():
        by_word.setdefault(word, []).append(test)
    parts = [
        f"{verb} {method} on {tables.listed(by_word[word])}"
        for word, verb in (("better", "helps"), ("worse", "hurts"))
        if word in by_word
    ]
    if not parts:
        if "no significant difference" in by_word:
            return f"No significant difference between {method} with {debias} and without on {data}."
        return f"One seed cannot tell whether {debias} helps {method} on {data}."
    rest = [
        f"no significant difference on {tables.listed(tests)}"
        for word, tests in by_word.items()
        if word == "no significant difference"
    ]
    return f"On {data}, {debias} {', and '.join(parts)}{'; ' + rest[0] if rest else ''}."


def counted(number: int, what: str) -> str:
    """Return a number with its noun, in the plural where need be: "2 seeds"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
