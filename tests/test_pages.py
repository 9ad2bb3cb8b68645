"""The pages as they stand in the repository: whole, up to date, and with links that lead somewhere."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import droptop
from droptop import configure
from droptop.cli.main import USAGE
from droptop.options import flag_of, flatten

REPOSITORY = Path(__file__).parent.parent
PAGES = sorted((REPOSITORY / "docs").glob("*.md"))
LINKING = [*PAGES, *sorted((REPOSITORY / "docs/evidence").glob("*.md")), *sorted(REPOSITORY.glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.fixture(scope="module")
def pages():
    """The script that writes the pages."""
    sys.path.insert(0, str(REPOSITORY / "scripts"))
    yield importlib.import_module("pages")
    sys.path.remove(str(REPOSITORY / "scripts"))


def text_of(page):
    """The text of a page without comments and blocks of code."""
    return re.sub(r"<!--.*?-->|^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_what_the_script_writes(page, pages):
    assert page.read_text() == pages.written(page.read_text()), "make pages writes it anew"


def test_no_page_is_a_shell():
    for page in PAGES:
        assert len([line for line in text_of(page).splitlines() if line.strip()]) >= 20, page
        assert not re.search(r"^::: |\"include\"|\"code\"|^--8<--", page.read_text(), re.MULTILINE), page


def test_what_is_written_is_of_the_code():
    """By hand, for what the script itself cannot tell: whether it left something out."""
    command_line, python = ((REPOSITORY / f"docs/{name}.md").read_text() for name in ("command-line", "python"))
    assert USAGE in command_line
    rows = re.findall(r"^\| `(--[\w.-]+)` \| (?:`(.*?)`)? \| (.+) \|$", command_line, re.MULTILINE)
    options = flatten(configure("fashion-sticker", "er", "droptop+mixstyle+decouple+colour+randconv+rsc+poe"))
    assert sorted(flag for flag, *_ in rows) == sorted(map(flag_of, options))
    defaults = {flag_of(path): value for path, value in flatten(configure()).items()}
    for flag, value, _ in rows:
        if flag in defaults:
            told = defaults[flag]
            assert value == ("" if told is None else str(told).lower() if isinstance(told, bool) else str(told))
    shown = set(re.findall(r"^### (\w+)$", python, re.MULTILINE))
    assert set(droptop.__all__) - shown == {"Batch", "METHODS", "STREAMS", "Source"}
    for name in ("compare", "make_learner", "attach", "drop_mask"):
        entry = python[python.index(f"### {name}\n") :].split("<!-- end -->")[0]
        for parameter in inspect.signature(getattr(droptop, name)).parameters:
            assert re.search(rf"^- `(\*\*)?{parameter}`: \w", entry, re.MULTILINE), (name, parameter)


def anchors(page):
    """The places of a page that a link may lead to, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere_on_github(page):
    for target, place in LINK.findall(text_of(page)):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), (target, place)
        assert not place or place in anchors(path), (target, place)
