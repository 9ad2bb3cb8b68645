import csv
import io

import pytest

from droptop.paper import write
from droptop.paper.tables import ITALICS, VERDICT, Column, Difference, Figure, Mean, Percent, Table
from droptop.results.statistics import holm

COLUMNS = (
    Column("method", "label"),
    Column("figure", "label"),
    Column("none: paper", "quoted"),
    Column("none: here"),
    Column("n"),
    Column("difference"),
    Column("gain"),
    Column("verdict", "verdict"),
)
TABLE = Table(
    "A title",
    COLUMNS,
    [
        [
            "ER",
            "A_avg",
            Mean(55.4, 0.3),
            Mean(59.04, 0.41, 20),
            20,
            Difference(1.26, 0.5, 2.0, 0.0004, 20),
            Percent(2.13),
            "partly",
        ],
        ["", "F_last", None, Mean(41.0, None, 1), 1, Difference(-2.0, n=1), Percent(None), ""],
        [
            "A_B & 5%",
            "A_avg",
            Mean(1.0),
            Mean(None, None, 0),
            0,
            Difference(0.5, -0.5, 1.5, 0.3, 3),
            None,
            "not reproduced",
        ],
    ],
    ["what it means", ITALICS, VERDICT],
)


def test_markdown():
    lines = write.markdown(TABLE).splitlines()
    assert lines[0] == ("| method | figure | none: paper (quoted) | none: here | n | difference | gain | verdict |")
    assert lines[2:] == [
        "| ER | A_avg | *55.4 ± 0.3* | 59.0 ± 0.4 | 20 | **+1.3 (+0.5 to +2.0), p < 0.001** | 2.1% | partly |",
        "|  | F_last |  | 41.0 | 1 | -2.0 | - |  |",
        "| A_B & 5% | A_avg | *1.0* | - | 0 | +0.5 (-0.5 to +1.5), p = 0.300 |  | not reproduced |",
    ]


def test_csv_has_every_number_in_full_and_every_label():
    rows = list(csv.DictReader(io.StringIO(write.csv_text(TABLE.corrected()).decode())))
    assert [row["method"] for row in rows] == ["ER", "ER", "A_B & 5%"]
    assert float(rows[0]["none: here mean"]) == 59.04
    assert float(rows[0]["none: paper (quoted) error"]) == 0.3
    assert float(rows[0]["gain value"]) == 2.13
    assert [row["difference p_holm"] for row in rows] == ["0.0008", "", "0.3"]
    assert holm([0.0004, None, 0.3]) == [0.0008, None, 0.3]


def test_latex_escapes():
    text = write.latex(TABLE).decode()
    assert r"A\_B \& 5\% & A\_avg & \textit{1.0} & - & 0" in text
    assert r"\textit{55.4 $\pm$ 0.3} & 59.0 $\pm$ 0.4" in text
    assert r"\textbf{+1.3 (+0.5 to +2.0), p $<$ 0.001}" in text
    assert r"\begin{tabular}{llrrrrrl}" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in body} == {7}


def test_without_the_paper():
    """What a quick look shows: nothing that invites a comparison."""
    text = write.markdown(TABLE.without_paper())
    assert text.splitlines()[0] == "| method | figure | none: here | n | difference | gain |"
    assert "55.4" not in text
    assert TABLE.without_paper().notes == ["what it means"]


def test_files(tmp_path):
    def draw():
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots()
        ax.plot([1, 2])
        return figure

    outputs = [TABLE, Table("Another", COLUMNS[:1], [["ER"]], suffix="other"), Figure("A picture", draw, ["a note"])]
    heading = write.Heading("Table 1: things", ["droptop paper table1 --out x"], ["Run on a machine."])
    files = write.write(outputs, heading, tmp_path, "table1")
    assert (
        sorted(path.name for path in files)
        == sorted(path.name for path in tmp_path.iterdir())
        == ["table1-other.csv", "table1-other.tex", "table1.csv", "table1.md", "table1.pdf", "table1.png", "table1.tex"]
    )
    page = (tmp_path / "table1.md").read_text()
    order = [
        "## Table 1",
        "    droptop paper table1",
        "Run on a machine",
        "**A title**",
        "*Reproduced*",
        "**Another**",
        "![A picture](table1.png)",
        "a note",
    ]
    assert [page.index(part) for part in order] == sorted(page.index(part) for part in order)
    before = {path: path.read_bytes() for path in files}
    write.write(outputs, heading, tmp_path, "table1")
    assert {path: path.read_bytes() for path in files} == before


@pytest.mark.parametrize("value", [Mean(None), Difference(None), Percent(None)])
def test_what_is_not_there_is_a_dash(value):
    assert str(value) == "-"
