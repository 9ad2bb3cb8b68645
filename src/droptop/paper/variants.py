"""The other table of the paper: DropTop against variants of itself, perhaps averaged over test sets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from droptop.paper.cell_results import CellResults, Series, average, difference, mean
from droptop.paper.claims import METHODS, STANDS_FOR, about, set_name, stand_in_notes, unquoted
from droptop.paper.recipe import CellOptions
from droptop.paper.tables import ITALICS, UNQUOTED, VERDICT, Column, Mean, Percent, Table, Value
from droptop.paper.verdict import gap, word

WHOLE = "DropTop"  # the variant that the others are held against
EVERY = "mean"  # of all methods, among them
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
    """Variants by name as options of their cells, the test sets they are averaged over, and what the paper says; which
    is quoted where it is a mean over the same test sets and, of all methods, over the same methods."""

    title: str
    variants: dict[str, CellOptions]
    sets: Sequence[tuple[str, str]]
    figures: Sequence[str]
    paper: Callable[[str, str, str], Mean | None]  # by method (or EVERY), variant, figure
    worse: Callable[[str, str, str], float | None]  # the same: by how many percent worse than DropTop
    percent_of: Literal["variant", "droptop"]  # what the paper divides by
    paper_sets: Sequence[tuple[str, str]]
    paper_methods: Sequence[str]
    suffix: str = ""  # of its files

    def table(self, results: CellResults) -> Table:
        methods = results.scope.methods
        used = self.shared(results)
        same_sets, same_methods = about(used, self.paper_sets), set(methods) == set(self.paper_methods)
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
                    own, whole = series[method, variant, figure], series[method, WHOLE, figure]
                    rows.append(
                        [
                            METHODS.get(method, method) if number == place == 0 else "",
                            variant if place == 0 else "",
                            figure,
                            *self.row(
                                (method, variant, figure),
                                own,
                                whole,
                                quotes=same_sets and (method != EVERY or same_methods),
                            ),
                        ]
                    )
        over = ", ".join(set_name(*one) for one in used) or "nothing"
        notes = [unquoted(used, self.paper_sets)]
        if same_sets:
            notes = [ITALICS, VERDICT, *stand_in_notes(results.scope.data)]
        if same_sets and len(methods) > 1 and not same_methods:
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
                f"p < 0.05 (in the CSV also corrected, p_holm). Worse by: in percent of {self.divisor}'s own figure, as "
                "the paper's is.",
                *notes,
            ],
            self.suffix,
        )

    @property
    def divisor(self) -> str:
        return "the variant" if self.percent_of == "variant" else WHOLE

    def shared(self, results: CellResults) -> list[tuple[str, str]]:
        """The test sets that there is something of for every method and variant; all of a stream that is not known."""
        sets = []
        for data in results.scope.data:
            cells = [
                cell | {"data": data, "method": method}
                for cell in self.variants.values()
                for method in results.scope.methods
            ]
            there = [test for test in results.tests(cells[0]) if all(test in results.tests(cell) for cell in cells)]
            known = [test for name, test in self.sets if name == STANDS_FOR.get(data, data)]
            sets += [(data, test) for test in there if test in known or not known]
        return sets

    def row(self, key: tuple[str, str, str], own: Series, whole: Series, quotes: bool) -> list[Value]:
        """One variant: as the paper has it if that may be quoted, as measured, and the word."""
        method, variant, figure = key
        paper, best = (self.paper(method, name, figure) if quotes else None for name in (variant, WHOLE))
        effect = difference(whole, own)
        if variant == WHOLE:
            return [paper, None, None, mean(own), len(own), None, None, ""]
        loss = gap(best, paper)
        said: list[Value] = [None, None] if loss is None else [f"{loss.mean:+.1f}", Percent(self.worse(*key))]
        return [
            paper,
            *said,
            mean(own),
            effect.n,
            effect,
            Percent(self.percent(own, whole, figure)),
            "" if loss is None else word(loss, effect),
        ]

    def percent(self, own: Series, whole: Series, figure: str) -> float | None:
        """By how many percent the variant is worse than DropTop."""
        a, b = mean(own).mean, mean(whole).mean
        if a is None or b is None:
            return None
        loss = a - b if figure == "F_last" else b - a
        base = a if self.percent_of == "variant" else b
        return 100 * loss / base if base else None
