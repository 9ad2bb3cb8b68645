"""Curves over steps, from hand-made lines of metrics.jsonl."""

import pytest

from droptop.results.series import kappa_series, shortcut_series, window_of


def test_steps_without_drops_do_not_count_in_the_mean():
    one = [{"dropped": {"share": 0.2}}, {}, {}, {"dropped": {"share": 0.6}}]
    two = [{"dropped": {"share": 0.4}}, {}, {}, {}]
    steps, values = shortcut_series([one, two], "share", window=2)
    assert (steps.tolist(), values.tolist()) == ([2, 4], pytest.approx([30.0, 60.0]))


@pytest.mark.parametrize(("steps", "points"), [(3, 3), (10, 9), (80, 66)])
def test_short_runs_have_a_curve_too(steps, points):
    seeds = [[{"dropped": {"share": 0.5}}] * steps] * 2
    assert len(shortcut_series(seeds, "share")[0]) == points == steps + 1 - window_of(seeds)


LINES = [
    {"step": 1},
    {"step": 2, "kappa": {"0": 4.5}, "task_end": True},
    {"step": 3, "kappa": {"0": 4.0, "2": 5.5}},
    {"step": 4, "kappa": {"3": 6.0}},
]


def test_kappa_begins_with_its_task_or_its_first_change_and_lasts_to_the_end():
    curves = kappa_series(5.0, True, ["a", "b", "c", "d"], [[0, 1], [2], [3]], LINES)
    assert curves == {
        "a": ([0, 2, 3, 4], [5.0, 4.5, 4.0, 4.0]),
        "b": ([0, 4], [5.0, 5.0]),
        "c": ([2, 3, 4], [5.0, 5.5, 5.5]),
        "d": ([4, 4, 4], [5.0, 6.0, 6.0]),  # its task has not come, but it changed
    }
    without = [{name: value for name, value in line.items() if name != "kappa"} for line in LINES]
    assert kappa_series(5.0, True, ["a", "b", "c", "d"], [[0, 1], [2], [3]], without).keys() == {"a", "b", "c"}


def test_a_common_kappa_has_one_curve():
    lines = [{"step": 1}, {"step": 2, "kappa": {"0": 4.5}}]
    assert kappa_series(5.0, False, ["a", "b"], [[0], [1]], lines) == {"all classes": ([0, 2, 2], [5.0, 4.5, 4.5])}
