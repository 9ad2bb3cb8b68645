"""The help of every command: all options, under their headings, in words, in a pipe and on a narrow screen."""

import re
from typing import get_type_hints

import pytest

from droptop import configure
from droptop.cli import bench, data, export, help, main, paper, predict, report, results, run, status, sweep
from droptop.debias import MEMBERS
from droptop.methods import METHODS
from droptop.options import flag_of, flatten
from droptop.streams import STREAMS

COMMANDS = {
    "resume": run.ResumeOptions,
    "predict": predict.PredictOptions,
    "export": export.ExportOptions,
    "bench": bench.BenchOptions,
    "sweep": sweep.SweepOptions,
    "status": status.StatusOptions,
    "results": results.ResultsOptions,
    "report": report.ReportOptions,
    "paper table1": paper.PaperOptions,
    "paper list": data.ListOptions,
    "data list": data.ListOptions,
    "data check": data.CheckOptions,
    "data download": data.DownloadOptions,
    "data variants": data.VariantsOptions,
    "data sheet": data.SheetOptions,
}
OF_COMPARE = ["--out", "--config", "--against", "--equal-cost", "--trust"]
NAMED = [
    {},
    {"method": "l2p", "debias": "robust"},
    {"data": "split-cifar100", "method": "aser", "debias": "mixstyle+rsc"},
    {"data": "fashion-colour", "method": "dualprompt", "debias": "decouple"},
]


def shown(words, capsys, monkeypatch, columns=80):
    """What a command prints for these words, which ask for help."""
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as end:
        main(words)
    said = capsys.readouterr()
    assert (end.value.code, said.err) == (0, "")
    return said.out


def flags_of(page):
    """The flags of a page by their heading."""
    found, heading = {}, ""
    for line in page.splitlines():
        if re.fullmatch(r"\w+:", line):
            heading = line[:-1]
        elif match := re.match(r"  (--[^ ]+)", line):
            found.setdefault(heading, []).append(match[1])
    return found


def tokens_of(names):
    return [token for name, value in names.items() for token in (f"--{name}", value)]


def heading_of(path):
    head, dot, _ = path.partition(".")
    return "run" if not dot else head if head in ("stream", "net", "learner") else "debiasing"


@pytest.mark.parametrize("names", NAMED, ids=str)
def test_every_option_has_its_place_once(names, capsys, monkeypatch):
    found = flags_of(shown(["compare", *tokens_of(names), "--help-all"], capsys, monkeypatch))
    expected = {"run": [*OF_COMPARE]}
    for path in flatten(configure(**names)):
        expected.setdefault(heading_of(path), []).append(flag_of(path))
    assert {heading: sorted(flags) for heading, flags in found.items()} == {
        heading: sorted(flags) for heading, flags in expected.items()
    }
    order = ["run", "stream", "net", "learner", "debiasing"]
    assert list(found) == [heading for heading in order if heading in found]


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize("names", NAMED, ids=str)
def test_the_short_page_is_short_and_of_the_same_options(command, names, capsys, monkeypatch):
    short, every = (shown([command, *tokens_of(names), word], capsys, monkeypatch) for word in ("--help", "--help-all"))
    assert len(short.splitlines()) <= 52 < 100 < len(every.splitlines())
    for heading, flags in flags_of(short).items():
        assert set(flags) <= set(flags_of(every)[heading])
    assert {"--out", "--data", "--method", "--debias", "--seeds"} <= set(flags_of(short)["run"])
    assert "--help-all" in short
    assert ("--weights" in short) == (names.get("method") in ("l2p", "dualprompt"))


def test_defaults_are_those_of_what_is_named(capsys, monkeypatch):
    names = {"data": "split-cifar100", "method": "derpp", "debias": "robust"}
    page = " ".join(shown(["run", *tokens_of(names), "--help-all"], capsys, monkeypatch).split())
    for path, value in flatten(configure(**names)).items():
        text = re.search(rf" {re.escape(flag_of(path))} (.*?)(?= --[a-z]|$)", page)[1]
        if path in names:
            assert f"Default: {configure().options.__dataclass_fields__[path].default}." in text
        elif value is True:
            assert "On by default" in text, path
        elif value not in (None, False):
            assert f"Default: {value}." in text, path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_its_options(command, capsys, monkeypatch):
    pages = [shown([*command.split(), word], capsys, monkeypatch) for word in ("-h", "--help", "--help-all")]
    assert len(set(pages)) == 1
    flags = {flag_of(name) for name, positional in positional_fields(COMMANDS[command]).items() if not positional}
    assert set(flags_of(pages[0]).get("", ())) == flags
    assert pages[0].startswith(f"usage: droptop {command} ")


def positional_fields(kind):
    """Which fields of a dataclass are options without a flag."""
    return {
        name: "POSITIONAL" in repr(getattr(hint, "__metadata__", "")).upper()
        for name, hint in get_type_hints(kind, include_extras=True).items()
    }


@pytest.mark.parametrize("columns", [48, 80, 200])
def test_no_line_is_wider_than_the_screen(columns, capsys, monkeypatch):
    for words in (["compare", "--help-all"], ["bench", "--help"], ["run", "--data", "fashion-colour", "--help-all"]):
        for line in shown(words, capsys, monkeypatch, columns).splitlines():
            assert len(line) <= min(columns, 100) or len(line.split()) <= 2


def every_option():
    """The options of everything that can be named, and of every command."""
    for kind in [*COMMANDS.values(), type(configure().options)]:
        yield from help.options_of(kind)
    for kind in [
        *(stream.config for stream in STREAMS.values()),
        *(kind for method in METHODS for kind in parts_of(method)),
        *(member.config_type for member in MEMBERS.values()),
    ]:
        yield from help.options_of(kind, kind())


def parts_of(method):
    config = configure(method=method)
    return type(config.learner), type(config.net)


def test_every_option_is_told_of_in_words():
    """A default that is None is in its own text; 'per' where each of something is meant."""
    options = list(every_option())
    assert len(options) > 200
    for option in options:
        assert option.about[:1].isupper() or option.about.startswith(("p-value", "cifar10")), option
        assert option.about.endswith("."), option
        assert "None" not in option.usage + option.about, option
        assert not re.search(r"\b(samples|steps|classes|seeds|images|batches|tasks) an? ", option.about.lower()), option
        told = re.search(r"[Dd]efault|Required|0 (means|records|:)", option.about)
        assert told or not option.has_flag or " " not in option.usage, option


def test_options_of_a_file_of_ones_own_are_told_of(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom droptop import Learner, LearnerConfig\n\n"
        "@dataclass(frozen=True)\nclass MineConfig(LearnerConfig):\n"
        '    zeal: float = 0.25\n    """How eagerly it learns,\n    in percent."""\n    quiet: int = 3\n\n'
        "class Mine(Learner):\n    config_type = MineConfig\n"
    )
    page = shown(["run", "--method", str(tmp_path / "mine.py"), "--help-all"], capsys, monkeypatch)
    assert re.search(r"^  --zeal NUMBER +How eagerly it learns, in percent. Default: 0.25.$", page, re.MULTILINE)
    assert re.search(r"^  --quiet N +Default: 3.$", page, re.MULTILINE)
