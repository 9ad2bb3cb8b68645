"""Claims of the paper beside what was measured: what is quoted, and what is not."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from droptop.paper import claims, runner
from droptop.paper.cell_results import CellResults, paired
from droptop.paper.recipe import Scope
from droptop.runs.folder import seed_folder

from .invented import RECIPES, invent, quotes, scope_of, shown


def test_claims_are_those_of_scipy(tmp_path):
    recipe = RECIPES["table1"]
    results = CellResults(recipe, scope_of(recipe), tmp_path)
    invent(results)
    results = CellResults(recipe, results.scope, tmp_path)
    [table] = runner.outputs(results)
    assert len(table.rows) == 5 * 5 * 2  # methods, test sets, figures
    series = [
        results.series({"data": "split-imagenet9", "method": "mir", "debias": arm}, "only_fg", "F_last")
        for arm in ("none", "droptop")
    ]
    [row] = [
        row
        for row, before in zip(table.rows[1:], table.rows)
        if row[2] == "F_last" and before[:2] == ["Split ImageNet-9, only_fg", "MIR"]
    ]
    plain, debiased = (np.array(list(one.values())) for one in series)
    oracle = ttest_rel(debiased, plain)
    assert (str(row[3]), str(row[4]), str(row[5])) == ("38.9 ± 3.1", "36.0 ± 3.1", "7.5%")
    effect = row[9]
    assert effect.diff == pytest.approx((debiased - plain).mean())
    assert effect.p == pytest.approx(oracle.pvalue)
    assert (effect.low, effect.high) == pytest.approx(tuple(oracle.confidence_interval(0.95)))
    assert row[10].value == pytest.approx(100 * (plain.mean() - debiased.mean()) / plain.mean())  # less is better


def test_streams_that_stand_in_for_the_papers_are_named(tmp_path):
    recipe = RECIPES["table1"]
    scope = Scope(("er",), ("split-tiny-imagenet9",), 2)
    results = CellResults(recipe, scope, tmp_path)
    invent(results)
    [table] = runner.outputs(CellResults(recipe, scope, tmp_path))
    assert table.rows[0][0] == "Tiny-ImageNet-9"
    assert str(table.rows[0][3]) == "46.1 ± 0.2"  # the paper's ImageNet-9
    assert any(note.startswith("Tiny-ImageNet-9 stands in for Split ImageNet-9") for note in table.notes)


@pytest.mark.parametrize(
    ("name", "methods", "data"),
    [
        ("design", ("er",), ("fashion-sticker",)),
        ("design", ("er",), ("split-cifar10", "split-cifar100")),
        ("ablation", ("er",), ("split-cifar10",)),
        ("ablation", ("er", "mir"), ("split-cifar10", "split-tiny-imagenet9")),
        ("ablation-unbiased", ("er",), ("split-cifar10",)),
        ("validity", ("er",), ("fashion-sticker",)),
        ("validity", ("er",), ("split-tiny-imagenet9",)),
    ],
)
def test_nothing_is_quoted_of_other_streams_or_methods(name, methods, data, tmp_path):
    table = shown(name, Scope(methods, data, 2), tmp_path)
    assert quotes(table) == []
    assert any(note.startswith("Nothing is quoted or judged of ") for note in table.notes)
    assert not any("Italics" in note for note in table.notes)


def test_each_stream_of_validity_is_quoted_by_itself(tmp_path):
    table = shown("validity", Scope(("er",), ("fashion-sticker", "split-cifar10"), 2), tmp_path)
    assert [str(row[2]) for row in quotes(table)] == ["82.1 ± 0.6", "61.0 ± 0.6", "61.5 ± 0.2"]
    assert quotes(table) == [row for row in table.rows[7:] if row[2] is not None]


def test_names_of_files_do_not_depend_on_the_order_of_streams():
    """So that a later call for some of them does not write over another's."""
    names = {
        claims.suffix(CellResults(RECIPES["maps"], Scope(("er",), data, 2), None), "split-imagenet9:only_fg")
        for data in (("fashion", "split-imagenet9:only_fg"), ("split-imagenet9:only_fg", "fashion"))
    }
    assert names == {"split-imagenet9-only-fg"}


def test_arms_are_shown_of_the_seeds_that_both_have(tmp_path):
    recipe, scope = RECIPES["table1"], Scope(("er",), ("fashion",), 3)
    results = CellResults(recipe, scope, tmp_path)
    invent(results)
    options = {"data": "fashion", "method": "er"}
    (seed_folder(results.run_folder(options | {"debias": "droptop"}), 1) / "result.json").unlink()
    [table] = runner.outputs(CellResults(recipe, scope, tmp_path))
    plain = results.series(options | {"debias": "none"}, "clean", "A_avg")
    assert (table.rows[0][6].mean, table.rows[0][6].n) == (pytest.approx((plain[0] + plain[2]) / 2), 2)
    assert paired({1: 2.0}, {}) == ({1: 2.0}, {})
