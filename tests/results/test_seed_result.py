"""result.json from hand-made lines of metrics.jsonl."""

import pytest

from droptop.results.seed_result import seed_result

TASKS = ((0, 1), (2,))


def evaluation(*correct):
    """Return how many of ten samples per class are right, of the classes seen."""
    return {"all": {"n": [10 if c is not None else 0 for c in correct], "correct": [c or 0 for c in correct]}}


LINES = [
    {"step": 1, "task": 0, "dropped": {"share": 0.2, "chance": 0.1}},
    {"step": 2, "task": 0, "kappa": {"0": 4.5}, "eval": {"clean": evaluation(9, 7, None)}, "task_end": True},
    {"step": 3, "task": 1, "dropped": {"share": 0.4, "chance": 0.3}, "eval": {"clean": evaluation(5, 5, 2)}},
    {
        "step": 4,
        "task": 1,
        "kappa": {"0": 4.0, "2": 5.5},
        "eval": {"clean": evaluation(6, 4, 8)},
        "task_end": True,
        "prompts": [3, 1],
    },
]


def test_figures_are_those_after_tasks():
    result = seed_result(LINES, tuple("abc"), TASKS)
    assert (result["classes"], result["tasks"]) == (tuple("abc"), TASKS)
    figures = result["tests"]["clean"]
    assert figures["A"] == [80.0, 60.0]  # over the classes seen; the line in between does not count
    assert figures["matrix"] == [[80.0, None], [50.0, 80.0]]
    assert (figures["A_avg"], figures["A_last"]) == (70.0, 60.0)
    assert figures["F_last"] == 30.0  # of the first task, from 80 to 50
    assert "A_auc" not in figures


def test_anytime_accuracy_takes_every_evaluation():
    figures = seed_result(LINES, tuple("abc"), TASKS, eval_every=1)["tests"]["clean"]
    assert figures["A_auc"] == pytest.approx((2 * 80 + 1 * 40 + 1 * 60) / 4)  # each since the one before it


def test_dropped_kappa_and_prompts_are_summed_up():
    result = seed_result(LINES, tuple("abc"), TASKS)
    assert result["dropped"] == {"share": pytest.approx(30), "chance": pytest.approx(20)}
    assert result["kappa"] == {"0": 4.0, "2": 5.5}  # where they ended
    assert result["prompts"] == [[3, 1]]
    plain = [{key: line[key] for key in line.keys() & {"step", "task", "eval", "task_end"}} for line in LINES]
    assert seed_result(plain, tuple("abc"), TASKS).keys() == {"classes", "tasks", "tests", "guesses"}


def test_guesses_and_the_cue_are_kept():
    result = seed_result(LINES, tuple("abc"), TASKS, cue={"clean": True})
    assert result["cue"] == {"clean": True}
    thirds = pytest.approx((50 + 100 / 3) / 2)  # of two classes, then of three, with ten samples each
    assert result["guesses"] == {"clean": {"chance": thirds, "constant": thirds}}
