"""Every recipe: its cells exist, and what it shows is right, by numbers that were not measured but made up."""

import re
from dataclasses import replace

import pytest

from droptop.paper import runner
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Scope
from droptop.paper.recipes import main_tables
from droptop.paper.write import Heading, write
from droptop.runs.config import configure
from droptop.sweeps.grid import folder_name, read_study

from .invented import RECIPES, invent, scope_of

READ_MORE = {"shortcut-mnist", "shortcut-impact", "maps", "histogram"}  # than results: see recipes/


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipes_cells_exist_and_are_the_studys(name, quick, tmp_path):
    recipe = RECIPES[name]
    scope = scope_of(recipe, quick)
    results = CellResults(recipe, scope, tmp_path)
    if results.configs:
        (tmp_path / "study.toml").write_text(scope.toml(recipe.study(scope)))
        study = read_study(tmp_path / "study.toml")
        assert [folder_name(config) for config in study] == [folder_name(config) for config in results.configs]
        assert {tuple(config.seeds) for config in study} == {(0, 1, 2)}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_without_results_says_so(name, tmp_path):
    results = CellResults(RECIPES[name], scope_of(RECIPES[name]), tmp_path)
    assert results.missing == 3 * len(results.configs)
    runner.outputs(results)


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].measure is None and name not in READ_MORE])
def test_a_recipe_shows_its_results(name, tmp_path):
    results = CellResults(RECIPES[name], scope_of(RECIPES[name]), tmp_path)
    invent(results)
    results = CellResults(results.recipe, results.scope, results.out)
    assert results.missing == 0
    files = write(runner.outputs(results), Heading("A", [], []), results.out, name)
    assert {path.suffix for path in files} >= {".md", ".csv", ".tex"}
    assert all(path.stat().st_size > 0 for path in files)


@pytest.mark.parametrize("name", ["table1", "ablation-unbiased", "design", "validity"])
def test_a_quick_look_quotes_nothing(name, tmp_path):
    results = CellResults(RECIPES[name], scope_of(RECIPES[name], quick=True), tmp_path)
    invent(results)
    table, *_ = runner.outputs(CellResults(results.recipe, results.scope, tmp_path))
    assert table.rows
    assert not any(column.kind in ("quoted", "verdict") for column in table.columns)


def test_a_scopes_options_reach_the_cells_that_have_them():
    scope = Scope(("er",), ("fashion",), 2, options={"gamma": 2.0, "width": 8, "device": "cuda"})
    plain, debiased = (
        scope.config({"data": "fashion", "method": "er", "debias": arm, "alpha": 0.8}) for arm in ("none", "droptop")
    )
    assert plain == configure("fashion", "er", "none", width=8, device="cuda", seeds=2)
    assert debiased == configure("fashion", "er", "droptop", width=8, device="cuda", gamma=2.0, alpha=0.8, seeds=2)


def test_recipes_run_what_the_paper_has():
    scope = Scope(("er", "gss", "aser"), ("split-cifar10",), 2)
    [block] = RECIPES["table1"].study(scope)
    results = {(config.options.method, config.droptop and config.droptop.kappa_0) for config in scope.expand(block)}
    assert results == {("er", None), ("er", 5.0), ("gss", None), ("gss", 0.5), ("aser", None), ("aser", 0.5)}
    assert scope.config({"data": "split-cifar10", "method": "gss", "debias": "droptop"}).droptop.kappa_0 == 0.5
    asked = replace(scope, options={"kappa_0": 2.0})
    assert {config.droptop.kappa_0 for config in asked.expand(block) if config.droptop} == {2.0}


def test_unbiased_sets_cost_no_run_of_their_own():
    """The paper tests on them after training on the original images."""
    recipe = RECIPES["table1"]
    blocks = recipe.study(scope_of(recipe))
    assert [block["data"] for block in blocks] == [("split-cifar100", "split-cifar10", "split-imagenet9")]
    assert recipe.methods == main_tables.REPLAY


def test_places_are_the_papers():
    assert all(
        re.fullmatch(r"(Table|Figure)s? \d.*|Section \d|Beyond the paper|Appendix .*", recipe.place)
        for recipe in RECIPES.values()
    )
