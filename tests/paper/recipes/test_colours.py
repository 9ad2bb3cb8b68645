"""shortcut-mnist: whether a colour was learned, on hand-made runs."""

import pytest

from droptop.paper import find
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Scope
from droptop.paper.recipes import colours
from droptop.paper.tables import Difference
from droptop.results.metrics import Tally

from ..invented import quick_scope


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
    recipe = find("shortcut-mnist")
    results = CellResults(recipe, quick_scope(recipe), tmp_path)
    lines = [
        {"step": 5},
        {"step": 10, "task_end": True, "eval": {"random": evaluation(6, 5, -1, -1)}},
        {"step": 20, "task_end": True, "eval": {"random": evaluation(1, 2, 10, 8)}},
    ]
    monkeypatch.setattr(CellResults, "by_seed", lambda self, cell: {0: {}, 1: {}})
    monkeypatch.setattr(CellResults, "metrics", lambda self, cell, seed: lines)
    assert colours.in_random_colours(results, "fashion-colour", "a", 0) == {0: 55, 1: 55}
    assert colours.in_random_colours(results, "fashion-colour", "b", 1) == {0: 90, 1: 90}


def test_colourings_are_the_papers():
    recipe = find("shortcut-mnist")
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
