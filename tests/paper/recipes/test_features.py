"""features: shortcut features of trained nets, on hand-made statistics."""

import numpy as np
import pytest

from droptop.paper import find
from droptop.paper.cell_results import CellResults
from droptop.paper.recipes import features
from droptop.paper.recipes.feature_definitions import FeatureStatistics
from droptop.system.files import write_json

from ..invented import quick_scope


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


def test_shortcuts_are_shown_against_the_others_at_every_threshold(tmp_path):
    recipe = find("features")
    results = CellResults(recipe, quick_scope(recipe), tmp_path)
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
