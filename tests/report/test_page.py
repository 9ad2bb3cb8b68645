"""What the report page says is what the folder holds."""

import json
import shutil
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import sem, ttest_rel

from droptop.results.statistics import holm
from droptop.runs.config import configure
from droptop.runs.folder import read_result
from droptop.runs.records import read_confusion
from droptop.runs.requests import load, record_environment
from droptop.system.files import write_json
from droptop.training.record_files import write_moment, write_record

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from droptop.escapes import in_script
from droptop.report.page.render import describe, environment_of, render

from plans import plan


def rows_of(section):
    return [dict(zip(section.columns, row)) for row in section.rows]


def section_of(page, name):
    return next(section for section in page.sections if section.name == name)


@pytest.fixture(scope="module")
def page(comparison):
    return describe(comparison, "again")


@pytest.fixture(scope="module")
def results(comparison):
    return {arm: [read_result(comparison / arm, seed) for seed in range(2)] for arm in ("none", "droptop")}


def test_options_edited_after_the_run_are_told_of(comparison, tmp_path):
    out = tmp_path / "edited"
    shutil.copytree(comparison, out)
    record_environment(out, load(out))
    assert not any("was changed" in note for note in describe(out, "again").notes)
    text = (out / "config.toml").read_text()
    (out / "config.toml").write_text(text.replace("lr = 0.05", "lr = 0.5"))
    assert text != (out / "config.toml").read_text()
    assert any("config.toml was changed after the run began" in note for note in describe(out, "again").notes)
    assert "asked" not in describe(out, "again").environment


def test_the_page_names_every_commit_of_a_run(tmp_path):
    for name in "ab":
        run = tmp_path / name
        run.mkdir()
        write_json(
            run / "environment.json",
            {"versions": {"torch": "1"}, "python": "3", "commit": "first", "later": [{"commit": "second"}]},
        )
    assert environment_of([tmp_path / "a", tmp_path / "b", tmp_path / "none"]) == {
        "torch": "1",
        "python": "3",
        "commit": "first, second",
    }


def test_the_answer_is_the_paired_test(page, results):
    rows, oracles = rows_of(page.answer), []
    for row in rows:
        plain, debiased = ([own["tests"][row["test"]]["A_avg"] for own in results[arm]] for arm in results)
        test = ttest_rel(debiased, plain)
        oracles.append(test.pvalue)
        low, high = test.confidence_interval()  # two seeds: wider than what is possible
        assert (row["low"], row["high"]) == pytest.approx((max(low, -np.mean(plain)), min(high, 100 - np.mean(plain))))
        assert row["diff"] == pytest.approx(np.mean(debiased) - np.mean(plain))
        word = "better" if row["diff"] > 0 else "worse"
        assert row["verdict"] == (f"points to {word}" if test.pvalue < 0.5 - 1e-9 else "no clear direction")
    assert len(rows) == 3
    assert [row["p"] for row in rows] == pytest.approx(holm(oracles))  # see test_statistics.py
    assert page.progress == ""


def test_the_page_begins_with_what_the_plain_arm_does(page, results):
    """Two seeds of a quick look, on three test sets."""
    means = [np.mean([own["tests"][test]["A_avg"] for own in results["none"]]) for test in ("biased", "removed")]
    assert page.diagnosis[0].startswith(f"plain er: average accuracy {means[0]:.1f} ± ")
    assert f", {means[1]:.1f} ± " in page.diagnosis[0]
    assert page.diagnosis[0].endswith("a blind guess gives 37.5%")  # one of two classes, then one of four
    assert page.headline.endswith("; no verdict below 5 seeds (a quick look: 96 samples per task, 2 seeds).")
    html = render(page)
    places = [html.index(text) for text in (*page.diagnosis, page.headline, "What to try next", 'id="answer"')]
    assert places == sorted(places)


def test_accuracy_and_forgetting_are_those_of_the_results(page, results):
    for row in rows_of(section_of(page, "accuracy")):
        values = [own["tests"][row["test"]]["A"][row["task"] - 1] for own in results[row["arm"]]]
        assert (row["mean"], row["error"], row["n"]) == pytest.approx((np.mean(values), sem(values), 2), abs=1e-3)
    for row in rows_of(section_of(page, "forgetting")):  # of two tasks, the first one's is F_last
        values = [own["tests"][row["test"]]["F_last"] for own in results[row["arm"]]]
        assert row["mean"] == pytest.approx(np.mean(values), abs=1e-3)
    cells = {
        (row["test"], row["arm"], row["after"], row["on"]): row["percent"]
        for row in rows_of(section_of(page, "matrices"))
    }
    assert len(cells) == 3 * 2 * 3
    for (test, arm, after, on), percent in cells.items():
        values = [own["tests"][test]["matrix"][after - 1][on - 1] for own in results[arm]]
        assert percent == pytest.approx(np.mean(values), abs=0.06)


def test_confusion_is_of_all_seeds_after_the_last_task(page, comparison):
    rows = [row for row in rows_of(section_of(page, "confusion")) if (row["test"], row["arm"]) == ("removed", "none")]
    last = [read_confusion(comparison / "none", seed)[-1] for seed in range(2)]
    counts = sum(own.counts["removed"] for own in last)
    assert counts[4:].sum() == counts[:, 4:].sum() == 0  # classes that never arrive
    counts = counts[:4, :4]
    assert [row["count"] for row in rows] == counts.flatten().tolist()
    assert [row["percent"] for row in rows] == pytest.approx(
        (100 * counts / counts.sum(1, keepdims=True)).flatten(), abs=0.06
    )
    assert [row["true"] for row in rows[::4]] == last[0].classes[:4]


