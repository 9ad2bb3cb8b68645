"""No name steers a terminal, becomes HTML or a formula, or breaks a picture: hostile ones through every output."""

import csv
import io
import json
import re
from contextlib import suppress
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from matplotlib.text import Text

from droptop import BadRequest, Samples, Spec, Stream, StreamConfig
from droptop.cli import predict
from droptop.cli.sweep import CellProgress
from droptop.escapes import readable, visible
from droptop.figures import style
from droptop.figures.accuracy import accuracy_after_tasks, accuracy_matrices
from droptop.figures.attention_maps import attention_maps
from droptop.figures.contact_sheet import contact_sheet
from droptop.figures.effects import arm_effects
from droptop.figures.heat_map import heat_map
from droptop.figures.over_steps import kappa_curves, kappa_map
from droptop.paper.write import csv_text, latex, markdown, rich_table
from droptop.report import sentences, tables
from droptop.report.compare_table import compare_table
from droptop.report.diagnosis_text import diagnosis_lines
from droptop.report.file_progress import Bar, Lines
from droptop.report.groups import group_lines
from droptop.report.seed_progress import Live, Plain
from droptop.report.shown import Comparison
from droptop.report.stress import answer, stress_tables
from droptop.report.study_table import study_table
from droptop.results.diagnosis import diagnose
from droptop.results.statistics import compare
from droptop.results.stress import stressed
from droptop.runs.config import configure
from droptop.runs.records import Maps, Moment
from droptop.sweeps.results import export
from droptop.system.terminal import Console, complain, note, say
from droptop.trackers.csv_file import CsvFile
from droptop.training.observer import Job, SeedProgress

from hostile import names, steering
from hostile_results import answers, bench_row, comparison, listing, loaded, paper_table, row, study

cli = import_module("droptop.cli.main")  # the room has a function of its name
OWN = re.compile(r"\x1b\[(\d+(;\d+)*)?m")  # rich's own colours
MOVES = re.compile(r"\x1b\[(\?25[lh]|[12]?[AK])|\r")  # of its bars
PER_ROUND = 25


def rounds(count):
    """Hypothesis draws the names of so many rounds; a round takes seconds, so none is repeated to shrink it."""
    return settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )


@given(names(PER_ROUND))
@rounds(1)
def test_names_through_every_output(tmp_path_factory, capfd, many):
    every_output(many, tmp_path_factory.mktemp("out"), capfd)


@pytest.mark.faults
def test_500_names_through_every_output(tmp_path_factory, capfd, fault_counts):
    seen = set()

    @given(names(PER_ROUND))
    @rounds(20)
    def through(many):
        every_output(many, tmp_path_factory.mktemp("out"), capfd)
        seen.update(many)

    through()
    assert len(seen) >= 400  # some are drawn twice
    fault_counts.add("hostile names", 20 * PER_ROUND)


def every_output(many, place, capfd):
    found = comparison(many)
    terminals(many, found, capfd)
    notebooks(found)
    files(many, place)
    figures(many, found)
    if find_spec("altair"):  # an extra
        the_page(many)


# -- Terminals --------------------------------------------------------------------------------------------------------


