"""Every recipe: its cells exist, and what it shows is right, by numbers that were not measured but made up."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from droptop.paper import claims, every_recipe, runner
from droptop.paper.cell_results import CellResults, average, difference, mean, paired, relative
from droptop.paper.recipe import Scope
from droptop.paper.recipes import main_tables, readings
from droptop.paper.write import Heading, write
from droptop.runs.config import configure
from droptop.runs.folder import seed_folder
from droptop.sweeps.grid import folder_name, read_study

RECIPES = every_recipe()
TESTS = {
    "split-imagenet9": ("original", "only_fg", "stylized"),
    "fashion-sticker": ("biased", "removed", "random"),
    "split-tiny-imagenet9": ("original", "only_fg", "stylized"),
}
TASKS = [[0, 1], [2, 3]]
READ_MORE = {"shortcut-mnist", "shortcut-impact", "maps", "histogram"}  # than results: see test_measuring_recipes.py


def scope_of(recipe, quick=False, **options):
    data = recipe.quick_data if quick else recipe.data
    return Scope(recipe.methods, data, 3, quick, (recipe.quick_options() if quick else {}) | options)


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
            lines = [{"step": step} | ({"task_end": True} if step % 120 == 0 else {}) for step in range(1, 241)]
            lines[59]["kappa"] = {"0": 4.5}
            (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


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
def test_a_recipe_shows_that_nothing_is_there(name, tmp_path):
    results = CellResults(RECIPES[name], scope_of(RECIPES[name]), tmp_path)
    assert results.missing == 3 * len(results.configs)
    runner.outputs(results)


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].measure is None and name not in READ_MORE])
def test_a_recipe_shows_what_is_there(name, tmp_path):
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


def test_stand_ins_are_named_as_what_they_are(tmp_path):
    recipe = RECIPES["table1"]
    scope = Scope(("er",), ("split-tiny-imagenet9",), 2)
    results = CellResults(recipe, scope, tmp_path)
    invent(results)
    [table] = runner.outputs(CellResults(recipe, scope, tmp_path))
    assert table.rows[0][0] == "Tiny-ImageNet-9"
    assert str(table.rows[0][3]) == "46.1 ± 0.2"  # the paper's ImageNet-9
    assert any(note.startswith("Tiny-ImageNet-9 stands in for Split ImageNet-9") for note in table.notes)


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


def shown(name, scope, out):
    """The first table of a recipe, of invented results."""
    invent(CellResults(RECIPES[name], scope, out))
    return runner.outputs(CellResults(RECIPES[name], scope, out))[0]


def quotes(table):
    """Rows in which something is quoted or judged."""
    places = [place for place, column in enumerate(table.columns) if column.kind in ("quoted", "verdict")]
    return [row for row in table.rows if any(row[place] not in (None, "") for place in places)]


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
def test_what_the_paper_says_of_something_else_is_not_quoted(name, methods, data, tmp_path):
    table = shown(name, Scope(methods, data, 2), tmp_path)
    assert quotes(table) == []
    assert any(note.startswith("Nothing is quoted or judged of ") for note in table.notes)
    assert not any("Italics" in note for note in table.notes)


def test_a_mean_of_fewer_methods_is_not_held_against_the_papers(tmp_path):
    scope = Scope(("er", "mir"), ("split-cifar100", "split-cifar10", "split-tiny-imagenet9"), 2)
    table = shown("ablation", scope, tmp_path)
    assert len(quotes(table)) == 2 * 4  # either method's rows; not the mean's
    assert (
        "Nothing is quoted or judged of the mean of these methods: the paper's is of ER, DER++, MIR, GSS, ASER."
        in table.notes
    )
    assert any(note.startswith("Tiny-ImageNet-9 stands in for Split ImageNet-9") for note in table.notes)


def test_each_stream_of_validity_is_quoted_by_itself(tmp_path):
    table = shown("validity", Scope(("er",), ("fashion-sticker", "split-cifar10"), 2), tmp_path)
    assert [str(row[2]) for row in quotes(table)] == ["82.1 ± 0.6", "61.0 ± 0.6", "61.5 ± 0.2"]
    assert quotes(table) == [row for row in table.rows[7:] if row[2] is not None]


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


def test_readings_that_are_the_default_have_no_row():
    """CIFAR's stem is 3x3 already; at 64 px it is 7x7/2."""
    recipe = RECIPES["readings"]
    names = {data: readings.rows_of(CellResults(recipe, scope_of(recipe), None), data) for data in recipe.data}
    assert "ER, stem 3x3" not in names["split-cifar10"]
    assert "ER, stem 7x7/2" not in names["split-tiny-imagenet9"]
    assert "ER, stem 3x3" in names["split-tiny-imagenet9"]
    assert {name for name in names["split-cifar10"] if name.startswith(("GSS", "ASER"))} == {
        "GSS, as it is",
        "GSS, separate forward passes",
        "GSS, separate forward passes, lr 0.2",
        "GSS, no augmentation",
        "ASER, as it is",
        "ASER, separate forward passes",
        "ASER, no augmentation",
    }


@pytest.mark.parametrize("name", ["readings", "sensitivity"])
def test_biased_and_unbiased_sets_are_shown(name, tmp_path):
    """Each in a figure or a part of one; whichever cells are there."""
    recipe = RECIPES[name]
    whole = Scope(("er", "derpp"), ("fashion-sticker",), 2)
    invent(CellResults(recipe, replace(whole, methods=("derpp",)), tmp_path))
    results = CellResults(recipe, whole, tmp_path)
    files = write(recipe.show(results), Heading("", [], []), tmp_path, name)
    page = (tmp_path / f"{name}.md").read_text()
    for test in TESTS["fashion-sticker"]:
        assert page.count(f"| fashion-sticker, {test}") == (1 if name == "readings" else 2)
    assert re.search(
        r"\| DER\+\+, as it is \| A_avg .* \d\d\.\d ± \d"
        if name == "readings"
        else r"fashion-sticker, removed, DER\+\+ \| none \|  \| \d\d\.\d ± \d",
        page,
    )
    suffixes = ("",) if name == "readings" else ("", "-removed", "-random")
    drawn = {f"{name}{suffix}.png" for suffix in suffixes}
    assert {file.name for file in files if file.suffix == ".png"} == drawn


def test_readings_cover_what_the_paper_leaves_open():
    varied = {name for cell in readings.READINGS.values() for name in cell}
    assert varied >= {
        "replay_forward",
        "attention_norm",
        "stem",
        "augment",
        "probe",
        "rounding",
        "shift",
        "p_counter",
        "lr",
    }


def test_files_of_a_stream_are_named_alike_whichever_comes_first():
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


def test_figures_of_series():
    assert average([{0: 1.0, 1: 2.0}, {1: 4.0, 2: 9.0}]) == {1: 3.0}
    assert average([]) == {}
    assert mean({}).mean is None
    assert (mean({3: 5.0}).mean, mean({3: 5.0}).error) == (5.0, None)
    assert difference({0: 1.0, 1: 2.0}, {1: 4.0, 2: 9.0}).diff == 2.0
    assert relative({0: 40.0}, {0: 30.0}, "F_last") == 25.0
    assert relative({0: 40.0}, {0: 30.0}, "A_avg") == -25.0
    assert relative({0: 40.0}, {}, "A_avg") is None


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
