from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from droptop.figures.over_steps import intensities, shortcut_shares
from droptop.runs.config import configure
from droptop.runs.folder import RunFolder


@pytest.mark.parametrize("classes", [20, 21])
def test_many_classes_share_a_heat_map(classes):
    run = RunFolder(Path("out"), configure("fashion", gamma=5.0, kappa_0=4.0).noted())
    result = {"classes": [f"class {n}" for n in range(classes)], "tasks": [[*range(2, classes)], [0, 1]]}
    lines = [{"step": step} for step in range(1, 11)]
    lines[3]["kappa"] = {"2": 3.0, "5": 4.5}
    lines[5]["task_end"] = True
    lines[8]["kappa"] = {"0": 2.0}
    figure = intensities(run, result, lines, "title", 0)
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


def test_seeds_of_unequal_lengths_share_a_figure():
    """Where the seed says which classes are rare, it also says how many batches there are."""
    lines = [{"step": step, "dropped": {"share": 0.2, "chance": 0.1}} for step in range(1, 21)]
    figure = shortcut_shares([lines, lines[:18]], "title", window=4)
    assert [len(line.get_xdata()) for line in figure.axes[0].lines[:2]] == [15, 15]
    plt.close(figure)
