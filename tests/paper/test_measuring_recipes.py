"""The arithmetic of recipes that measure something of their own, on hand-made runs."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from droptop import BadRequest, Samples
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Recipe, Scope
from droptop.paper.recipes import colours, features, histogram, impact, maps, overhead
from droptop.paper.recipes.feature_definitions import FeatureStatistics
from droptop.paper.tables import Difference
from droptop.results.metrics import Tally
from droptop.runs.build import build_stream
from droptop.runs.config import configure
from droptop.runs.records import Maps, Moment
from droptop.system.files import write_json

RECIPES = {
    recipe.name: recipe
    for module in (colours, impact, overhead, maps, histogram, features)
    for recipe in module.RECIPES
}


def scope(recipe: Recipe, **options) -> Scope:
    return Scope(recipe.methods, recipe.quick_data, seeds=2, quick=True, options=options)


# -- shortcut-mnist ---------------------------------------------------------------------------------------------------


def evaluation(*correct: int) -> dict[str, Tally]:
    """Of ten images each of four classes, in two groups."""
    seen = [10 if right >= 0 else 0 for right in correct]
    return {
        "follow": {"n": seen, "correct": [max(right, 0) for right in correct]},
        "contradict": {"n": [0] * 4, "correct": [0] * 4},
    }


LINES = [
    {"step": 5, "eval": {"biased": evaluation(1, 2, -1, -1)}},
    {"step": 6},
    {"step": 10, "eval": {"biased": evaluation(10, 10, -1, -1)}, "task_end": True},
    {"step": 15, "eval": {"biased": evaluation(9, 8, 0, 1)}},
    {"step": 20, "eval": {"biased": evaluation(7, 6, 10, 5)}, "task_end": True},
]


def test_accuracy_of_either_task_while_the_second_is_learned():
    assert colours.curve(LINES, "biased", 0) == {5: 85, 10: 65}
    assert colours.curve(LINES, "biased", 1) == {5: 5, 10: 75}
    curve = {5: 85.0, 10: 65.0, 15: 72.0}
    assert [colours.summary(curve, figure) for figure in colours.FIGURES["b"]] == [74, 65, 72]


def test_whether_colours_were_learned(tmp_path, monkeypatch):
    recipe = RECIPES["shortcut-mnist"]
    results = CellResults(recipe, scope(recipe), tmp_path)
    lines = [
        {"step": 5},
        {"step": 10, "task_end": True, "eval": {"random": evaluation(6, 5, -1, -1)}},
        {"step": 20, "task_end": True, "eval": {"random": evaluation(1, 2, 10, 8)}},
    ]
    monkeypatch.setattr(CellResults, "by_seed", lambda self, cell: {0: {}, 1: {}})
    monkeypatch.setattr(CellResults, "metrics", lambda self, cell, seed: lines)
    assert colours.in_random_colours(results, "fashion-colour", "a", 0) == {0: 55, 1: 55}
    assert colours.in_random_colours(results, "fashion-colour", "b", 1) == {0: 90, 1: 90}


def test_the_colourings_are_the_paper_s():
    recipe = RECIPES["shortcut-mnist"]
    configs = [
        recipe_config
        for block in recipe.study(Scope(("er",), ("biased-mnist",), 2))
        for recipe_config in Scope(("er",), ("biased-mnist",), 2).expand(block)
    ]
    plain, a, b, one = configs
    assert plain.options.data == "split-mnist"
    assert all(config.stream.split == "0,1/2,3" for config in configs)
    assert {(config.learner.lr, config.learner.memory, config.options.debias) for config in configs} == {
        (0.001, 200, "none")
    }
    assert [config.stream.colours.split(",")[:4] for config in (a, b, one)] == [
        ["red", "lime", "lime", "lime"],
        ["lime", "lime", "red", "lime"],
        ["lime"] * 4,
    ]
    assert {config.stream.correlation for config in (a, b, one)} == {1.0}


@pytest.mark.parametrize(
    ("plain", "one", "verdict"),
    [
        (Difference(-5, -7, -3, 0.01), Difference(-3, -5, -1, 0.03), "yes"),
        (Difference(-5, -7, -3, 0.01), Difference(-3, -7, 1, 0.2), "than plain"),
        (Difference(-5, -11, 1, 0.1), Difference(-3, -5, -1, 0.03), "than one colour"),
        (Difference(5, 3, 7, 0.01), Difference(3, 1, 5, 0.03), "no"),
        (Difference(-5), Difference(-3), "cannot tell"),
    ],
)
def test_the_verdict_on_the_colours(plain, one, verdict):
    assert colours.verdict([plain, one]) == verdict


# -- shortcut-impact --------------------------------------------------------------------------------------------------


def test_ordinary_training_sees_as_many_images_as_all_tasks(tmp_path):
    recipe = RECIPES["shortcut-impact"]
    quick = scope(recipe, limit=100)
    by_method = {}
    for block in recipe.study(quick):
        for config in quick.expand(block):
            by_method.setdefault(config.options.method, []).append(config.options.limit)
    assert by_method == {"er": [100, 100], "joint": [500, 500]}


def test_ordinary_training_of_a_quick_look_has_one_task_of_the_same_classes():
    recipe = RECIPES["shortcut-impact"]
    quick = scope(recipe, **recipe.quick_options())
    configs = [quick.config(impact.cell(quick, "fashion-background", "only_fg", method)) for method in ("er", "joint")]
    tasks = [build_stream(config, 0).tasks for config in configs]
    assert tasks == [((0, 1), (2, 3), (4, 5)), ((0, 1, 2, 3, 4, 5),)]
    assert configs[1].options.limit == 3 * configs[0].options.limit


def both_trainings(out: Path, data: str) -> CellResults:
    """Made up: foregrounds are ten points better, and forget five points less."""
    recipe = RECIPES["shortcut-impact"]
    results = CellResults(recipe, Scope(recipe.methods, (data,), seeds=2), out)
    for number, kind in enumerate(("only_bg", "only_fg")):
        test_names = [impact.test_of(data, kind, tested) for tested in impact.TESTED]
        for method in ("er", "joint"):
            for seed in (0, 1):
                value = 10 * number + seed
                tests = {
                    test: {
                        "A": [50 + value, 30 + value],
                        "A_avg": 40 + value,
                        "F_last": 20.0 + seed - 5 * number,
                        "A_last": 30 + value,
                    }
                    for test in test_names
                }
                place = results.run_folder(impact.cell(results.scope, data, kind, method)) / f"seed-{seed}"
                place.mkdir(parents=True)
                write_json(place / "result.json", {"classes": [], "tasks": [], "tests": tests})
    assert results.missing == 0
    return results


def test_figures_of_both_trainings_side_by_side(tmp_path):
    table = impact.table(both_trainings(tmp_path, "fashion-background"), "fashion-background")
    rows = {row[1]: row for row in table.without_paper().rows[:5]}
    assert list(rows) == ["A_1", "A_2", "A_avg", "F_last", "ordinary training"]
    assert [str(cell) for cell in rows["A_2"][2:]] == [
        "30.5 ± 0.5",
        "40.5 ± 0.5",
        "2",
        "+10.0 (+10.0 to +10.0), p < 0.001",
        "32.8%",
    ]
    assert rows["F_last"][-1].value == pytest.approx(100 * 5 / 20.5)  # less forgetting is a gain
    assert all(row[2:5] == [None, None, None] and row[-1] == "" for row in table.rows)  # it is not the paper's stream
    assert (
        "Nothing is quoted or judged of fashion-background: the paper's figures are of Split ImageNet-9." in table.notes
    )


def test_both_trainings_beside_the_paper_s(tmp_path):
    table = impact.table(both_trainings(tmp_path, "split-tiny-imagenet9"), "split-tiny-imagenet9")
    rows = {row[1]: row for row in table.rows[:5]}
    assert [str(cell) for cell in rows["A_avg"][2:5]] == ["31.9 ± 1.2", "34.4 ± 0.6", "7.6%"]
    assert rows["A_avg"][-1] == "no claim"  # +2.5 ± 1.3
    assert rows["F_last"][-1] == "partly"  # -5.1 ± 2.3; here -5.0
    assert all(row[-1] == "" for row in table.rows[5:])  # tested on the originals
    assert any(note.startswith("Tiny-ImageNet-9 stands in for Split ImageNet-9") for note in table.notes)


# -- overhead ---------------------------------------------------------------------------------------------------------


def test_added_cost_in_both_of_the_paper_s_terms():
    time, memory = overhead.added(42.55, 49.26), overhead.added(4.509, 4.563)
    assert [share.value for share in time] == pytest.approx([15.77, 13.62], abs=0.005)
    assert [share.value for share in memory] == pytest.approx([1.198, 1.183], abs=0.0005)
    assert [share.value for share in overhead.added(None, 1.0)] == [None, None]


def test_costs_are_read_from_the_measurements(tmp_path):
    recipe = RECIPES["overhead"]
    results = CellResults(recipe, scope(recipe), tmp_path)
    costs = {"ER": 10.0, "ER + DropTop, probe of a batch": 12.0, "ER + DropTop, probe of the whole memory": 16.0}
    for number in overhead.rounds(results):
        for arm, cost in costs.items():
            results.measurements.once(
                overhead.key(results, "fashion-sticker", arm, number),
                lambda cost=cost, number=number: {"ms": cost + number, "mib": 100.0},
            )
    table = overhead.table(results, "fashion-sticker").without_paper()
    assert [str(cell) for cell in table.rows[5]] == [
        "",
        "ER + DropTop, probe of the whole memory",
        "16.5 ± 0.5",
        "57.1%",
        "36.4%",
        "2",
        "+6.0 (+6.0 to +6.0), p < 0.001",
    ]
    whole = overhead.table(results, "fashion-sticker")
    assert {row[2] for row in whole.rows} == {""}  # the paper's costs are of another stream
    assert whole.notes[-1].startswith("Nothing is quoted or judged of fashion-sticker")
    [memory, *_] = overhead.table(results, "split-tiny-imagenet9").rows
    assert memory[2] == "4.509 GB"
    assert overhead.peak_mib() > 50  # of a process with torch in it
    names = {overhead.key(results, "fashion-sticker", arm, 0) for arm in costs}
    assert len(names) == 3  # a name says all that its value depends on


# -- maps and histogram -----------------------------------------------------------------------------------------------


def test_moments_from_the_first_to_the_last():
    moments = [Moment(step, 0, np.zeros((1, 2, 2)), None) for step in range(10)]
    assert maps.evenly_spaced(moments, 4) == [0, 3, 6, 9]
    assert maps.evenly_spaced(moments[:3], 4) == [0, 1, 2]


def test_attention_on_the_shortcut_of_classes_seen_by_then():
    covered = np.zeros((4, 4, 5))
    covered[:, 0, 0] = 1
    on, off = covered.copy(), -covered
    maps = Maps(
        np.zeros((0, 1, 1, 3)),
        ["a", "b", "c", "d"],
        np.array([0, 1, 2, 3]),
        covered,
        [
            Moment(3, 0, np.concatenate([on[:2], off[2:]]), None),  # at first only classes 0 and 1 are seen
            Moment(6, 1, np.concatenate([on[:1], off[1:]]), None),
        ],
    )
    results = histogram.attended(None, maps, [[0, 1], [2, 3]], seed=0)
    assert results.steps == [3, 6]
    assert results.ranks[:, -1].tolist() == [100, 25]
    assert results.chance == pytest.approx([5, 5])
    arms = {arm: {0: results, 1: results} for arm in ("none", "droptop")}
    recipe = RECIPES["histogram"]
    table = histogram.table(CellResults(recipe, scope(recipe), Path()), "fashion-sticker", arms)
    assert [str(cell) for cell in table.rows[0]] == [
        "3",
        "5.0 ± 0.0",
        "100.0 ± 0.0",
        "+95.0 (+95.0 to +95.0), p < 0.001",
        "100.0 ± 0.0",
        "+0.0 (+0.0 to +0.0), p = 1.000",
        "2",
    ]


def test_seeds_without_maps_are_named(tmp_path, monkeypatch):
    """As in a folder that another recipe filled: the first seed has a few images, one of them has none."""
    recipe = RECIPES["histogram"]
    results = CellResults(recipe, scope(recipe), tmp_path)
    covered = np.zeros((4, 4, 5))
    covered[:, 0, 0] = 1
    few = Maps(
        np.zeros((0, 1, 1, 3)),
        list("abcd"),
        np.array([0, 1, 2, 3]),
        covered,
        [Moment(3, 0, covered, None), Moment(6, 1, covered[:3], None)],
    )  # a map less: only the first three count
    all_of = histogram.Attended(histogram.TRUTH, [3, 6], np.zeros((2, 20)), np.zeros(2))
    fewer = histogram.attended(None, few, [[0, 1], [2, 3]], seed=0)
    assert (fewer.images, fewer.ranks[:, -1].tolist()) == (3, [100, 100])
    monkeypatch.setattr(CellResults, "by_seed", lambda self, cell: dict.fromkeys(range(2 + (cell["debias"] == "none"))))
    table = histogram.table(results, "fashion-sticker", {"none": {0: fewer}, "droptop": {0: all_of, 1: all_of}})
    assert "** ER: no maps of seed 1, 2; ER: maps of 3 images of seed 0. Cells" in table.notes[-1]
    empty = histogram.table(results, "fashion-sticker", {"none": {}, "droptop": {0: all_of, 1: all_of}})
    assert empty.rows == []
    assert "ER: no maps of seed 0, 1, 2." in empty.notes[-1]
    whole = histogram.table(
        results,
        "fashion-sticker",
        {"none": dict.fromkeys(range(3), all_of), "droptop": dict.fromkeys(range(2), all_of)},
    )
    assert len(whole.notes) == 1


def test_maps_of_arms_that_differ_in_images_are_drawn():
    import matplotlib.pyplot as plt

    images = np.zeros((3, 4, 4, 3), np.uint8)
    more, fewer = (
        Maps(
            images[:count],
            list("abc")[:count],
            np.arange(count),
            None,
            [Moment(1, 0, np.zeros((3, 2, 2)), None), Moment(2, 0, np.zeros((2, 2, 2)), None)],
        )
        for count in (3, 2)
    )
    figure = maps.draw_maps({"none": more, "droptop": fewer})
    assert len(figure.axes) == 2 * 2 * 3  # two images, two arms, the image and two moments
    plt.close(figure)


def test_the_background_is_what_foregrounds_leave_black(monkeypatch):
    x = torch.zeros(4, 3, 4, 4, dtype=torch.uint8)
    x[:, 1, :2] = 200  # the upper half is foreground
    x[3] = 5  # nearly black, as a JPEG has it
    stream = SimpleNamespace(tasks=((1, 0),), tests={"only_fg": Samples(x, torch.tensor([0, 0, 1, 1]))})
    monkeypatch.setattr(histogram, "build_stream", lambda config, seed: stream)
    maps = Maps(np.zeros((0, 1, 1, 3)), [], np.array([1, 0, 1]), None, [Moment(1, 0, np.zeros((3, 2, 2)), None)])
    covered = histogram.background(configure("fashion"), maps, 0)  # rows 2, 0, 3: a class each in turn
    assert covered.tolist() == [[[0, 0], [1, 1]], [[0, 0], [1, 1]], [[1, 1], [1, 1]]]
    with pytest.raises(BadRequest, match="not those of the originals"):
        histogram.background(configure("fashion"), maps._replace(labels=np.array([0, 1, 0])), 0)
    stream.tests = {}
    with pytest.raises(BadRequest, match="nobody knows where the shortcut of fashion is"):
        histogram.background(configure("fashion"), maps, 0)


# -- features ---------------------------------------------------------------------------------------------------------


def test_feature_statistics_survive_json():
    statistics = FeatureStatistics(
        np.array([1.0, 2.5]), np.array([0.0, 1 / 3]), np.array([np.nan, 0.5]), np.array([0.0, -1.0]), 0.25, 0.5, None
    )
    noted = {name: features.to_json(value) for name, value in vars(statistics).items()}
    assert noted["votes"] == [None, 0.5]
    again = features.from_json(noted)
    assert again.unseen == pytest.approx(statistics.unseen, rel=1e-5)
    assert np.isnan(again.votes[0])
    assert (again.bias, again.mistaken, again.response) == (0.25, 0.5, None)
    assert features.series({3: again}, "times as active", 0.1, 0.1) == {3: pytest.approx(250)}


def test_shortcuts_against_the_others_at_every_threshold(tmp_path):
    recipe = RECIPES["features"]
    results = CellResults(recipe, scope(recipe), tmp_path)
    for arm in ("none", "droptop"):
        for seed in (0, 1):
            options = features.cell("fashion-sticker", arm)
            place = results.run_folder(options) / f"seed-{seed}"
            place.mkdir(parents=True)
            write_json(place / "result.json", {"tests": {"biased": {}}})
            results.measurements.once(
                features.key(results, options, seed),
                lambda seed=seed: {
                    "seen": [1.0, 1.0, 1.0, 1.0],
                    "unseen": [0.6, 0.6, 0.6, 0.0],
                    "votes": [1.0, 0.5, 0.0, 0.25 * seed],
                    "pull": [0.0] * 4,
                    "bias": 0.0,
                    "mistaken": 0.5,
                    "response": None,
                },
            )
    table = features.thresholds(results, "fashion-sticker")
    assert [column.name for column in table.columns][-1] == "property 2: votes, shortcuts - others"
    assert [str(cell) for cell in table.rows[0]] == [
        "ER",
        "0.5",
        "0.5",
        "75.0 ± 0.0",
        "+0.0 (+0.0 to +0.0), p = 1.000",
        "+37.5 (-121.3 to +196.3), p = 0.205",
    ]
    assert [str(cell) for cell in table.rows[1]][3:] == ["0.0 ± 0.0", "-", "-"]  # no shortcut, nothing to hold against
    assert len(table.rows) == 18


def test_every_recipe_s_cells_can_be():
    assert set(RECIPES) == {"shortcut-mnist", "shortcut-impact", "overhead", "maps", "features", "histogram"}
    for recipe in RECIPES.values():
        quick = Scope(recipe.methods, recipe.quick_data, 2, True, recipe.quick_options())
        assert recipe.study(quick) == [] or all(quick.expand(block) for block in recipe.study(quick))
