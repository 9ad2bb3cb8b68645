"""What a recipe shows: tables, whose cells are typed values, and figures.

What the paper says and what was measured here never look alike: quoted columns are headed "paper", and their numbers
are in italics.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from droptop.results.statistics import SIGNIFICANT, holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Kind = Literal["label", "quoted", "here", "verdict"]

# Notes of a table that quotes the paper.
ITALICS = "*Italics* are quoted from the paper; everything else was measured here."
VERDICT = (
    "*Reproduced*: our paired difference lies on the paper's side of 0, its 95% interval excludes 0 and reaches the "
    "paper's difference. *Partly*: it excludes 0 on the paper's side but falls short of the paper's size; of a claim "
    "of several figures, some of them do. *Not reproduced*: otherwise. *No claim*: the paper's own difference is below "
    "two of its standard errors (the root of the sum of the squares of its two figures'), so that there is nothing to "
    "reproduce; among several figures, such a one does not count. *Cannot tell*: fewer than two seeds."
)
UNQUOTED = "Nothing is quoted or judged"  # the start of the note in their place
NOTES_ON_QUOTES = (ITALICS, VERDICT, UNQUOTED)


@dataclass(frozen=True)
class Mean:
    """Hold mean and standard error over n seeds; n is 0 where nothing was measured, None where the paper gives none."""

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
    """Hold a paired difference, its 95% interval and two-sided p-value; p_holm is corrected for all of its table."""

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
        """Return whether p is below 0.05, before correction."""
        return self.p is not None and self.p < SIGNIFICANT


@dataclass(frozen=True)
class Percent:
    """Hold a share or a relative improvement, in percent."""

    value: float | None
    fields: ClassVar[tuple[str, ...]] = ("value",)

    def __str__(self) -> str:
        return "-" if self.value is None else f"{self.value:.1f}%"


Value = str | int | Mean | Difference | Percent | None


@dataclass(frozen=True)
class Column:
    """Name a column and say what its cells are: labels, quoted from the paper, measured here, or verdicts."""

    name: str
    kind: Kind = "here"


@dataclass(frozen=True)
class Table:
    """Hold a table, which is written as NAME.md, NAME.csv and NAME.tex, or NAME-SUFFIX where a recipe has several."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = ()  # below it: what its words mean, what is missing
    suffix: str = ""

    def corrected(self) -> "Table":
        """Return the table with p_holm of every difference: p corrected for their number (Holm, 1979)."""
        differences = {
            (r, c): value
            for r, row in enumerate(self.rows)
            for c, value in enumerate(row)
            if isinstance(value, Difference)
        }
        rows = [list(row) for row in self.rows]
        corrected = holm([value.p for value in differences.values()])
        for ((r, c), value), p in zip(differences.items(), corrected):
            rows[r][c] = replace(value, p_holm=p)
        return replace(self, rows=rows)

    def without_paper(self) -> "Table":
        """Return the table without quoted columns, verdicts and the notes on them."""
        places = [place for place, column in enumerate(self.columns) if column.kind in ("label", "here")]
        return replace(
            self,
            columns=[self.columns[place] for place in places],
            rows=[[row[place] for place in places] for row in self.rows],
            notes=[note for note in self.notes if not note.startswith(NOTES_ON_QUOTES)],
        )


@dataclass(frozen=True)
class Figure:
    """Hold a figure, which is written as NAME.png and NAME.pdf, or NAME-SUFFIX; `draw` returns a matplotlib figure."""

    title: str
    draw: Callable[[], "Drawing"]
    notes: Sequence[str] = ()
    suffix: str = ""


Output = Table | Figure
