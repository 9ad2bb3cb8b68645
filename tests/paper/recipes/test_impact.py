"""shortcut-impact: ordinary training beside that of tasks in turn, on hand-made runs."""

from pathlib import Path

import pytest

from droptop.paper import find
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Scope
from droptop.paper.recipes import impact
from droptop.runs.build import build_stream
from droptop.system.files import write_json

from ..invented import quick_scope


def test_ordinary_training_sees_as_many_images_as_all_tasks(tmp_path):
    recipe = find("shortcut-impact")
    quick = quick_scope(recipe, limit=100)
    by_method = {}
    for block in recipe.study(quick):
        for config in quick.expand(block):
            by_method.setdefault(config.options.method, []).append(config.options.limit)
    assert by_method == {"er": [100, 100], "joint": [500, 500]}


def test_ordinary_training_of_a_quick_look_has_one_task_of_the_same_classes():
    recipe = find("shortcut-impact")
    quick = quick_scope(recipe, **recipe.quick_options())
    configs = [quick.config(impact.cell(quick, "fashion-background", "only_fg", method)) for method in ("er", "joint")]
    tasks = [build_stream(config, 0).tasks for config in configs]
    assert tasks == [((0, 1), (2, 3), (4, 5)), ((0, 1, 2, 3, 4, 5),)]
    assert configs[1].options.limit == 3 * configs[0].options.limit


def both_trainings(out: Path, data: str) -> CellResults:
    """Made up: foregrounds are ten points better, and forget five points less."""
    recipe = find("shortcut-impact")
    results = CellResults(recipe, Scope(recipe.methods, (data,), seeds=2), out)
    for number, kind in enumerate(("only_bg", "only_fg")):
        test_names = [impact.test_of(data, kind, tested) for tested in impact.TESTED]
        for method in ("er", "joint"):
            for seed in (0, 1):
                value = 10 * number + seed * (1 + 0.2 * number)  # differences of 10 and 10.2
                tests = {
                    test: {
                        "A": [50 + value, 30 + value],
                        "A_avg": 40 + value,
                        "F_last": 20.0 + seed - (5 - 0.2 * seed) * number,
                        "A_last": 30 + value,
                    }
                    for test in test_names
                }
                place = results.run_folder(impact.cell(results.scope, data, kind, method)) / f"seed-{seed}"
                place.mkdir(parents=True)
                write_json(place / "result.json", {"classes": ["a", "b"], "tasks": [[0], [1]], "tests": tests})
    assert results.missing == 0
    return results


def test_figures_of_both_trainings_side_by_side(tmp_path):
    table = impact.table(both_trainings(tmp_path, "fashion-background"), "fashion-background")
    rows = {row[1]: row for row in table.without_paper().rows[:5]}
    assert list(rows) == ["A_1", "A_2", "A_avg", "F_last", "ordinary training"]
    assert [str(cell) for cell in rows["A_2"][2:]] == [
        "30.5 ± 0.5",
        "40.6 ± 0.6",
        "2",
        "+10.1 (+8.8 to +11.4), p = 0.006",
        "33.1%",
    ]
    assert rows["F_last"][-1].value == pytest.approx(100 * 4.9 / 20.5)  # less forgetting is a gain
    assert all(row[2:5] == [None, None, None] and row[-1] == "" for row in table.rows)  # it is not the paper's stream
    assert (
        "Nothing is quoted or judged of fashion-background: the paper's figures are of Split ImageNet-9." in table.notes
    )


def test_both_trainings_are_shown_beside_the_papers(tmp_path):
    table = impact.table(both_trainings(tmp_path, "split-tiny-imagenet9"), "split-tiny-imagenet9")
    rows = {row[1]: row for row in table.rows[:5]}
    assert [str(cell) for cell in rows["A_avg"][2:5]] == ["31.9 ± 1.2", "34.4 ± 0.6", "7.6%"]
    assert rows["A_avg"][-1] == "no claim"  # +2.5 ± 1.3
    assert rows["F_last"][-1] == "reproduced"  # -5.1 ± 2.3; here -4.9 (-6.2 to -3.6)
    assert all(row[-1] == "" for row in table.rows[5:])  # tested on the originals
    assert any(note.startswith("Tiny-ImageNet-9 stands in for Split ImageNet-9") for note in table.notes)
