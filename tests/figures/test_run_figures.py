import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

from droptop.figures import run_figures as figures
from droptop.figures.run_figures import accuracy_after_tasks, accuracy_matrices, in_rows, intensities
from droptop.runs.config import configure


def summary(tests):
    matrix = [[[50.0, None], [40.0, 60.0]]]
    return {"seeds": [0], "tests": {name: {"A": [[50.0, 45.0]], "matrix": matrix} for name in tests}}


@pytest.mark.parametrize(("count", "lengths"), [(1, [1]), (5, [5]), (6, [3, 3]), (9, [5, 4]), (11, [4, 4, 3])])
def test_rows_of_test_sets(count, lengths):
    names = [f"set {n}" for n in range(count)]
    rows = in_rows(names)
    assert [len(row) for row in rows] == lengths
    assert [name for row in rows for name in row] == names


@pytest.mark.parametrize("draw", [accuracy_after_tasks, accuracy_matrices])
def test_each_test_set_has_its_panel(draw):
    tests = [f"set {n}" for n in range(9)]
    arms = {"none": summary(tests), "droptop": summary(tests)}
    figure = draw(arms, "title")
    titles = [ax.get_title() for ax in figure.axes if ax.axison and ax.get_title()]
    expected = [f"{arm}: {test}" for row in (tests[:5], tests[5:]) for arm in arms for test in row]
    assert titles == (expected if draw is accuracy_matrices else [f"test set: {test}" for test in tests])
    assert max(figure.get_size_inches()) < 18
    plt.close(figure)


@pytest.mark.parametrize("classes", [20, 21])
def test_many_classes_share_a_heat_map(classes):
    config = configure("fashion", gamma=5.0, kappa_0=4.0)
    result = {"classes": [f"class {n}" for n in range(classes)], "tasks": [[*range(2, classes)], [0, 1]]}
    lines = [{"step": step} for step in range(1, 11)]
    lines[3]["kappa"] = {"2": 3.0, "5": 4.5}
    lines[5]["task_end"] = True
    lines[8]["kappa"] = {"0": 2.0}
    figure = intensities(config, result, lines, "title", 0)
    if classes == 20:
        assert len(figure.axes) == 20
    else:
        ax = figure.axes[0]
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names == [f"class {n}" for n in (*range(2, classes), 0, 1)]
        cells = dict(zip(names, np.ma.filled(ax.images[0].get_array(), np.nan)))
        assert cells["class 2"].tolist() == [4, 4, 4, 4, 3, 3, 3, 3, 3, 3]
        assert cells["class 3"].tolist() == [4] * 10
        assert np.array_equal(cells["class 0"], [np.nan] * 6 + [4, 4, 4, 2], equal_nan=True)
        assert np.array_equal(cells["class 1"], [np.nan] * 6 + [4] * 4, equal_nan=True)
        assert ax.images[0].get_clim() == (0, 5)
    plt.close(figure)


def test_letters_that_a_font_lacks_are_told_of_in_one_way(tmp_path):
    """So that whoever shows every warning once shows one, not one a letter."""
    figure = plt.figure()
    figure.suptitle("猫 and 犬")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figures._save(figure, tmp_path, "letters")
    assert {str(each.message) for each in told} == {figures.LACKING}
    assert (tmp_path / "figures/letters.png").stat().st_size > 1000
