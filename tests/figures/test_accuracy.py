import matplotlib.pyplot as plt
import pytest

from droptop.figures.accuracy import accuracy_after_tasks, accuracy_matrices, in_rows


def summary(tests):
    matrix = [[[50.0, None], [40.0, 60.0]]]
    return {"seeds": [0], "tests": {name: {"A": [[50.0, 45.0]], "matrix": matrix} for name in tests}}


@pytest.mark.parametrize(("count", "lengths"), [(1, [1]), (5, [5]), (6, [3, 3]), (9, [5, 4]), (11, [4, 4, 3])])
def test_test_sets_stand_in_rows_of_equal_length(count, lengths):
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
