"""What makes a name harmless wherever it is shown: a function per kind of output.

Names are those of classes, files, runs, test sets and options, and whatever an error repeats of them. They come from
other people's files: one may hold the escape sequences of a terminal, letters that turn the direction of writing,
another line, HTML, a formula of a spreadsheet. All of that is shown as the text that it is.

    visible        a line of a terminal, a log or an error
    readable       text of several lines
    html           HTML; the page's templates escape by themselves, and take `readable`
    in_json        a line of JSON
    in_script      JSON within HTML
    csv_cell       a cell of a CSV file
    markdown       Markdown; `markdown_cell` in a table
    latex          LaTeX

Pictures take `readable` as well, and no formulas (`figures/style.py`). `system/terminal.py` has what prints.
"""

import json
import re
from html import escape
from typing import Any

# Control characters, those that turn the direction of writing or show nothing, and halves of characters. What joins
# letters (U+200C, U+200D) stays: some scripts need it.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
FORMULA = re.compile("[=+@\t\r\n＝＋－＠-]")  # what a spreadsheet calculates begins so
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
LATEX = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "<": "$<$",
    ">": "$>$",
}
LATEX_LETTERS = re.compile("|".join(map(re.escape, LATEX)))


def visible(text: str) -> str:
    """Return a text as one line without characters that steer a terminal: they become what Python writes for them."""
    return UNSEEN.sub(lambda match: named(match[0]), text)


def readable(text: str) -> str:
    """Return a text likewise, with its lines and tabs as they are."""
    return UNSEEN.sub(lambda match: match[0] if match[0] in "\n\t" else named(match[0]), text)


def named(letter: str) -> str:
    """Return what Python writes for a character that is not to be seen: \\x1b, \\u202e."""
    number = ord(letter)
    code = f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
    return SHORT.get(letter, code)


def html(text: str) -> str:
    """Return a text as HTML, also within quotes."""
    return escape(readable(text))


def in_json(value: Any) -> str:
    """Return a value as JSON, in one line of ASCII without control characters."""
    return json.dumps(value, allow_nan=False).replace("\x7f", "\\u007f")  # the one that JSON leaves


def in_script(value: Any) -> str:
    """Return a value as JSON for a script element, which no text in it can end."""
    return in_json(value).replace("<", "\\u003c")


def csv_cell(value: Any) -> Any:
    """Return a value as a cell of a CSV file, in one line; text that a spreadsheet would calculate begins with a quote.

    Numbers stay numbers, and so does text that is one.
    """
    if not isinstance(value, str):
        return value
    is_formula = FORMULA.match(value) is not None and NUMBER.fullmatch(value) is None
    return f"'{visible(value)}" if is_formula else visible(value)


def markdown(text: str) -> str:
    """Return a text as one line of Markdown, which may hold HTML: this has none."""
    return re.sub("<(?=[a-zA-Z/!?])", "&lt;", visible(text))


def markdown_cell(text: str) -> str:
    """Return a text as a cell of a table in Markdown."""
    return markdown(text).replace("|", r"\|")


def latex(text: str) -> str:
    """Return a text in one line, with what LaTeX would read as a command escaped."""
    return LATEX_LETTERS.sub(lambda match: LATEX[match[0]], visible(text))
