import io
import re

import pytest
from rich.console import Console

from droptop.data import image_cache as cache
from droptop.report import file_progress as bars
from droptop.report.file_progress import Bar, Lines, count, decoding


def terminal(width=80):
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)


def test_lines_come_seldom(monkeypatch, capsys):
    clock = iter(range(100))
    monkeypatch.setattr(bars.time, "monotonic", lambda: next(clock))
    lines = Lines(Console(stderr=True), "images")
    for done in range(1, 26):
        lines(done, 25, "training")
    lines(1, 1, "test")
    assert capsys.readouterr().err.splitlines() == [
        "training: 1 of 25 images",
        "training: 11 of 25 images",
        "training: 21 of 25 images",
        "training: 25 of 25 images",
        "test: 1 of 1 images",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_a_bar_fits_and_ends(width):
    console = terminal(width)
    bar = Bar(console, "files")
    bar(0, 3, "a/very/long/path/" * 10 + "[red]")
    bar(1, 3, "[red]")
    assert bar.progress is not None
    bar(3, 3, "all")
    assert bar.progress is None
    shown = [line for line in re.split(r"[\r\n]|\x1b\[\S*?[a-zA-Z]", console.file.getvalue()) if line]
    assert "3 of 3 files" in shown[-1]
    assert max(map(len, shown)) <= width
    bar(0, 0, "an unknown length")
    bar.close()
    assert bar.progress is None


@pytest.mark.parametrize(
    ("unit", "total", "text"),
    [
        ("images", 12000, "3,000 of 12,000 images"),
        ("files", 0, "3,000 files"),
        ("bytes", 12000, "0.0 of 0.0 MB"),
        ("bytes", 0, "0.0 MB"),
    ],
)
def test_counts_are_written_by_their_unit(unit, total, text):
    assert count(3000, total, unit) == text


def test_decoding_is_reported_inside_the_context_only():
    with decoding():
        assert isinstance(cache.progress.get(), Lines)
    assert cache.progress.get() is cache.silent
