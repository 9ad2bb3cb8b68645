"""What a recipe shows: tables, whose cells know what they are, and figures.

What the paper says and what was measured here never look alike: quoted columns are headed "paper", and their figures
are in italics.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from droptop.results.statistics import SIGNIFICANT, holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Kind = Literal["label", "quoted", "here", "verdict"]

# Notes that a table has where it quotes.
ITALICS = "*Italics* are quoted from the paper; everything else was measured here."
VERDICT = (
    "*Reproduced*: our paired difference lies on the paper's side of 0, its 95% interval excludes 0 and reaches the "
    "paper's difference. *Partly*: it excludes 0 on the paper's side but falls short of the paper's size; of a claim "
    "of several figures, some of them do. *Not reproduced*: otherwise. *No claim*: the paper's own difference is below "
    "two of its standard errors (the root of the sum of the squares of its two figures'), so that there is nothing to "
    "reproduce; among several figures, such a one does not count. *Cannot tell*: fewer than two seeds."
)
UNQUOTED = "Nothing is quoted or judged"  # as such a note begins
OF_QUOTES = (ITALICS, VERDICT, UNQUOTED)


@dataclass(frozen=True)
class Mean:
    """Mean ± standard error of n seeds; n is 0 where nothing was measured, None where it is not said."""

    mean: float | None
    error: float | None = None
    n: int | None = None
    fields: ClassVar[tuple[str, ...]] = ("mean", "error", "n")

    def __str__(self) -> str:
        if self.mean is None:
            return "-"
        return f"{self.mean:.1f}" + ("" if self.error is None else f" ± {self.error:.1f}")


@dataclass(frozen=True)
class Difference:
    """A paired difference with its 95% interval and two-sided p-value; p_holm is corrected for those of its table."""

    diff: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int = 0
    p_holm: float | None = None
    fields: ClassVar[tuple[str, ...]] = ("diff", "low", "high", "p", "n", "p_holm")

    def __str__(self) -> str:
        if self.diff is None:
            return "-"
        if self.low is None or self.high is None or self.p is None:
            return f"{self.diff:+.1f}"
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return f"{self.diff:+.1f} ({self.low:+.1f} to {self.high:+.1f}), {p}"

    @property
    def significant(self) -> bool:
        return self.p is not None and self.p < SIGNIFICANT


@dataclass(frozen=True)
class Percent:
    """A share or a relative improvement."""

    value: float | None
    fields: ClassVar[tuple[str, ...]] = ("value",)

    def __str__(self) -> str:
        return "-" if self.value is None else f"{self.value:.1f}%"


Value = str | int | Mean | Difference | Percent | None


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind = "here"


@dataclass(frozen=True)
class Table:
    """Written as NAME.md, NAME.csv and NAME.tex, or NAME-SUFFIX where a recipe has several."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = ()  # below it: what its words mean, what is missing
    suffix: str = ""

    def corrected(self) -> "Table":
        """The same with every difference's p-value corrected for their number (Holm, 1979)."""
        places = [
            (r, c) for r, row in enumerate(self.rows) for c, value in enumerate(row) if isinstance(value, Difference)
        ]
        rows = [list(row) for row in self.rows]
        results = [rows[r][c] for r, c in places]
        ps = holm([value.p if isinstance(value, Difference) else None for value in results])
        for (r, c), value, p in zip(places, results, ps):
            assert isinstance(value, Difference)
            rows[r][c] = replace(value, p_holm=p)
        return replace(self, rows=rows)

    def measured(self) -> "Table":
        """The same without what the paper says, and what is said of that."""
        places = [place for place, column in enumerate(self.columns) if column.kind in ("label", "here")]
        return replace(
            self,
            columns=[self.columns[place] for place in places],
            rows=[[row[place] for place in places] for row in self.rows],
            notes=[note for note in self.notes if not note.startswith(OF_QUOTES)],
        )


@dataclass(frozen=True)
class Figure:
    """Written as NAME.png and NAME.pdf, or NAME-SUFFIX. `draw` makes the matplotlib figure, in the usual style."""

    title: str
    draw: Callable[[], "Drawing"]
    notes: Sequence[str] = ()
    suffix: str = ""


Output = Table | Figure