def terminals(many, found, capfd):
    arms, pair = sentences.readable(found), [*found["arms"]][:2]
    two = sentences.readable(compare({arm: found["arms"][arm] for arm in pair}))
    rows = stressed(study(many))
    for coloured in (True, False):
        said = io.StringIO()
        console = Console(file=said, force_terminal=True, width=100, color_system="truecolor" if coloured else None)
        for table in (
            compare_table(arms),
            compare_table(arms, 60),
            compare_table(two, 80),
            tables.run_table(found["arms"]["none"]),
            tables.cost_table({arm: {"passes": 1.0, "ms": 2.0} for arm in found["arms"]}),
            study_table([row(many, 0), row(many, 1)], many[:3], many[3]),
            tables.bench_table([bench_row(many)], many[0], 3),
            *stress_tables(rows),
            rich_table(paper_table(many)),
            listing(many),
        ):
            console.print(table)
        lines = [sentences.headline(arms), *sentences.answer(arms), *group_lines(found["arms"]), *answer(rows), *many]
        lines += diagnosis_lines(diagnose("none", found["arms"]["none"]), found["arms"]["none"])
        console.print(*lines, sep="\n", soft_wrap=True)
        predict.show(answers(many), loaded(many), console)
        told = said.getvalue()
        assert not steering(OWN.sub("", told) if coloured else told)
        said.truncate(0)
        said.seek(0)
        progress(many, console)
        assert not steering(MOVES.sub("", OWN.sub("", said.getvalue())))
        assert "\x1b]" not in said.getvalue()
    capfd.readouterr()
    for name in many:
        say(name)
        note(name)
        complain(name)
        say(answers(many)[0].line())
        cli.Notes()(UserWarning(name))
        before = capfd.readouterr()
        assert len(before.out.splitlines()) == 2
        assert len(before.err.splitlines()) == 3
        for error in (BadRequest(f"{name}: {name}"), OSError(2, "No such file", name), KeyboardInterrupt()):
            with suppress(UnicodeEncodeError):  # pathlib's errors may hold such names, ours may not
                error.add_note(name)
            cli.COMMANDS["fails"] = "main"
            cli.fails = raising(error)
            assert cli.main(["fails"]) in (1, 2, 130)
            assert cli.main([name]) == 2
            after = capfd.readouterr()
            assert len(after.err.splitlines()) == 2
            assert not steering(after.out + after.err + before.out + before.err)
    del cli.COMMANDS["fails"]
    plain_progress(many)
    assert not steering("".join(capfd.readouterr()))


def raising(error):
    def fails(args, console):
        raise error

    return fails


def progress(many, console):
    job = [Job(configure("fashion"), Path("/a") / "x", seed, name=name) for seed, name in enumerate(many[:4])]
    with Live(console) as live:
        live.begin(4)
        for each in job:
            live.progress(each, SeedProgress(5, 10, 0, 2, 1.0))
            live.note(each.name)
            live.done(each)
    bar = Bar(console, "files")
    for done, name in enumerate(many[:4], 1):
        bar(done, 4, name)
    with CellProgress(console) as cells:
        cells.begin(4)
        cells.note(many[0])
        cells.done(job[0])


def plain_progress(many):
    observer, lines = Plain(), Lines(Console(stderr=True), "files")
    observer.begin(len(many))
    cells = CellProgress(Console())
    cells.begin(len(many))
    for place, name in enumerate(many):
        job = Job(configure("fashion"), Path(f"/{name}".replace("\0", "")), 0, name=name)
        observer.progress(job, SeedProgress(5, 10, 0, 2, 1.0))
        observer.note(name)
        observer.done(job)
        cells.done(job)
        lines(place, len(many), name)


# -- Notebooks and the page -------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.scripts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, tuple(name for name, _ in attributes)))
        self.texts += [value for _, value in attributes if value]

    def handle_data(self, data):
        (self.scripts if self.tags and self.tags[-1][0] == "script" else self.texts).append(data)


def notebooks(found):
    shown = Comparison(found | {"diagnosis": diagnose("none", found["arms"]["none"])})
    html = Reader(shown._repr_html_())
    assert {tag for tag, _ in html.tags} <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "small"}
    assert {attributes for _, attributes in html.tags} == {()}
    assert not steering(repr(shown) + "".join(html.texts).replace("\t", ""))


