"""The content of result.json: the figures of one seed, from the lines of its metrics.jsonl."""

from collections.abc import Mapping
from typing import Any

from droptop.results.metrics import Evaluation, Tasks, accuracy_curve, accuracy_matrix, column_figures, guesses, metrics


def seed_result(
    lines: list[dict[str, Any]],
    classes: tuple[str, ...],
    tasks: Tasks,
    eval_every: int | None = None,
    cue: Mapping[str, bool] | None = None,
) -> dict[str, Any]:
    """Return the figures of one seed; with `eval_every`, the anytime accuracy too.

    `cue` says which test sets have the shortcut as the training images have it, and which lack it.
    """
    ends = [line for line in lines if line.get("task_end")]
    after: list[dict[str, Evaluation]] = [line["eval"] for line in ends]
    grouped: dict[str, dict[str, Evaluation]] = ends[-1].get("groups", {})  # by test set and column
    tests = {}
    for name in after[0]:
        evaluations, of_test = [evaluation[name] for evaluation in after], grouped.get(name, {})
        anytime = [(line["step"], line["eval"][name]) for line in lines if "eval" in line and eval_every]
        tests[name] = {
            **metrics(evaluations, tasks, anytime),
            **{name: value for column in of_test for name, value in column_figures(column, of_test[column]).items()},
            "A": accuracy_curve(evaluations),
            "matrix": accuracy_matrix(evaluations, tasks),
        }
    result: dict[str, Any] = {"classes": classes, "tasks": tasks, "tests": tests}
    result["guesses"] = {name: guesses([evaluation[name] for evaluation in after], tasks) for name in tests}
    if cue is not None:
        result["cue"] = dict(cue)
    dropped = [line["dropped"] for line in lines if "dropped" in line]
    if dropped:  # mean over the stream, in percent
        result["dropped"] = {
            name: 100 * sum(step[name] for step in dropped) / len(dropped) for name in ("share", "chance")
        }
    if used := [line["prompts"] for line in lines if "prompts" in line]:
        result["prompts"] = used  # how often each prompt was chosen up to the end of every task
    if moved := {group: kappa for line in lines for group, kappa in line.get("kappa", {}).items()}:
        result["kappa"] = moved  # the last value of every intensity that left kappa_0
    return result
