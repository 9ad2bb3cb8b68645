"""Results in Python: still dicts, shown as the table that the command prints, and as HTML in a notebook."""

import json
import shutil
from html.parser import HTMLParser

import pytest
from rich.table import Table
from rich.text import Text

import droptop
from droptop import api
from droptop.report.shown import Comparison, RunResult, html_table


class Reader(HTMLParser):
    """The cells of HTML tables, row by row; everything that was opened must be closed."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.rest = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data
        else:
            self.rest.append(data)


@pytest.fixture
def found(comparison):
    return Comparison(json.loads((comparison[0] / "compare.json").read_text()))


def test_resume_returns_the_dict_that_compare_json_holds(found, comparison, tmp_path):
    resumed = droptop.resume(shutil.copytree(comparison[0], tmp_path / "copy"))
    assert type(resumed) is Comparison
    assert resumed == found == json.loads(json.dumps(resumed))


def test_functions_return_what_shows_itself(found, tmp_path, monkeypatch):
    trained = {"compare": dict(found), "run": found["arms"]["none"]}
    monkeypatch.setattr(api, "carry_on", lambda plan, out, observer: trained[plan.command])
    few = {"limit": 64, "width": 4, "seeds": 1}
    for function, kind in ((droptop.run, RunResult), (droptop.compare, Comparison)):
        shown = function("fashion", "er", "mixstyle", out=tmp_path / function.__name__, **few)
        assert type(shown) is kind
        assert shown == trained[function.__name__]


def test_a_comparison_prints_the_table_of_the_command(found, comparison, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")  # as the command in a pipe
    table = [line.rstrip() for line in str(found).splitlines() if line[:1] in "┏┃┡│├└"]
    assert len(table) > 10
    assert [line.rstrip() for line in comparison[1].splitlines() if line in table] == table


def test_a_comparison_prints_its_differences_and_what_they_say(found, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    printed = str(found)
    assert printed == repr(found)
    assert all(len(line) <= 200 for line in printed.splitlines())
    for effects in found["effects"]["droptop"].values():
        assert f"{round(effects['A_avg']['diff'], 1) + 0:+.1f}" in printed
    for sentence in found.sentences():
        assert " ".join(sentence.split()) in " ".join(printed.split())


def test_html_has_the_rows_of_the_table(found):
    read = Reader(found._repr_html_())
    head, *rows = read.rows
    table = found.table()
    assert head == [str(column.header) for column in table.columns]
    assert len(rows) == table.row_count
    assert {len(row) for row in rows} == {len(head)}
    said = " ".join(cell for row in rows for cell in row)
    for effects in found["effects"]["droptop"].values():
        assert f"{round(effects['A_avg']['diff'], 1) + 0:+.1f}" in said
    assert set(found.sentences()) <= set(read.rest)


def test_a_run_shows_every_figure(found, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = RunResult(found["arms"]["none"])
    mean = sum(result["tests"]["biased"]["A_last"]) / 2
    assert f"{mean:.1f}" in repr(result)
    assert f"{mean:.1f}" in " ".join(cell for row in Reader(result._repr_html_()).rows for cell in row)


def test_names_are_text_in_html():
    """A class or an arm may be named like a tag, or like markup of rich."""
    table = Table("<b>", title="a & b")
    table.add_row(Text("[red]<script>"))
    table.add_row("[bold]1.5[/bold]")
    read = Reader(html_table(table))
    assert read.rows == [["<b>"], ["[red]<script>"], ["[bold]1.5[/bold]"]]
    assert read.rest == ["a & b"]
