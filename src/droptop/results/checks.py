"""Whether what was read back is a result, or a line of metrics: types, ranges and lengths."""

from collections.abc import Callable
from typing import Any

from droptop.system.json_files import is_number

CURVE, MATRIX = "A", "matrix"  # the figures that are no single numbers


def check_result(result: Any, whole: bool = False) -> None:
    """Raise ValueError unless a value has the form of result.json; as a `whole` one it lacks nothing pages show."""
    tests = expect(dict, expect(dict, result, "it").get("tests"), "tests")
    if not tests:
        raise ValueError("tests are missing")
    for test, figures in tests.items():
        for figure, value in expect(dict, figures, f"tests.{test}").items():
            check_figure(value, figure, f"tests.{test}.{figure}")
    if whole or "classes" in result or "tasks" in result:
        classes, tasks = (expect(list, result.get(name), name) for name in ("classes", "tasks"))
        every(classes, lambda name: isinstance(name, str), "classes")
        for task in tasks:
            every(expect(list, task, "tasks"), lambda label: is_count(label) and label < len(classes), "tasks")
        for figures in tests.values():
            check_lengths(figures, len(tasks), whole)
    for name in ("guesses", "dropped", "kappa"):
        for value in expect(dict, result.get(name, {}), name).values():
            every(value.values() if isinstance(value, dict) else [value], is_number, name)
    guesses = result.get("guesses")
    for test in () if guesses is None else tests:
        if expect(dict, guesses.get(test), "guesses").keys() != {"chance", "constant"}:
            raise ValueError("guesses are missing")
    if "dropped" in result and set(result["dropped"]) != {"share", "chance"}:
        raise ValueError("dropped is damaged")
    every(expect(dict, result.get("cue", {}), "cue").values(), lambda has: isinstance(has, bool), "cue")


def check_figure(value: Any, figure: str, where: str) -> None:
    """Raise ValueError unless a figure is a number, or what the curve and the matrix are."""
    if figure == MATRIX:
        for row in expect(list, value, where):
            every(expect(list, row, where), is_number_or_none, where)
    else:
        every(expect(list, value, where) if figure == CURVE else [value], is_number_or_none, where)


def check_lengths(figures: dict[str, Any], tasks: int, whole: bool) -> None:
    """Raise ValueError unless curve and matrix have a value per task; a `whole` result has both, and the means."""
    if whole and not {"A_avg", "A_last", "F_last", CURVE, MATRIX} <= figures.keys():
        raise ValueError("figures are missing")
    rows = [len(row) for row in figures.get(MATRIX, ())]
    if len(figures.get(CURVE, range(tasks))) != tasks or rows not in ([], [tasks] * tasks):
        raise ValueError("it has other tasks than figures")


def check_line(line: Any) -> None:
    """Raise ValueError unless a value has the form of a line of metrics.jsonl."""
    expect(dict, line, "a line")
    if not is_count(line.get("step")) or not is_count(line.get("task", 0)):
        raise ValueError("its step or its task is no number")
    if "loss" in line and not isinstance(line["loss"], int | float):
        raise ValueError("its loss is no number")
    if line.keys() <= {"step", "task", "loss"}:  # as most are
        return
    for group, kappa in expect(dict, line.get("kappa", {}), "kappa").items():
        every([kappa], is_number, "kappa")
        if not group.isdecimal():
            raise ValueError("kappa is of no class")
    if "dropped" in line:
        every([expect(dict, line["dropped"], "dropped").get(name) for name in ("share", "chance")], is_real, "dropped")
    evaluations = list(expect(dict, line.get("eval", {}), "eval").values())
    for columns in expect(dict, line.get("groups", {}), "groups").values():
        evaluations += expect(dict, columns, "groups").values()
    for evaluation in evaluations:
        check_evaluation(evaluation)


def check_evaluation(evaluation: Any) -> None:
    """Raise ValueError unless a value has counts of samples and of right answers, by group and class."""
    lengths = set()
    for tally in expect(dict, evaluation, "eval").values():
        n, correct = (expect(list, expect(dict, tally, "eval").get(name), "eval") for name in ("n", "correct"))
        every([*n, *correct], is_count, "eval")
        if len(n) != len(correct) or any(right > of for of, right in zip(n, correct)):
            raise ValueError("eval has more right answers than samples")
        lengths.add(len(n))
    if len(lengths) != 1:
        raise ValueError("eval is damaged")


def expect(kind: type, value: Any, where: str) -> Any:
    """Return a value of this type; raise ValueError for another."""
    if not isinstance(value, kind):
        raise ValueError(f"{where} is no {'table' if kind is dict else 'list'}")
    return value


def every(values: Any, test: Callable[[Any], bool], where: str) -> None:
    """Raise ValueError unless all values pass a test."""
    if not all(map(test, values)):
        raise ValueError(f"{where} has something else than it should")


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number from 0."""
    return type(value) is int and value >= 0


def is_real(value: Any) -> bool:
    """Return whether a value is a number, which may be NaN where nothing was measured."""
    return type(value) in (int, float)


def is_number_or_none(value: Any) -> bool:
    """Return whether a value is a finite number, or None where nothing was measured."""
    return value is None or is_number(value)
