"""`droptop report`, and the command that the page says makes the same again."""

import shlex
import sys

import pytest

from droptop.cli.main import main
from droptop.cli.report import command as command_of
from droptop.cli.run_flags import parse
from droptop.runs.config import configure
from droptop.runs.requests import load

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from droptop.report import page

from plans import plan


def test_the_command_writes_a_file(comparison, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["report", str(comparison), "--out", str(tmp_path / "page.html"), "--open"]) == 0
    assert opened == [(tmp_path / "page.html").as_uri()]
    assert capsys.readouterr().out == f"report in {tmp_path / 'page.html'}\n"
    assert 500_000 < (tmp_path / "page.html").stat().st_size < 3e6


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["nowhere"], "is not a folder"),
        (["."], "config.toml"),
        ([".", "--port", "80"], "--port"),
        ([".", "--watch", "--out", "x.html"], "--out"),
        ([], "FOLDER"),
    ],
)
def test_what_cannot_be_reported_is_refused(args, word, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *args]) == 2
    errors = capsys.readouterr().err
    assert word in errors
    assert len(errors.splitlines()) == 1


def test_a_missing_extra_is_named(comparison, capsys, monkeypatch):
    monkeypatch.setattr("droptop.report.page", page)  # put back afterwards, as its modules are
    for name in [name for name in sys.modules if name.startswith("droptop.report.page")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "altair", None)
    assert main(["report", str(comparison)]) == 2
    assert capsys.readouterr().err == "droptop: the report needs altair: pip install 'droptop[report]'\n"


def test_the_pages_command_parses_to_the_same_config(comparison, tmp_path):
    words = shlex.split(command_of(comparison))
    assert words[:2] == ["droptop", "compare"]
    assert parse("compare", words[2:]).plan == load(comparison)
    odd = configure("fashion", "derpp", "fixed", drop_last=False, graphs=False, gamma=2.5, root=tmp_path)
    (tmp_path / "config.toml").write_text(plan(odd).toml())
    assert parse("run", shlex.split(command_of(tmp_path))[2:]).plan == plan(odd)


def test_the_pages_command_has_split_without_tasks(tmp_path):
    odd = configure("fashion", debias="none", tasks=2, class_order="random", split="0,1/2,3")  # as a file may say
    (tmp_path / "config.toml").write_text(plan(odd).toml())
    assert parse("run", shlex.split(command_of(tmp_path))[2:]).plan.arms["none"].stream.split == "0,1/2,3"