def the_page(many):
    from droptop.report.page.render import policy, render

    from hostile_page import page_of

    html, plain = Reader(render(page_of(many))), Reader(render(page_of([f"name {n}" for n in range(PER_ROUND)])))
    assert html.tags == plain.tags
    text = "".join(html.texts)
    assert not steering(text.replace("\t", ""))
    for name in many:
        assert readable(name).strip() in text
    data, maps, *scripts = [script for script in html.scripts if script.strip()]
    assert scripts == [script for script in plain.scripts if script.strip()][2:]
    assert policy(scripts, served=False) in html.texts
    assert [cell for row in json.loads(data)["accuracy"]["rows"] for cell in row[:1]] == many
    assert set(json.loads(maps)["names"]) <= set(many)


# -- Files ------------------------------------------------------------------------------------------------------------


def files(many, place):
    export([row(many, 0), row(many, 1)], place / "rows.csv")
    header, *rows = calculates_nothing(place / "rows.csv")
    assert len(rows) == 2
    numbers = dict(zip(header, rows[0]))
    assert (numbers["mean"], numbers["diff"], numbers["low"]) == ("-3.0", "-1.5", "-2.0")
    tracker = CsvFile(place, many[0], many[1])
    tracker.scalars(1, dict.fromkeys(many, -1.5))
    tracker.close()
    told = calculates_nothing(place / "scalars.csv")
    assert [cells[2] for cells in told[1:]] == ["-1.5"] * len(many)
    assert [cells[1].removeprefix("'") for cells in told[1:]] == [visible(name).removeprefix("'") for name in many]
    table = paper_table(many)
    (place / "paper.csv").write_bytes(csv_text(table))
    assert len(calculates_nothing(place / "paper.csv")) == 1 + len(many)
    assert len(markdown(table).splitlines()) == 2 + len(many)
    assert not re.search("<[a-zA-Z/!?]", markdown(table))
    assert len(latex(table).decode().splitlines()) == 8 + len(many)
    assert not steering(markdown(table) + latex(table).decode())


def calculates_nothing(path):
    text = path.read_text("utf-8")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    for cell in (cell for cells in rows for cell in cells):
        assert not steering(cell)
        if cell[:1] in ("=", "+", "-", "@", "＝"):
            float(cell)
    return rows


# -- Figures ----------------------------------------------------------------------------------------------------------


def figures(many, found):
    with plt.rc_context(style.STYLE):
        drawn(accuracy_after_tasks(found["arms"], many[0]), [*found["arms"], *many[2:6]])
        drawn(accuracy_matrices({many[0]: found["arms"]["none"]}, many[1]), [many[0]])
        drawn(arm_effects(found, many[1]), [*many[:2], *many[2:6]])
        curves = {name: ([0, 5, 10], [1.0, 2.0, 2.0]) for name in many}
        lines = [{"step": 10, "task_end": True}]
        drawn(kappa_curves(dict([*curves.items()][:5]), lines), many[:5])
        drawn(kappa_map(curves, lines, 5.0), many)
        drawn(heat_map(stressed(study(many)), many[0]), many[2:6])
        images = np.zeros((3, 4, 4, 3), np.uint8)
        moment = Moment(1, 0, np.zeros((3, 2, 2)), None)
        maps = Maps(images, many[:3], np.zeros(3), None, [moment])
        drawn(attention_maps({many[4]: maps}, many[5]), many[:5:4])
    tests = {name: Samples(torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.arange(4)) for name in many[4:6]}
    train = Samples(torch.zeros(16, 3, 8, 8, dtype=torch.uint8), torch.arange(16) % 4)
    stream = Stream(many[6], Spec((3, 8, 8), tuple(many[:4])), train, tests, StreamConfig(batch=4, tasks=2), seed=0)
    assert contact_sheet(stream)[:4] == b"\x89PNG"


def drawn(figure, shown):
    """Draw a figure; it shows these names, and takes none for a formula."""
    file = io.BytesIO()
    style.write(figure, file, 20)
    texts = {text.get_text() for text in figure.findobj(Text)}
    assert not steering("".join(texts).replace("\t", ""))
    for name in shown:
        assert any(readable(name)[:60] in text for text in texts), (name, texts)
