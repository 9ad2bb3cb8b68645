"""The table of a comparison, for a terminal: as many columns as its width has room for, the verdict always.

Numbers are never broken over lines. Where there is no room, p-values go first, then standard errors and accuracies,
then the interval.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import OverflowMethod
from rich.table import Table

from droptop.report.sentences import ranked
from droptop.report.tables import CUT, LEGEND, NAMES, any_cut, effect_cells, heading, mean_error
from droptop.report.tuning import tuned_caption
from droptop.results.metrics import is_of_group
from droptop.results.statistics import FEWEST, NO_VERDICT, Effect, verdict

WORDY = {"test set": 8, "figure": 6, "arm": 8, "verdict": 12}  # columns that may wrap, and how narrow they may get
SPARED = (  # what goes where there is no room, one after the other
    {"p"},
    {"p (Holm)"},
    {"errors"},
    {"accuracies"},
    {"95% interval"},
)
OF_A_PAIR = ("test set", "figure", "difference", "95% interval", "p", "p (Holm)", "verdict")  # columns beside its arms
UNCLEAR = ("no significant difference", "no clear direction")  # words that a ranking of arms leaves out
FOLD: dict[bool, OverflowMethod] = {True: "fold", False: "ellipsis"}

Row = dict[str, str]  # cells by the names of their columns


class Layout(NamedTuple):
    """Hold the rows of a table by section, the columns that show accuracies, and what stands around them."""

    columns: Sequence[str]
    sections: list[list[Row]]
    accuracies: Sequence[str]
    title: str
    corrected_for: str  # what p-values are corrected for the number of
    seeds: int = FEWEST  # of which fewer are noted
    tuned: str = ""  # how arms were tuned, where they were
    wordy: Mapping[str, int] = WORDY  # columns that may wrap, and how narrow they may get
    cut: bool = False  # whether an interval ends at what is possible
    caption: str = ""  # in place of what is said of p-values


def compare_table(comparison: dict[str, Any], width: int | None = None) -> Table:
    """Return the table of a comparison: of a pair every figure, of more arms the average accuracy, ranked.

    It has the columns that `width` has room for; by default all of them.
    """
    return fitted((pair_layout if len(comparison["effects"]) == 1 else arms_layout)(comparison), width)


def fitted(layout: Layout, width: int | None, most_spared: Sequence[set[str]] = SPARED) -> Table:
    """Return a table with the columns that `width` has room for, all by default; what is spared goes in its order."""
    if width is None:
        return drawn(layout, set())
    left_out = set[str]()
    for spared in (set[str](), *most_spared):
        left_out |= spared
        for boxed in (True, False):
            table = drawn(layout, left_out, boxed)
            if narrowest(table, boxed) <= width:
                return table
    return table


def narrowest(table: Table, boxed: bool, broken: bool = False) -> int:
    """Return how wide a table is with its wordy columns as narrow as they may get; with `broken`, within words too."""
    widths = []
    for column in table.columns:
        texts = [str(column.header), *map(str, column.cells)]
        pieces = texts if column.no_wrap else [word for text in texts for word in text.split() if not broken]
        widths.append(max([len(piece) for piece in pieces] + [column.min_width or 0]))
    return sum(widths) + (3 * len(widths) + 1 if boxed else 2 * len(widths))


def drawn(layout: Layout, left_out: set[str], boxed: bool = True) -> Table:
    """Return the table without some of its columns, or without the standard errors of accuracies."""
    gone = left_out | (set(layout.accuracies) if "accuracies" in left_out else set())
    names = [name for name in layout.columns if name not in gone]
    lines = {} if boxed else {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "show_edge": False, "pad_edge": False}
    said = layout.caption or caption(layout, names)
    table = Table(title=layout.title, caption=said, **lines)  # type: ignore[arg-type]
    for name in names:
        header = "" if name in ("figure", "verdict") else name
        wordy = name in layout.wordy
        table.add_column(header, no_wrap=not wordy, min_width=layout.wordy.get(name), overflow=FOLD[wordy])
    for rows in layout.sections:
        for row in rows:
            cells = {name: row.get(name, "") for name in names}
            if "errors" in left_out:
                cells |= {name: cells[name].partition(" ± ")[0] for name in layout.accuracies if name in cells}
            table.add_row(*cells.values())
        table.add_section()
    return table


def caption(layout: Layout, columns: Sequence[str]) -> str:
    """Return what is corrected for the number of comparisons, of the columns that a table has; few seeds are noted."""
    corrected_for = layout.corrected_for
    shows_intervals = "95% interval" in columns
    few = (f"; {NO_VERDICT}" if layout.seeds < FEWEST else "") + layout.tuned
    few += f"; {CUT}" if layout.cut and shows_intervals else ""
    intervals = ", intervals are not" if shows_intervals else ""
    if "p (Holm)" in columns:
        return f"p (Holm) is corrected for the number of {corrected_for}{intervals}; words go by p (Holm){few}"
    return f"words are corrected for the number of {corrected_for}{intervals}{few}"


def effect_row(figure: str, effect: Effect) -> Row:
    """Return the cells of an effect by the names of their columns."""
    return dict(zip(("difference", "95% interval", "p", "p (Holm)"), effect_cells(effect))) | {
        "verdict": verdict(figure, effect)
    }


def apart(arm: str) -> str:
    """Return the name of an arm's column, which is none of another column or of what is left out for room."""
    return f"{arm} (arm)" if arm in (*OF_A_PAIR, "errors", "accuracies") else arm


