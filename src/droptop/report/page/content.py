"""The parts of a page, before it is drawn."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from droptop.report.next_steps import Step

Row = list[Any]  # of numbers behind a chart: text, numbers, None


class Chart(NamedTuple):
    """Hold one chart."""

    about: str  # its description for screen readers
    spec: dict[str, Any]  # Vega-Lite, over the rows of its section


@dataclass
class Section:
    """Hold charts that share a heading and a table of numbers, which the reader can download."""

    name: str  # of its anchor and of its CSV file
    title: str
    note: str
    columns: list[str]
    rows: list[Row]
    charts: list[Chart]
    across: int = 1  # charts side by side where there is room
    key: dict[str, str] = field(default_factory=dict)  # colours of arms, by name


class Table(NamedTuple):
    """Hold a table of text."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str


@dataclass
class Page:
    """Hold all that a page says."""

    kind: str  # run, comparison, study or tuning
    title: str
    headline: str
    findings: list[str]
    command: str  # makes the same again
    config: str
    environment: dict[str, Any]
    diagnosis: list[str] = field(default_factory=list)  # what the arm does that others are compared with
    steps: list[Step] = field(default_factory=list)  # what to try next
    answer: Section | None = None
    progress: str = ""  # how far it is; empty once it is finished
    sections: list[Section] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    attention: dict[str, Any] | None = None
    unfit: list[str] = field(default_factory=list)  # what is not what was written, and left out
    notes: list[str] = field(default_factory=list)  # what was left out to keep the page small, or went wrong
