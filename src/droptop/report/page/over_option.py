"""Accuracy over one numeric option of a study, such as its learning rates: curves, and which value is best."""

from collections.abc import Sequence
from typing import Any

from droptop.options import ending_in
from droptop.report.page import charts
from droptop.report.page.content import Chart, Page, Row, Section
from droptop.report.tables import NAMES
from droptop.sweeps.pairing import Value, options_of
from droptop.sweeps.results import BY, also_varied, grouped_rows, with_short_names

WIDE = 5  # times the smallest value, from which an axis is logarithmic
MOST_BEST = 12  # sentences
FLATTERED = (
    "The best is chosen by the accuracy that is shown, which flatters it: with hold_out = 10 in the study it is "
    "chosen on training images that are kept back."
)
KEPT_BACK = (
    "The best is chosen on training images that are kept back (hold_out): run it without, to see what it reaches."
)


def numeric_option(values: Sequence[Value], by: Sequence[str] | None) -> str | None:
    """Return the option to draw accuracy over, as it was named; None where there is none, or several to choose from.

    It is the first one in `by` that has several numbers; where nothing was asked for, the only one that varies.
    """
    names = [name for name in (also_varied(values, BY) if by is None else by) if name not in ("seed", *BY)]
    paths = {name: ending_in(name, options_of(values)) for name in names}
    numeric = [name for name in names if len(paths[name]) == 1 and is_numeric(values, paths[name][0])]
    return numeric[0] if numeric and (by is not None or len(numeric) == 1) else None


def is_numeric(values: Sequence[Value], path: str) -> bool:
    """Return whether an option has several values, all of them numbers."""
    contents = {value[path] for value in values if value.get(path) is not None}
    return len(contents) > 1 and all(isinstance(each, int | float) and not isinstance(each, bool) for each in contents)


def add_curves(page: Page, values: Sequence[Value], name: str, by: Sequence[str] | None) -> None:
    """Put on the page of a study its accuracy over an option, a line per group of the other options, and the best."""
    lines = [each for each in by or BY if each not in ("data", "seed", name)]
    every = ("data", *lines, name)
    rows = with_short_names(grouped_rows(values, every, ("A_avg",)), ("data", *lines))
    varied = [each for each in lines if len({row[each] for row in rows}) > 1]
    contents = sorted({row[name] for row in rows if row[name] is not None})
    drawn: list[Row] = []
    for row in rows:
        line, error = " ".join(str(row[each]) for each in varied or lines[:1]), row["error"] or 0
        for content in contents if row[name] is None else [row[name]]:
            edges = [row["mean"], row["error"] or 0, row["mean"] - error, row["mean"] + error]
            drawn.append([row["data"], row["test"], line, content, *edges, row["n"]])
    arms = list(dict.fromkeys(row[2] for row in drawn))
    best = best_rows([row for row in rows if row[name] is not None])
    page.findings += [f"best {name} {said(row, name, varied)}" for row in best[:MOST_BEST]]
    if page.answer is None and best:
        page.headline = f"The best {name} {said(best[0], name, varied)}."
    kept_back = all(value.get("stream.hold_out") for value in values)
    page.findings.append((KEPT_BACK if kept_back else FLATTERED).rstrip("."))
    panels = list(dict.fromkeys((row[0], row[1]) for row in drawn))
    logarithmic = contents[0] > 0 and contents[-1] >= WIDE * contents[0]
    page.sections.insert(
        0,
        Section(
            "curves",
            f"Accuracy over {name}",
            "Mean over seeds and one standard error. What does not have the option is a level line.",
            ["data", "test", "arm", "value", "mean", "error", "low", "high", "n"],
            drawn,
            [
                Chart(
                    f"Accuracy over {name} on {data}, {test}",
                    charts.over_option(name, contents, arms, logarithmic, f"{data}: {test}", data=data, test=test),
                )
                for data, test in panels
            ],
            min(len(panels), 3),
            {arm: charts.colour_of(arm, arms) for arm in arms},
        ),
    )


def best_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the row of the highest mean of every stream and test set, with how many values it was chosen from."""
    panels: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        panels.setdefault((row["data"], row["test"]), []).append(row)
    return [max(each, key=lambda row: row["mean"]) | {"of": len(each)} for each in panels.values()]


def said(row: dict[str, Any], name: str, varied: Sequence[str]) -> str:
    """Return where an option is best, and what it reaches there, as a clause."""
    others = "".join(f" {row[each]}" for each in varied)
    spread = "" if row["error"] is None else f" ± {row['error']:.1f}"
    seeds = f"{row['n']} seed{'' if row['n'] == 1 else 's'}"
    return (
        f"on {row['data']}, {NAMES.get(row['test'], row['test'])}: {row[name]}{' with' if others else ''}{others}, "
        f"{row['mean']:.1f}{spread}% ({seeds}; the best of {row['of']} settings)"
    )
