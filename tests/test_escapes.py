"""A function per kind of output: what each must never let through, and what it must leave as it is."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droptop import BadRequest
from droptop.escapes import csv_cell, html, in_json, in_script, latex, markdown_cell, readable, visible

from hostile import PIECES, names, steering

NAME = names(1).map("".join)


@given(NAME)
def test_a_line_stays_a_line(name):
    for text in (visible(name), str(BadRequest(name)), in_json(name), markdown_cell(name), latex(name)):
        assert not steering(text)
        assert "\n" not in text
    assert readable(name).count("\n") == name.count("\n")
    assert visible(visible(name)) == visible(name)


@pytest.mark.parametrize(
    "name", ["a dog, 3 years", "Bär", "猫", "क्\u200dष", "👩\u200d🔬", "folder:/a b/c", "[x]", "a\\nb"]
)
def test_what_people_write_is_left_alone(name):
    assert visible(name) == readable(name) == name
    assert html(name) == name


def test_what_is_not_seen_is_written_as_python_does():
    assert visible("\x1b[1m \u202e\U000e0041\n") == "\\x1b[1m \\u202e\\U000e0041\\n"
    assert readable("a\n\tb\r") == "a\n\tb\\r"


class Text(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@given(NAME)
def test_html_is_text_between_tags_and_in_quotes(name):
    page = Text(f'<b title="{html(name)}">{html(name)}</b>')
    assert page.tags == [("b", {"title": readable(name)})]
    assert page.text == readable(name)


@given(st.recursive(NAME, lambda inner: st.dictionaries(NAME, inner) | st.lists(inner), max_leaves=5))
def test_json_in_a_script_is_the_value_and_ends_nothing(value):
    page = Text(f'<script type="application/json">{in_script(value)}</script><i>')
    assert [tag for tag, _ in page.tags] == ["script", "i"]
    assert json.loads(page.text) == json.loads(in_json(value)) == value
    assert in_script(value).isascii()


@given(st.lists(st.tuples(NAME, st.floats(allow_nan=False), NAME), min_size=1))
def test_a_spreadsheet_calculates_nothing_and_numbers_stay_numbers(rows):
    file = io.StringIO(newline="")
    csv.writer(file).writerows(map(csv_cell, row) for row in rows)
    read = list(csv.reader(io.StringIO(file.getvalue(), newline="")))
    assert len(read) == len(rows) == file.getvalue().count("\n")
    for (name, number, _), cells in zip(rows, read):
        assert float(cells[1]) == number
        for cell in (cells[0], cells[2]):
            assert not steering(cell)
            assert cell[:1] not in ("=", "+", "-", "@", "＝") or float(cell) is not None
        assert cells[0].removeprefix("'") == visible(name).removeprefix("'")


@pytest.mark.parametrize(
    ("text", "cell"),
    [("-1", "-1"), ("-1.5e-3", "-1.5e-3"), ("-1+1", "'-1+1"), ("-", "'-"), ("+x", "'+x"), (-2.5, -2.5)],
)
def test_only_a_number_may_begin_as_a_formula_does(text, cell):
    assert csv_cell(text) == cell


@pytest.mark.parametrize("name", PIECES)
def test_latex_has_no_command_but_those_that_write_a_letter(name):
    written = re.sub(
        r"\\(textasciitilde|textasciicircum|textbackslash)\{\}|\$(\\pm|<|>)\$|\\[&%$#_{}]", "", latex(name)
    )
    assert not set(written) & set("&%$#_{}~^\\<>")


def test_a_cell_of_markdown_is_one_cell_without_html():
    assert markdown_cell("a|b <script> < 0.001\n") == r"a\|b &lt;script> < 0.001\n"
