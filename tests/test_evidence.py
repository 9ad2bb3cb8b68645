"""scripts/evidence.py: tables of small data, against Markdown written by hand; and the pages that are there.

The script runs in a copy of its own, so that no test reads the repository's data, but for those that say so.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

REPOSITORY = Path(__file__).parent.parent
sys.path.insert(0, str(REPOSITORY / "benchmarks"))

from pooled import verdict  # noqa: E402

EFFECT = "difference diff,difference low,difference high,difference p"
RESULT = f"test,figure,n,none mean,none error,droptop mean,droptop error,{EFFECT}"
LOSS = f"{RESULT}\nbiased,A_avg,8,90.1,0.4,83.6,0.4,-6.5,-8.2,-4.8,<0.001\n"
QUOTED = {
    "none: paper (quoted) mean": 50,
    "none: paper (quoted) error": 0.5,
    "DropTop: paper (quoted) mean": 54,
    "DropTop: paper (quoted) error": 0.4,
}


@pytest.fixture
def root(tmp_path):
    """A repository with the scripts and without data."""
    for name in ("scripts/evidence.py", "scripts/evidence_data.py", "benchmarks/pooled.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "docs/evidence").mkdir(parents=True)
    (tmp_path / "REPRODUCTION.md").write_text("# What was measured\n")
    (tmp_path / "benchmarks/index.csv").write_text("file,rows,command,machine,device,commit,date,seeds\n")
    return tmp_path


def put(root, name, text, rows=""):
    """Writes a file of data, and how it was made."""
    (root / "benchmarks" / name).write_text(text)
    with (root / "benchmarks/index.csv").open("a") as index:
        index.write(f"benchmarks/{name},{rows},droptop run,CPU,one thread,abc1234,2026-11-16,0 to 7\n")


def page(root, *markers):
    """Writes a page with markers, and gives its path."""
    path = root / "docs/evidence/page.md"
    parts = [f"<!-- {marker} -->\n<!-- end -->\n" for marker in markers]
    path.write_text("\n".join(["# Is it so?\n", "**Yes.**\n", *parts]))
    return path


def evidence(root, *arguments):
    return subprocess.run(
        [sys.executable, root / "scripts/evidence.py", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def rendered(root, *markers):
    """Renders a page; gives the lines of each of its tables."""
    path = page(root, *markers)
    done = evidence(root)
    assert done.returncode == 0, done.stderr
    assert evidence(root, "--check").returncode == 0
    parts = path.read_text().split("<!-- end -->")[:-1]
    return [[line for line in part.splitlines() if line.startswith("|")] for part in parts]


def test_effects_stand_below_and_beside_each_other(root):
    put(
        root,
        "a.csv",
        f"{RESULT}\n"
        "biased,A_avg,8,90.14,0.41,83.6,0.4,-6.5,-8.2,-4.8,<0.001\n"
        "biased,F_last,8,12.2,0.9,21.0,0.9,1.04,-0.0,+2.2,0.0514\n"
        "random,A_avg,8,72.3,0.7,79.8,0.5,-0.7,-1.4,-0.0,0.0412\n",
        rows="the ER rows",
    )
    below, beside = rendered(
        root,
        'table: benchmarks/a.csv by="test; figure" view=effects',
        'table: benchmarks/a.csv by=test columns="={none|mean}; change={difference|change}" across=figure',
    )
    assert below == [
        "| test | figure | n | none | DropTop | difference (95% interval), p |",
        "|---|---|---|---|---|---|",
        "| biased | A_avg | 8 | 90.1 ± 0.4 | 83.6 ± 0.4 | **-6.5 (-8.2 to -4.8), p < 0.001** |",
        "| biased | F_last | 8 | 12.2 ± 0.9 | 21.0 ± 0.9 | +1.0 (-0.0 to +2.2), p = 0.051 |",
        "| random | A_avg | 8 | 72.3 ± 0.7 | 79.8 ± 0.5 | **-0.7 (-1.4 to -0.0), p = 0.041** |",
    ]
    assert beside == [
        "| test | A_avg | change, A_avg | F_last | change, F_last |",
        "|---|---|---|---|---|",
        "| biased | 90.1 ± 0.4 | **-6.5 (-8.2 to -4.8)** | 12.2 ± 0.9 | +1.0 (-0.0 to +2.2) |",
        "| random | 72.3 ± 0.7 | **-0.7 (-1.4 to -0.0)** |  |  |",
    ]
    told = [line for line in (root / "docs/evidence/page.md").read_text().splitlines() if line.startswith("- ")]
    assert told == [
        "- [a.csv](../../benchmarks/a.csv), the ER rows: `droptop run`; CPU, one thread; commit abc1234; "
        "2026-11-16; seeds 0 to 7"
    ]


def table_of(none, droptop):
    """As `droptop paper table1` writes it, of one method."""
    effect = ttest_rel(droptop, none)
    interval = effect.confidence_interval()
    row = {
        "stream, test set": "S",
        "method": "ER",
        "figure": "A_avg",
        "n": len(none),
        **QUOTED,
        "difference: here n": len(none),
        "difference: here diff": np.mean(droptop - none),
        "difference: here low": interval.low,
        "difference: here high": interval.high,
        "difference: here p": effect.pvalue,
        "verdict": "not reproduced",
    }
    for name, arm in (("none", none), ("DropTop", droptop)):
        row |= {
            f"{name}: here mean": arm.mean(),
            f"{name}: here n": len(arm),
            f"{name}: here error": arm.std(ddof=1) / len(arm) ** 0.5,
        }
    return ",".join(f'"{name}"' for name in row) + "\n" + ",".join(map(str, row.values())) + "\n"


def test_claims_of_two_files_are_pooled_with_their_verdict(root):
    random = np.random.default_rng(0)
    none = 50 + random.normal(size=20)
    droptop = none + 2 + random.normal(size=20) / 4
    put(root, "a.csv", table_of(none[:10], droptop[:10]))
    put(root, "b.csv", table_of(none[10:], droptop[10:]))
    (lines,) = rendered(root, "table: benchmarks/a.csv+benchmarks/b.csv by=method view=claims")
    low, high = ttest_rel(droptop, none).confidence_interval()
    means = " | ".join(f"{arm.mean():.1f} ± {arm.std(ddof=1) / 20**0.5:.1f}" for arm in (none, droptop))
    assert lines == [
        "| method | n | none, paper | DropTop, paper | none, ours | DropTop, ours | "
        "difference (95% interval), p | verdict |",
        "|---|---|---|---|---|---|---|---|",
        f"| ER | 20 | 50.0 ± 0.5 | 54.0 ± 0.4 | {means} | **{np.mean(droptop - none):+.1f} ({low:+.1f} to "
        f"{high:+.1f}), p < 0.001** | partly |",
    ]


def test_readings_and_options_that_are_not_the_usual_ones(root):
    effects = [
        f"{name} {part}"
        for name in ("DropTop minus none: here", "moves none by", "moves DropTop by")
        for part in ("diff", "low", "high")
    ]
    put(
        root,
        "a.csv",
        "reading,none: here mean,none: here error,DropTop: here mean,DropTop: here error,"
        f"{','.join(effects)}\nas it is,50,1,51,1,1,-1,3,,,,,,\nlr 0.03,55,1,56,2,1,0.1,1.9,5,3,7,5,-1,11\n",
    )
    put(root, "b.csv", "lr,probe,mean,error\n0.1,0,50,1\n0.03,0,51,\n0.1,64,52,1\n")
    readings, options = rendered(
        root,
        "table: benchmarks/a.csv by=reading view=readings",
        'table: benchmarks/b.csv by="{lr, probe|changed}" columns="A_avg={|mean}"',
    )
    assert readings == [
        "| reading | none | DropTop | DropTop minus none | moves none by | moves DropTop by |",
        "|---|---|---|---|---|---|",
        "| as it is | 50.0 ± 1.0 | 51.0 ± 1.0 | +1.0 (-1.0 to +3.0) |  |  |",
        "| lr 0.03 | 55.0 ± 1.0 | 56.0 ± 2.0 | **+1.0 (+0.1 to +1.9)** | **+5.0 (+3.0 to +7.0)** | "
        "+5.0 (-1.0 to +11.0) |",
    ]
    assert options == [
        "| option | A_avg |",
        "|---|---|",
        "| as it is | 50.0 ± 1.0 |",
        "| lr = 0.03 | 51.0 |",
        "| probe = 64 | 52.0 ± 1.0 |",
    ]


def test_variants_have_our_words(root):
    effect = ",".join(f"to DropTop: here {part}" for part in ("diff", "low", "high", "p"))
    put(
        root,
        "a.csv",
        f"variant,n,here mean,here error,{effect},to DropTop: paper (quoted),verdict\n"
        "No MF,10,30.77,0.29,-0.6,-1.7,0.5,0.2256,-4.2,not reproduced\nDropTop,10,31.4,0.4,,,,,,\n",
    )
    (lines,) = rendered(root, "table: benchmarks/a.csv by=variant view=variants")
    assert lines == [
        "| variant | n | ours | to DropTop | paper's, to DropTop | verdict |",
        "|---|---|---|---|---|---|",
        "| no fusion | 10 | 30.8 ± 0.3 | -0.6 (-1.7 to +0.5), p = 0.226 | -4.2 | not reproduced |",
        "| DropTop | 10 | 31.4 ± 0.4 |  |  |  |",
    ]


def test_json_of_compare_and_of_bench_and_a_text_of_columns(root):
    values = {"none": [1, 2, 3], "droptop": [2, 4, 6]}
    arms = {name: {"tests": {"clean": {"A_avg": values[name]}}} for name in values}
    effects = {"clean": {"A_avg": {"diff": 2, "ci95": [-0.5, 4.5], "p": 0.0742}}}
    put(root, "compare.json", json.dumps({"arms": arms, "effects": effects}))
    timed = [
        {"method": "er", "engine": "graphs", "debias": debias, "seeds": seeds, "ms": ms, "flops": flops}
        for debias, seeds, ms, flops in (("none", 1, 2, 3e12), ("droptop", 1, 3, 4e12), ("none", 5, 1.234, 3e12))
    ]
    put(root, "bench.json", json.dumps({"options": {"probe": "64"}, "rows": timed}))
    put(root, "parts.txt", "ms a step\nall of it     1.775   1.251\n")
    compared, steps, ratios, parts = rendered(
        root,
        "table: benchmarks/compare.json by=figure view=effects",
        'table: benchmarks/bench.json by="method; debias" view=steps across="engine; seeds"',
        'table: benchmarks/bench.json by=seeds columns="times={ms mean / none ms|.2f}; TFLOP={flops / 1e12|.1f}" '
        'where="debias=droptop"',
        'table: benchmarks/parts.txt columns="part={0}; ms={1}"',
    )
    assert compared[2:] == ["| A_avg | 3 | 2.0 ± 0.6 | 4.0 ± 1.2 | +2.0 (-0.5 to +4.5), p = 0.074 |"]
    assert steps == [
        "| method | debias | graphs, 1 | graphs, 5 |",
        "|---|---|---|---|",
        "| er | none | 2.00 | 1.23 |",
        "| er | droptop | 3.00 |  |",
    ]
    assert ratios == ["| seeds | times | TFLOP |", "|---|---|---|", "| 1 | 1.50 | 4.0 |"]
    assert parts == ["| part | ms |", "|---|---|", "| all of it | 1.775 |"]


def test_claims_and_pages_are_rendered(root):
    put(root, "a.csv", LOSS)
    page(root)
    (root / "docs/evidence/index.md").write_text("# Evidence\n\n<!-- pages: page.md -->\n<!-- end -->\n")
    (root / "docs/evidence/claims.toml").write_text(
        '[[claim]]\nclaim = "it gains"\npaper = "+1"\nours = [{ file = "benchmarks/a.csv", where = "test=biased", '
        'cell = "{difference|change}, n = {n}" }]\nnote = "as feared"\nverdict = "not reproduced"\npage = "page.md"\n'
    )
    ledger = root / "REPRODUCTION.md"
    ledger.write_text("# What was measured\n\n<!-- claims: docs/evidence/claims.toml -->\n<!-- end -->\n")
    assert evidence(root).returncode == 0
    assert (
        "| it gains | +1 | **-6.5 (-8.2 to -4.8)**, n = 8; as feared | not reproduced | "
        "[page](docs/evidence/page.md) |\n" in ledger.read_text()
    )
    assert "| [Is it so?](page.md) | Yes. |\n" in (root / "docs/evidence/index.md").read_text()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("docs/evidence/page.md", "83.6", "83.7"),
        ("benchmarks/a.csv", "83.6", "83.7"),
        ("benchmarks/index.csv", "abc1234", "abc1235"),
    ],
)
def test_a_digit_that_differs_is_named(root, name, before, after):
    put(root, "a.csv", LOSS)
    rendered(root, "table: benchmarks/a.csv by=test view=effects")
    (root / name).write_text((root / name).read_text().replace(before, after))
    said = evidence(root, "--check")
    assert (said.returncode, said.stdout) == (
        1,
        "docs/evidence/page.md: table 1 (benchmarks/a.csv) differs from its data; `make evidence` renders it\n",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("| a table | of no marker |", "a table has no marker"),
        ("<!-- table: benchmarks/a.csv -->", "no `<!-- end -->` after <!-- table: benchmarks/a.csv -->"),
        ("It gains +7.7 points.", "+7.7 in the answer is in no table of the page"),
    ],
)
def test_what_no_data_gives_is_named(root, text, said):
    (root / "docs/evidence/page.md").write_text(f"# Is it so?\n\n{text}\n")
    done = evidence(root, "--check")
    assert (done.returncode, done.stdout) == (1, f"docs/evidence/page.md: {said}\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('columns="x={gain}"', "no column 'gain'; there are test, figure"),
        ('columns="x={gain|mean}"', "no column 'gain'; there are test, figure"),
        ("view=effect", "no view effect; there are claims, effects, readings, variants, steps"),
        ("views=effects", "no option views"),
        ("by=test where=test=random", "no row has test=random"),
        ('columns="x={test}" across=figure', "two rows have A_avg"),
    ],
)
def test_a_wrong_marker_is_one_clear_line(root, options, said):
    put(root, "a.csv", "test,figure\nbiased,A_avg\nremoved,A_avg\n")
    path = page(root, f"table: benchmarks/a.csv {options}")
    before = path.read_text()
    done = evidence(root)
    assert (done.returncode, done.stderr) == (1, f"docs/evidence/page.md: table 1 (benchmarks/a.csv): {said}\n")
    assert path.read_text() == before


def test_a_file_of_unknown_making_is_refused(root):
    (root / "benchmarks/a.csv").write_text("test\nbiased\n")
    page(root, "table: benchmarks/a.csv by=test")
    said = evidence(root, "--check").stderr
    assert said == (
        "docs/evidence/page.md: table 1 (benchmarks/a.csv): benchmarks/index.csv does not say how "
        "benchmarks/a.csv was made\n"
    )


def rows_of(name):
    with (REPOSITORY / "benchmarks" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_pages_are_as_their_data_has_them():
    done = evidence(REPOSITORY, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (REPOSITORY / "REPRODUCTION.md").stat().st_size < 15_000


def test_every_file_of_data_is_in_the_index():
    there = {
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("cpu", "h200")
        for path in (REPOSITORY / "benchmarks" / folder).rglob("*.*")
        if path.suffix in (".csv", ".json", ".txt")
    }
    assert {row["file"] for row in rows_of("index.csv")} == there | {"benchmarks/cpu-steps.json"}


def test_links_of_the_pages_lead_somewhere():
    for path in (REPOSITORY / "REPRODUCTION.md", *(REPOSITORY / "docs/evidence").glob("*.md")):
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), (path.name, target)


def test_verdicts_are_those_of_the_recipes():
    """The rule that pooled rows follow gives the word of every row that a recipe has judged."""
    judged = [row for path in sorted((REPOSITORY / "benchmarks/h200").glob("table*.csv")) for row in rows_of(path)]
    assert len(judged) == 88
    assert [verdict(row) for row in judged] == [row["verdict"] for row in judged]


def test_the_seeds_that_were_run_again_give_their_table():
    seeds = [
        row
        for row in rows_of("h200/seeds/tiny-er.csv")
        if row["debias"] == "none" or (row["mask"], row["per"], row["reference"]) == ("hard", "class", "False")
    ]
    found = {(row["test"], row["figure"], row["debias"], int(row["seed"])): float(row["mean"]) for row in seeds}
    for row in rows_of("h200/tiny-er-again.csv"):
        none, droptop = (
            [found[row["test"], row["figure"], arm, seed] for seed in range(10)] for arm in ("none", "droptop")
        )
        effect = ttest_rel(droptop, none)
        assert float(row["difference diff"]) == pytest.approx(np.mean(droptop) - np.mean(none))
        assert float(row["difference low"]) == pytest.approx(effect.confidence_interval().low)
        assert float(row["difference p"]) == pytest.approx(effect.pvalue)
