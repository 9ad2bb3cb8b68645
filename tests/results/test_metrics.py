import math

import numpy as np
import pytest

from droptop.results.metrics import accuracy, accuracy_matrix, anytime_accuracy, forgetting, metrics, worst_group

TASKS = ((0, 1), (2, 3), (4, 5))


def tally(correct, n):
    return {"n": n, "correct": correct}


AFTER = [
    {"all": tally([9, 7, 0, 0, 0, 0], [10, 10, 0, 0, 0, 0])},
    {"all": tally([5, 7, 8, 10, 0, 0], [10, 10, 10, 10, 0, 0])},
    {"all": tally([6, 2, 3, 5, 9, 9], [10, 10, 10, 10, 10, 10])},
]


def test_the_papers_formulas_by_hand():
    """a = [80], [60, 90], [40, 40, 90]; A = 80, 75, 56.7; f = (80 - 40), (90 - 40)."""
    matrix = accuracy_matrix(AFTER, TASKS)
    assert matrix == [[80, None, None], [60, 90, None], [40, 40, 90]]
    figures = metrics(AFTER, TASKS)
    assert figures["A_avg"] == pytest.approx((80 + 75 + 340 / 6) / 3)
    assert figures["A_last"] == pytest.approx(340 / 6)
    assert figures["F_last"] == pytest.approx((40 + 50) / 2)
    assert "follow" not in figures


def test_forgetting_takes_the_best_accuracy_before_the_last_task():
    assert forgetting([[50, None, None], [70, 80, None], [90, 60, 99]]) == pytest.approx(((70 - 90) + (80 - 60)) / 2)
    assert forgetting([[50.0]]) is None


def test_unequal_classes_weigh_by_their_samples():
    assert accuracy({"all": tally([1, 30], [10, 30])}) == pytest.approx(100 * 31 / 40)
    assert accuracy({"all": tally([1, 30], [10, 30])}, (0,)) == pytest.approx(10)


def test_groups_have_accuracies_of_their_own():
    after = [{"follow": tally([90, 80], [100, 100]), "contradict": tally([3, 9], [10, 10])}]
    figures = metrics(after, ((0, 1),))
    assert (figures["follow"], figures["contradict"], figures["worst"]) == (85, 60, 30)
    assert figures["A_last"] == pytest.approx(100 * 182 / 220)
    assert worst_group({"follow": tally([9, 8], [10, 10]), "contradict": tally([0, 4], [1, 8])}) == 50  # 1 is too few


def test_where_tasks_blur_a_matrix_has_only_what_its_tasks_have_shown():
    """After task 1 all classes but 0 and 1 have been seen; 2 and 3 count in A_1 but not in the matrix."""
    after = [
        {"all": tally([0, 0, 5, 5, 0, 0], [0, 0, 10, 10, 0, 0])},
        {"all": tally([0, 4, 8, 8, 1, 0], [0, 10, 10, 10, 10, 0])},
        {"all": tally([3, 3, 7, 9, 1, 9], [10, 10, 10, 10, 10, 10])},
    ]
    assert accuracy_matrix(after, TASKS) == [[None, None, None], [40, 80, None], [30, 80, 50]]
    figures = metrics(after, TASKS)
    assert figures["A_avg"] == pytest.approx((50 + 21 / 0.4 + 32 / 0.6) / 3)
    assert figures["F_last"] == pytest.approx(((40 - 30) + (80 - 80)) / 2)
    assert forgetting([[None, None], [30, 90]]) is None  # the first task was never seen before the last


def test_anytime_accuracy_by_hand():
    assert anytime_accuracy([(10, 80), (20, 60), (30, 10)]) == pytest.approx(50)  # evenly spaced: a mean
    assert anytime_accuracy([(10, 80), (15, 60), (30, 10)]) == pytest.approx((10 * 80 + 5 * 60 + 15 * 10) / 30)
    assert anytime_accuracy([(10, float("nan")), (15, 60), (30, 10)]) == pytest.approx((5 * 60 + 15 * 10) / 20)
    figures = metrics(AFTER, TASKS, [(1, AFTER[0]), (3, AFTER[1]), (7, AFTER[2])])
    assert figures["A_auc"] == pytest.approx((1 * 80 + 2 * 75 + 4 * 340 / 6) / 7)
    assert "A_auc" not in metrics(AFTER, TASKS)


def test_the_matrix_has_the_accuracy_of_every_task_after_every_task():
    random, tasks = np.random.default_rng(0), ((3, 0), (1,), (4, 2), (5,))
    for _ in range(20):
        n = random.integers(0, 3, (4, 2, 6)) * random.integers(0, 2, (4, 1, 6))  # a task may have no sample yet
        correct = random.integers(0, n + 1)
        after = [
            {name: tally(correct[i, g].tolist(), n[i, g].tolist()) for g, name in enumerate("ab")} for i in range(4)
        ]
        for i, row in enumerate(accuracy_matrix(after, tasks)):
            slow = [accuracy(after[i], classes) for classes in tasks[: i + 1]]
            assert row == [None if math.isnan(value) else value for value in slow] + [None] * (3 - i)
