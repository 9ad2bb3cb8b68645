"""Ablations and designs, by invented results."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from droptop.paper import runner
from droptop.paper.cell_results import CellResults, mean
from droptop.paper.recipe import Scope

from ..invented import RECIPES, invent, quotes, scope_of, shown


def test_ablation_averages_test_sets_by_seed(tmp_path):
    recipe = RECIPES["ablation"]
    results = CellResults(recipe, scope_of(recipe), tmp_path)
    invent(results)
    results = CellResults(recipe, results.scope, tmp_path)
    [table] = runner.outputs(results)
    assert len(table.rows) == (5 + 1) * 4
    over = [("split-cifar100", "clean"), ("split-cifar10", "clean"), ("split-imagenet9", "original")]
    values = {
        variant: [
            np.mean(
                [
                    results.series({"data": data, "method": "gss", "debias": variant}, test, "A_avg")[seed]
                    for data, test in over
                ]
            )
            for seed in range(3)
        ]
        for variant in ("fixed", "droptop")
    }
    row = next(row for start, row in zip(table.rows, table.rows[2:]) if start[0] == "GSS")
    assert row[1] == "Fixed Drop"
    assert row[6].mean == pytest.approx(np.mean(values["fixed"]))
    assert row[8].p == pytest.approx(ttest_rel(values["fixed"], values["droptop"]).pvalue)
    assert row[4] == "-1.0"  # the paper's 37.0 against 38.0
    loss = np.mean(values["droptop"]) - np.mean(values["fixed"])
    assert row[9].value == pytest.approx(100 * loss / np.mean(values["fixed"]))  # of the variant, as the paper's


def test_a_mean_of_fewer_methods_is_not_held_against_the_papers(tmp_path):
    scope = Scope(("er", "mir"), ("split-cifar100", "split-cifar10", "split-tiny-imagenet9"), 2)
    table = shown("ablation", scope, tmp_path)
    assert len(quotes(table)) == 2 * 4  # either method's rows; not the mean's
    assert (
        "Nothing is quoted or judged of the mean of these methods: the paper's is of ER, DER++, MIR, GSS, ASER."
        in table.notes
    )
    assert any(note.startswith("Tiny-ImageNet-9 stands in for Split ImageNet-9") for note in table.notes)


def test_designs_are_worse_in_percent_of_droptop(tmp_path):
    recipe = RECIPES["design"]
    results = CellResults(recipe, scope_of(recipe), tmp_path)
    invent(results)
    results = CellResults(recipe, results.scope, tmp_path)
    [table] = runner.outputs(results)
    soft, whole = (
        mean(
            results.series({"data": "split-cifar10", "method": "er", "debias": "droptop"} | more, "clean", "F_last")
        ).mean
        for more in ({"mask": "soft"}, {})
    )
    assert table.rows[1][:3] == ["", "", "F_last"]
    assert table.rows[1][9].value == pytest.approx(100 * (soft - whole) / whole)


def test_designs_are_shown_without_the_shortcut_where_there_are_such_sets(tmp_path):
    scope = Scope(("er",), ("fashion-sticker",), 2)
    invent(CellResults(RECIPES["design"], scope, tmp_path))
    biased, unbiased = runner.outputs(CellResults(RECIPES["design"], scope, tmp_path))
    assert "of each seed's mean over: fashion-sticker, biased." in biased.notes[0]
    assert "of each seed's mean over: fashion-sticker, removed, fashion-sticker, random." in unbiased.notes[0]
    assert (biased.suffix, unbiased.suffix) == ("", "unbiased")
