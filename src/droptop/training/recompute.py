"""Compute the figures of a finished seed once more: from its metrics, and by its last checkpoint on its test sets."""

from typing import Any

from droptop.errors import BadCheckpoint, BadRequest
from droptop.nets import library_of
from droptop.results.seed_result import seed_result
from droptop.runs.build import build_stream
from droptop.runs.environment import environment
from droptop.runs.folder import read_metrics, read_result
from droptop.runs.loading import SeedPlace, restore
from droptop.runs.noted import environments
from droptop.runs.verify import alike
from droptop.training.evaluation import evaluation_lines, predict_test
from droptop.training.workers import computing_on

SLACK = 0.01  # share of a test set's samples that another machine, device or version may predict otherwise


def recompute(place: SeedPlace) -> list[str]:
    """Return what of a finished seed is not what it comes to, a line each.

    Raise BadRequest where its data, or a file of the user's own, is not here.
    """
    try:
        lines, result = read_metrics(place.run, place.seed), read_result(place.run, place.seed)
    except BadRequest as error:
        return [str(error)]
    return from_metrics(place, lines, result) or by_checkpoint(place, lines)


def from_metrics(place: SeedPlace, lines: list[dict[str, Any]], result: dict[str, Any]) -> list[str]:
    """Return a line if the metrics do not come to the result."""
    try:
        tasks = tuple(map(tuple, result["tasks"]))
        expected = seed_result(
            lines, tuple(result["classes"]), tasks, place.config.options.eval_every, result.get("cue")
        )
    except (LookupError, ValueError, TypeError):
        return [f"{place.folder / 'metrics.jsonl'} does not come to a result"]
    newer = expected.keys() - result.keys()  # of an earlier version
    if alike(result, {name: value for name, value in expected.items() if name not in newer}):
        return []
    return [f"{place.folder / 'result.json'} is not what metrics.jsonl comes to"]


def by_checkpoint(place: SeedPlace, lines: list[dict[str, Any]]) -> list[str]:
    """Return a line per test set that the last checkpoint predicts with another accuracy than was recorded."""
    options, recorded = place.config.options, lines[-1]
    with computing_on(options.threads):
        try:
            loaded = restore(place)
        except BadCheckpoint as error:
            return [str(error)]
        if (step := loaded.learner.clock["step"]) != recorded["step"]:
            return [f"{place.folder}: its last whole checkpoint is that of step {step}, not of {recorded['step']}"]
        stream = build_stream(place.config, place.seed)
        predictions = {name: predict_test(loaded.learner, test) for name, test in stream.tests.items()}
    slack, problems = 0.0 if same_place(place) else SLACK, []
    now = evaluation_lines(predictions, len(stream.spec.classes))["eval"]
    for test, evaluation in recorded["eval"].items():
        told, counted = totals(evaluation), totals(now.get(test, {}))
        if told[0] != counted[0] or abs(told[1] - counted[1]) > slack * told[0]:
            problems.append(
                f"{place.folder}: its last checkpoint is right on {counted[1]} of {counted[0]} samples of {test}, "
                f"metrics.jsonl says {told[1]} of {told[0]}"
            )
    return problems


def totals(evaluation: dict[str, Any]) -> tuple[int, int]:
    """Return the number of samples and of right answers of an evaluation."""
    n, correct = (sum(sum(tally[name]) for tally in evaluation.values()) for name in ("n", "correct"))
    return n, correct


def same_place(place: SeedPlace) -> bool:
    """Return whether the run was made on this machine's kind of CPU, with these versions: then all is equal."""
    library = library_of(place.config.net.net)
    now = environment("cpu", place.config.options.threads, () if library is None else (library,))
    names = ("machine", "device", "device_name", "versions")
    return any(all(noted.get(name) == now[name] for name in names) for noted in environments(place.run)[:1])
