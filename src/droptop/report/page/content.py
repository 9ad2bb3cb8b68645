"""What a page is made of, before it is drawn."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = list[Any]  # of a table of numbers: text, numbers, None


class Chart(NamedTuple):
    about: str  # what a person who does not see it is told
    spec: dict[str, Any]  # Vega-Lite, over the rows of its section


@dataclass
class Section:
    """Charts that share a heading and a table of numbers, which can be downloaded."""

    name: str  # of its anchor and its CSV file
    title: str
    note: str
    columns: list[str]
    rows: list[Row]
    charts: list[Chart]
    across: int = 1  # charts beside each other where there is room
    key: dict[str, str] = field(default_factory=dict)  # colours of arms, by name


class Table(NamedTuple):
    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass
class Page:
    kind: str  # run, comparison or study
    title: str
    headline: str
    findings: list[str]
    command: str  # that makes the same again
    config: str
    environment: dict[str, Any]
    answer: Section | None = None
    progress: str = ""  # how far it is, unless it is finished
    sections: list[Section] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    attention: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)  # what was left out to keep the page small