def pair_layout(comparison: dict[str, Any]) -> Layout:
    """Return the rows of two arms: every figure of both, their difference and what it means."""
    plain, debiased = comparison["arms"].values()
    plain_name, arm = map(apart, comparison["arms"])
    (effects,) = comparison["effects"].values()
    sections = [
        [
            {
                "test set": test if figure == "A_avg" else "",
                "figure": NAMES.get(figure, figure),
                plain_name: mean_error(plain["tests"][test][figure]),
                arm: mean_error(debiased["tests"][test][figure]),
            }
            | effect_row(figure, effect)
            for figure, effect in figures.items()
            if not is_of_group(figure)  # the page has them
        ]
        for test, figures in effects.items()
    ]
    return Layout(
        (*OF_A_PAIR[:2], plain_name, arm, *OF_A_PAIR[2:]),
        sections,
        (plain_name, arm),
        f"{heading(*comparison['arms'].values())} ({LEGEND})",
        "test sets",
        len(plain["seeds"]),
        tuned_caption(comparison.get("tuning")),
        cut=any_cut(effect for figures in effects.values() for effect in figures.values()),
    )


def arms_layout(comparison: dict[str, Any]) -> Layout:
    """Return the rows of several arms: the average accuracy of each, and its difference to that of the first one.

    The arm with the largest effect on average comes first. The report page has every other figure.
    """
    plain_name, plain = next(iter(comparison["arms"].items()))
    beside = f"beside {plain_name}"
    sections: list[list[Row]] = []
    for test, figures in plain["tests"].items():
        rows: list[Row] = [{"test set": test, "arm": plain_name, "A_avg": mean_error(figures["A_avg"])}]
        for arm in ranked(comparison):
            cells = effect_row("A_avg", comparison["effects"][arm][test]["A_avg"])
            cells |= {"verdict": "" if cells["verdict"] in UNCLEAR else cells["verdict"], beside: cells["difference"]}
            rows.append({"arm": arm, "A_avg": mean_error(comparison["arms"][arm]["tests"][test]["A_avg"])} | cells)
        sections.append(rows)
    return Layout(
        ("test set", "arm", "A_avg", beside, "95% interval", "p", "p (Holm)", "verdict"),
        sections,
        ("A_avg",),
        f"{heading(*comparison['arms'].values())} (percent, mean ± standard error)",
        "arms times test sets",
        len(plain["seeds"]),
        tuned_caption(comparison.get("tuning")),
        cut=any_cut(figures["A_avg"] for of_arm in comparison["effects"].values() for figures in of_arm.values()),
    )