def test_kappa_is_followed_through_its_decisions(page, comparison):
    lines = [json.loads(line) for line in (comparison / "droptop/seed-0/metrics.jsonl").read_text().splitlines()]
    classes = read_result(comparison / "droptop", 0)["classes"]
    rows = rows_of(section_of(page, "kappa"))
    decided = {(row["class"], row["step"]): row["kappa"] for row in rows if row["decision"]}
    assert decided == {
        (classes[int(group)], line["step"]): pytest.approx(value, abs=1e-4)
        for line in lines
        for group, value in line.get("kappa", {}).items()
    }
    for name in classes[:4]:
        own = [row for row in rows if row["class"] == name]
        assert [row["until"] for row in own] == [row["step"] for row in own[1:]] + [6]
        for before, after in pairwise(own):
            assert after["decision"] == ("up" if after["kappa"] > before["kappa"] else "down")


def test_a_study_pairs_its_cells(study):
    page = describe(study, "again")
    assert page.progress == "4 of 6 cells are done, 0 failed"
    rows = rows_of(page.answer)
    assert [row["row"] for row in rows] == ["er droptop: biased", "er droptop: random", "er droptop: removed"]
    assert {row["pairs"] for row in rows} == {2}
    assert len(page.tables[0].rows) == 3 * 2 * 3
    assert [arm["name"] for arm in page.attention["arms"]] == ["none", "droptop"]
    assert page.command == "again"


def test_an_unfinished_run_shows_what_there_is(stopped):
    page = describe(stopped, "again")
    assert page.progress == "0 of 2 seeds are done; droptop seed 0 is at step 6, in task 2"
    assert page.answer is None
    assert {section.name for section in page.sections} == {"accuracy", "matrices", "confusion", "kappa"}
    assert [moment["step"] for moment in page.attention["moments"]] == [2, 4, 6]


def test_names_of_files_are_shown_as_text(stopped):
    html = render(describe(stopped, "again </script><script>alert(1)</script>"))
    assert "<img src=x" not in html
    assert html.count("&lt;img src=x onerror=") >= 3
    assert "<script>alert" not in html
    assert json.loads(in_script({"</script>": "<!--\u2028"})) == {"</script>": "<!--\u2028"}


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-40])])
def test_results_stand_without_their_metrics(comparison, page, tmp_path, damage):
    out = tmp_path / "out"
    shutil.copytree(comparison, out)
    damage(out / "none/seed-1/metrics.jsonl")
    again = describe(out, "again")
    assert again.notes == ["Curves over steps lack none seed 1, whose metrics.jsonl is damaged or gone.", *page.notes]
    assert (again.headline, again.answer, again.tables) == (page.headline, page.answer, page.tables)
    assert again.progress == ""
    assert {section.name: section.rows for section in again.sections} == {  # of the debiased arm, or from results
        section.name: section.rows for section in page.sections
    }
    for path in out.glob("*/seed-*/metrics.jsonl"):
        path.unlink()
    assert {section.name for section in describe(out, "again").sections} == {
        section.name for section in page.sections
    } - {"kappa", "shortcut"}


def test_a_large_run_stays_small(tmp_path):
    """100 classes in 50 tasks, large maps and images, intensities that change all the time."""
    classes, tasks, steps = [f"class number {n}" for n in range(100)], [[n, n + 1] for n in range(0, 100, 2)], 800
    (tmp_path / "config.toml").write_text(plan(configure("split-cifar100", seeds=1)).toml())
    random, seed = np.random.default_rng(0), tmp_path / "seed-0"
    for name in ("maps", "confusion"):
        (seed / name).mkdir(parents=True)
    tally = {"all": {"n": [10] * 100, "correct": [5] * 100}}
    for task in range(50):
        noise = torch.rand(8, 112, 112)
        write_moment(seed / "maps", 16 * task + 16, task, {"attention": noise, "dropped": (noise > 0.9).byte()})
    counts = {f"set {n}": torch.randint(0, 9, (100, 100), dtype=torch.int32) for n in range(9)}
    write_moment(seed / "confusion", steps, 49, counts, classes=classes, tasks=tasks)
    images = torch.randint(0, 255, (8, 3, 224, 224), dtype=torch.uint8)
    write_record(seed / "maps", "images", {"images": images, "labels": torch.arange(8)}, {"names": classes[:8]})
    with (seed / "metrics.jsonl").open("w") as file:
        for step in range(1, steps + 1):
            line = {
                "step": step,
                "task": (step - 1) // 16,
                "loss": 1.0,
                "dropped": {"share": 0.5, "chance": 0.1},
                "kappa": {str(group): random.uniform(1, 5) for group in range(100)},
            }
            if step % 16 == 0:
                line |= {"task_end": True, "eval": {f"set {n}": tally for n in range(9)}}
            file.write(json.dumps(line) + "\n")
    matrix = [[50.0] * 50] * 50
    write_json(
        seed / "result.json",
        {
            "classes": classes,
            "tasks": tasks,
            "tests": {
                f"set {n}": {"A_avg": 1.0, "A_last": 1.0, "F_last": 0.0, "A": [1.0] * 50, "matrix": matrix}
                for n in range(9)
            },
        },
    )
    page = describe(tmp_path, "again")
    assert len(render(page).encode()) < 3e6
    told = " ".join(page.notes)
    for word in ("moments", "resolution", "kappa'", "Confusion", "every task"):
        assert word in told
