"""Invented results of every recipe's cells, and the tables that recipes make of them."""

import json

import numpy as np

from droptop.paper import every_recipe, runner
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Scope
from droptop.runs.folder import seed_folder

RECIPES = every_recipe()
TESTS = {
    "split-imagenet9": ("original", "only_fg", "stylized"),
    "fashion-sticker": ("biased", "removed", "random"),
    "split-tiny-imagenet9": ("original", "only_fg", "stylized"),
}
TASKS = [[0, 1], [2, 3]]


def scope_of(recipe, quick=False, **options):
    data = recipe.quick_data if quick else recipe.data
    return Scope(recipe.methods, data, 3, quick, (recipe.quick_options() if quick else {}) | options)


def quick_scope(recipe, **options):
    return Scope(recipe.methods, recipe.quick_data, seeds=2, quick=True, options=options)


def invent(results):
    """Results of every cell, at random by its name; the same seed shares some of its luck."""
    for config in results.configs:
        random = np.random.default_rng(int(config.fingerprint()[:8], 16))
        tests = TESTS.get(config.options.data, ("clean", "original"))
        for seed in config.seeds:
            luck = np.random.default_rng(seed).normal()
            place = seed_folder(results.folder(config), seed)
            place.mkdir(parents=True)
            figures = {figure: 50 + luck + random.normal() for figure in ("A_avg", "A_last", "F_last")}
            result = {"classes": list("abcd"), "tasks": TASKS, "tests": dict.fromkeys(tests, figures)}
            (place / "result.json").write_text(json.dumps(result))
            lines = [
                {"step": step} | ({"task_end": True, "eval": {}} if step % 120 == 0 else {}) for step in range(1, 241)
            ]
            lines[59]["kappa"] = {"0": 4.5}
            (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def shown(name, scope, out):
    """The first table of a recipe, of invented results."""
    invent(CellResults(RECIPES[name], scope, out))
    return runner.outputs(CellResults(RECIPES[name], scope, out))[0]


def quotes(table):
    """Rows in which something is quoted or judged."""
    places = [place for place, column in enumerate(table.columns) if column.kind in ("quoted", "verdict")]
    return [row for row in table.rows if any(row[place] not in (None, "") for place in places)]
