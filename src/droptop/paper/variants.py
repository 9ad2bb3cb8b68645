"""The table of an ablation: DropTop against variants of itself, averaged over test sets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from droptop.paper.cell_results import CellResults, Series, average, difference, mean
from droptop.paper.claims import METHODS, STANDS_FOR, same_sets, set_name, stand_in_notes, unquoted_note
from droptop.paper.recipe import CellOptions
from droptop.paper.tables import ITALICS, UNQUOTED, VERDICT, Column, Mean, Percent, Table, Value
from droptop.paper.verdict import gap, judge

WHOLE = "DropTop"  # the variant that the others are compared with
EVERY = "mean"  # in the place of a method: the mean over all methods
COLUMNS = (
    Column("method", "label"),
    Column("variant", "label"),
    Column("figure", "label"),
    Column("paper", "quoted"),
    Column("to DropTop: paper", "quoted"),
    Column("worse by: paper", "quoted"),
    Column("here"),
    Column("n"),
    Column("to DropTop: here"),
    Column("worse by: here"),
    Column("verdict", "verdict"),
)


@dataclass(frozen=True)
class Comparison:
    """Hold variants of DropTop, the test sets that they are averaged over, and the paper's figures.

    The paper is quoted where its figure is a mean over the same test sets; that of all methods, over the same methods.
    """

    title: str
    variants: dict[str, CellOptions]  # options of their cells, by name
    sets: Sequence[tuple[str, str]]
    figures: Sequence[str]
    paper: Callable[[str, str, str], Mean | None]  # by method (or EVERY), variant, figure
    worse: Callable[[str, str, str], float | None]  # by the same: how many percent worse than DropTop
    percent_of: Literal["variant", "droptop"]  # what the paper divides by
    paper_sets: Sequence[tuple[str, str]]
    paper_methods: Sequence[str]
    suffix: str = ""  # of its files

    def table(self, results: CellResults) -> Table:
        """Return the table of all methods, variants and figures."""
        methods = results.scope.methods
        used = self.common_sets(results)
        sets_match, methods_match = same_sets(used, self.paper_sets), set(methods) == set(self.paper_methods)
        series = {
            (method, variant, figure): average(
                results.series(cell | {"data": data, "method": method}, test, figure) for data, test in used
            )
            for method in methods
            for variant, cell in self.variants.items()
            for figure in self.figures
        }
        if len(methods) > 1:
            series |= {
                (EVERY, variant, figure): average(series[method, variant, figure] for method in methods)
                for variant in self.variants
                for figure in self.figures
            }
        rows = []
        for method in (*methods, EVERY) if len(methods) > 1 else methods:
            for number, variant in enumerate(self.variants):
                for place, figure in enumerate(self.figures):
                    key = method, variant, figure
                    quotes = sets_match and (method != EVERY or methods_match)
                    labels = [
                        METHODS.get(method, method) if number == place == 0 else "",
                        variant if place == 0 else "",
                        figure,
                    ]
                    rows.append([*labels, *self.row(key, series[key], series[method, WHOLE, figure], quotes)])
        over = ", ".join(set_name(data, test) for data, test in used) or "nothing"
        notes = [unquoted_note(used, self.paper_sets)]
        if sets_match:
            notes = [ITALICS, VERDICT, *stand_in_notes(results.scope.data)]
        if sets_match and len(methods) > 1 and not methods_match:
            notes.append(
                f"{UNQUOTED} of the mean of these methods: the paper's is of "
                f"{', '.join(METHODS[method] for method in self.paper_methods)}."
            )
        return Table(
            self.title,
            COLUMNS,
            rows,
            [
                f"Percent, mean ± standard error over n seeds, of each seed's mean over: {over}. A difference is the "
                "variant minus DropTop, paired by seed, with its 95% interval and two-sided p-value; **bold** where "
                f"p < 0.05 (in the CSV also corrected, p_holm). Worse by: in percent of {self.divisor}'s own figure, "
                "as the paper's is.",
                *notes,
            ],
            self.suffix,
        )

    @property
    def divisor(self) -> str:
        """Return in words what "worse by" is divided by."""
        return "the variant" if self.percent_of == "variant" else WHOLE

    def common_sets(self, results: CellResults) -> list[tuple[str, str]]:
        """Return those of `sets` that every method and variant was measured on; all of a stream that has none there."""
        sets = []
        for data in results.scope.data:
            cells = [
                cell | {"data": data, "method": method}
                for cell in self.variants.values()
                for method in results.scope.methods
            ]
            measured = [results.test_sets(cell) for cell in cells]
            common = [test for test in measured[0] if all(test in tests for tests in measured)]
            known = [test for name, test in self.sets if name == STANDS_FOR.get(data, data)]
            sets += [(data, test) for test in common if test in known or not known]
        return sets

    def row(self, key: tuple[str, str, str], series: Series, whole: Series, quotes: bool) -> list[Value]:
        """Return one figure of a variant: quoted if it may be, measured, compared with DropTop (`whole`), judged."""
        method, variant, figure = key
        paper, best = (self.paper(method, name, figure) if quotes else None for name in (variant, WHOLE))
        effect = difference(whole, series)
        if variant == WHOLE:
            return [paper, None, None, mean(series), len(series), None, None, ""]
        loss = gap(best, paper)
        quoted_loss: list[Value] = [None, None] if loss is None else [f"{loss.mean:+.1f}", Percent(self.worse(*key))]
        return [
            paper,
            *quoted_loss,
            mean(series),
            effect.n,
            effect,
            Percent(self.percent(series, whole, figure)),
            "" if loss is None else judge(loss, effect),
        ]

    def percent(self, series: Series, whole: Series, figure: str) -> float | None:
        """Return by how many percent the variant is worse than DropTop (`whole`); None where one has no results."""
        variant, droptop = mean(series).mean, mean(whole).mean
        if variant is None or droptop is None:
            return None
        loss = variant - droptop if figure == "F_last" else droptop - variant
        base = variant if self.percent_of == "variant" else droptop
        return 100 * loss / base if base else None
