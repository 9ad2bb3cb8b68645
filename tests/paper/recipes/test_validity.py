"""One model against two: what is counted as a decision, as a change, as alike, and as alike by chance."""

import json

import pytest
import torch

from droptop.debias.intensity import Intensity, IntensityConfig
from droptop.paper import every_recipe
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Scope
from droptop.paper.recipes import validity
from droptop.runs.folder import seed_folder

RECIPE = every_recipe()["validity"]


@pytest.mark.parametrize(
    ("start", "last", "period", "history"),
    [
        (0, 1560, 3, 10),
        (0, 60, 3, 10),
        (0, 63, 3, 10),
        (312, 1560, 3, 10),
        (313, 433, 3, 10),
        (314, 437, 4, 5),
        (50, 50, 1, 2),
        (7, 40, 1, 2),
    ],
)
def test_decisions_are_counted_as_they_are_made(start, last, period, history):
    """Against the class itself, whose entries are cleared with every decision."""
    intensity = Intensity(IntensityConfig(period=period, history=history), 1, 5.0, 5.0)
    made = 0
    for step in range(period, last + 1, period):  # the memory holds the class from the first step after `start`
        before = intensity.entries.sum()
        intensity.record(torch.tensor([1 / step if step > start else torch.nan], dtype=torch.float64))
        made += int(intensity.entries.sum() < before)
    assert validity.decisions(start, last, period, history) == made


def test_agreement_of_decisions():
    one = {(60, "0"): 4.5, (120, "0"): 4.05, (60, "1"): 4.5}
    two = {(60, "0"): 4.5, (120, "0"): 5.0, (120, "1"): 4.5}
    counted = validity.agreement(one, two, 5.0, 8)
    assert counted == (8, 4, 1)  # alike: class 0 at 60; not: 0 at 120 (down, up), 1 at 60 and at 120 (one of them)
    assert counted.of_decisions == pytest.approx(100 * 5 / 8)
    assert counted.of_changes == pytest.approx(25.0)
    assert validity.agreement({}, {}, 5.0, 8).of_changes is None


def write_runs(out, kappas):
    """Two tasks of 120 steps: by version (two models?) and seed, when kappa changes to what, of which class."""
    results = CellResults(RECIPE, Scope(("er",), ("split-cifar10",), 2), out)
    for config in results.configs:
        for seed in config.seeds:
            place = seed_folder(results.folder(config), seed)
            place.mkdir(parents=True)
            (place / "result.json").write_text(
                json.dumps({"classes": list("abcd"), "tasks": [[0, 1], [2, 3]], "tests": {"clean": {"A_avg": 50.0}}})
            )
            lines = [
                {"step": step} | ({"task_end": True, "eval": {}} if step % 120 == 0 else {}) for step in range(1, 241)
            ]
            for step, kappa in kappas[config.droptop.intensity.reference, seed].items():
                lines[step - 1]["kappa"] = kappa
            (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return CellResults(RECIPE, results.scope, out)


def test_chance_is_the_reference_of_other_seeds(tmp_path):
    """Seed 0's versions change class 0 together, seed 1's never do; by chance both seeds' meet in class 2, which the
    memory of seed 1 held three steps later."""
    results = write_runs(
        tmp_path,
        {
            (False, 0): {63: {"0": 4.5}, 183: {"2": 4.5}},
            (True, 0): {63: {"0": 4.5}},
            (False, 1): {123: {"1": 4.5}},
            (True, 1): {186: {"2": 4.5}},
        },
    )
    same, others = validity.pairs(results, "split-cifar10", "er")
    decided = 2 * 3 + 2 * 1  # 240 steps are 80 probes, of which the first counts for nothing; 120 are 40
    assert same == {0: (decided, 2, 1), 1: (decided, 2, 0)}
    assert others == {0: (decided, 2, 1), 1: (decided, 2, 0)}


def test_one_seed_knows_no_chance(tmp_path):
    results = write_runs(tmp_path, {(version, seed): {} for version in (False, True) for seed in (0, 1)})
    [table, _] = RECIPE.show(CellResults(RECIPE, Scope(("er",), ("split-cifar10",), 1), results.out))
    assert [str(row[3]) for row in table.rows[:2]] == ["100.0", "-"]
