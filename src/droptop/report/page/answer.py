"""The top of the page of a run or a comparison: the answer as a sentence, a chart and a table."""

from droptop.report import tables
from droptop.report.page import charts
from droptop.report.page.arms import Arm
from droptop.report.page.content import Chart, Page, Row, Section, Table
from droptop.results.statistics import CURVES, compare, verdict


def describe_run(page: Page, arm: Arm, done: list[int]) -> None:
    """Put the accuracy of a run on its page; without an arm to compare with, it claims nothing."""
    summary = arm.run.summary(done)
    means = [f"{tables.mean_error(figures['A_avg'])}% on {test}" for test, figures in summary["tests"].items()]
    debias = f" with {arm.name}" if arm.name != "none" else ""
    page.headline = f"{summary['method']}{debias} reaches an average accuracy of {tables.listed(means)}."
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
        )
    ]


def describe_comparison(page: Page, both: list[Arm], done: list[int]) -> None:
    """Put on the page of a comparison whether debiasing helps, with intervals; claim only what is significant."""
    comparison = compare(*(arm.run.summary(done) for arm in both))
    run, effects = both[1].run, comparison["effects"]
    averages = {test: by_figure["A_avg"] for test, by_figure in effects.items()}
    words = {test: verdict("A_avg", effect) for test, effect in averages.items()}
    page.headline = sentence(run.debias, run.method, run.data, words)
    page.findings = tables.answer(comparison)
    if len(done) < len(both[0].run.seeds):
        page.findings.append(f"so far, from {counted(len(done), 'seed')} that both arms have finished")
    rows: list[Row] = [
        [test, effect["diff"], *(effect["ci95"] or (None, None)), effect["p_holm"], words[test], len(done)]
        for test, effect in averages.items()
    ]
    note = f"The difference in average accuracy of {counted(len(done), 'paired seed')}"
    note += (
        " and its 95% interval; filled where p < 0.05, corrected for the number of test sets."
        if len(done) > 1
        else "; one seed has no interval."
    )
    page.answer = Section(
        "answer",
        "The effect of debiasing",
        note,
        ["test", "diff", "low", "high", "p", "verdict", "seeds"],
        rows,
        [Chart(page.headline, charts.effects(list(effects)))],
    )
    plain, debiased = comparison["arms"].values()
    page.tables = [
        Table(
            "All figures",
            ["test set", "figure", *(arm.name for arm in both), "difference", "95% interval", "p", "p (Holm)", ""],
            [
                [
                    test,
                    tables.NAMES.get(figure, figure),
                    tables.mean_error(plain["tests"][test][figure]),
                    tables.mean_error(debiased["tests"][test][figure]),
                    *tables.effect_cells(effect),
                    verdict(figure, effect),
                ]
                for test, by_figure in effects.items()
                for figure, effect in by_figure.items()
            ],
        )
    ]


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
