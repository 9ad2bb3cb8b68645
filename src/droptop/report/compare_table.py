"""The table of a comparison, for a terminal."""

from typing import Any

from rich.table import Table

from droptop.report.sentences import ranked
from droptop.report.tables import LEGEND, NAMES, effect_cells, heading, mean_error
from droptop.results.metrics import is_of_group
from droptop.results.statistics import verdict


def compare_table(comparison: dict[str, Any]) -> Table:
    """Return the table of a comparison: of a pair every figure, of more arms the average accuracy, ranked."""
    return pair_table(comparison) if len(comparison["effects"]) == 1 else arms_table(comparison)


def pair_table(comparison: dict[str, Any]) -> Table:
    """Return the table of two arms: every figure of both, their difference and what it means."""
    plain, debiased = comparison["arms"].values()
    (effects,) = comparison["effects"].values()
    table = Table(
        "test set",
        "",
        *comparison["arms"],
        "difference",
        "95% interval",
        "p",
        "p (Holm)",
        "",
        title=f"{heading(*comparison['arms'].values())} ({LEGEND})",
        caption="p (Holm) is corrected for the number of test sets, intervals are not; words go by p (Holm)",
    )
    for test, figures in effects.items():
        for figure, effect in figures.items():
            if is_of_group(figure):
                continue  # the page has them
            table.add_row(
                test if figure == "A_avg" else "",
                NAMES.get(figure, figure),
                mean_error(plain["tests"][test][figure]),
                mean_error(debiased["tests"][test][figure]),
                *effect_cells(effect),
                verdict(figure, effect),
            )
        table.add_section()
    return table


def arms_table(comparison: dict[str, Any]) -> Table:
    """Return the table of several arms: the average accuracy of each, and its difference to that of the reference.

    The arm with the largest effect on average comes first. The report page has every other figure.
    """
    plain_name, plain = next(iter(comparison["arms"].items()))
    table = Table(
        "test set",
        "arm",
        "A_avg",
        f"beside {plain_name}",
        "95% interval",
        "p",
        "p (Holm)",
        "",
        title=f"{heading(*comparison['arms'].values())} (percent, mean ± standard error)",
        caption="p (Holm) is corrected for the number of arms times test sets, intervals are not; words go by p (Holm)",
    )
    for test, figures in plain["tests"].items():
        table.add_row(test, plain_name, mean_error(figures["A_avg"]))
        for arm in ranked(comparison):
            effect = comparison["effects"][arm][test]["A_avg"]
            word = verdict("A_avg", effect)
            mean = mean_error(comparison["arms"][arm]["tests"][test]["A_avg"])
            table.add_row("", arm, mean, *effect_cells(effect), word if word in ("better", "worse") else "")
        table.add_section()
    return table
