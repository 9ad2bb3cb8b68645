"""The colour of a cell says whether it is good."""

import matplotlib.pyplot as plt
import pytest

from droptop.figures.heat_map import draw_cell
from droptop.results.statistics import paired_effect


@pytest.mark.parametrize(
    ("number", "cost", "good"), [(20.0, False, True), (-20.0, False, False), (20.0, True, False), (-20.0, True, True)]
)
def test_costs_have_the_colour_of_losses(number, cost, good):
    figure, ax = plt.subplots()
    draw_cell(ax, 0, 0, paired_effect([50.0, 51.0], [50.0 + number, 51.5 + number]), 20.0, cost)
    red, _, blue, _ = ax.patches[0].get_facecolor()
    plt.close(figure)
    assert (red > blue) == good
    assert ax.texts[0].get_text() == f"{number + 0.25:+.1f}"
