"""What tune.json has to look like to be shown: a folder of an earlier version has no seal that says so."""

from typing import Any

from droptop.results.checks import every, expect, is_count, is_number_or_none
from droptop.system.json_files import is_number

TEXTS = ("data", "method", "debias", "by")
STATES = ("done", "pruned", "failed", "running")


def check_found(found: Any) -> None:
    """Raise ValueError, KeyError or TypeError unless a value has the form of tune.json."""
    expect(dict, found, "it")
    every([found[name] for name in TEXTS], is_text, "its request")
    every([*expect(dict, found["over"], "over").values(), *expect(list, found["command"], "command")], is_text, "over")
    every([found["hold_out"]], is_number, "hold_out")
    every([found["seed"], *expect(list, found["fresh"], "fresh")], is_count, "seeds")
    check_settings(found["usual"])
    for trial in expect(list, found["trials"], "trials"):
        check_trial(expect(dict, trial, "trials"))
    names = [check_confirmed(expect(dict, each, "confirmed")) for each in expect(list, found["confirmed"], "confirmed")]
    if names:
        check_choice(found, names)
    elif "chosen" in found:
        raise ValueError("it has a choice of nothing")


def check_trial(trial: dict[str, Any]) -> None:
    """Raise unless a value has the form of a trial."""
    every([trial["number"]], is_count, "trials")
    check_settings(trial["settings"])
    if trial["state"] not in STATES or (trial["state"] == "done") != is_number(trial["value"]):
        raise ValueError("a trial has another value than its state says")
    every([trial["value"], *expect(list, trial["steps"], "steps")], is_number_or_none, "trials")
    every([trial["why"]], is_text, "trials")


def check_confirmed(each: dict[str, Any]) -> str:
    """Raise unless a value has the form of confirmed settings; return their name."""
    check_settings(each["settings"])
    every([each["name"]], is_text, "confirmed")
    every([each["trial_value"]], is_number_or_none, "confirmed")
    if not expect(list, each["values"], "confirmed"):
        raise ValueError("confirmed settings have no values")
    every(each["values"], is_number, "confirmed")
    expect(bool, each["eligible"], "confirmed")
    return str(each["name"])


def check_choice(found: dict[str, Any], names: list[str]) -> None:
    """Raise unless the choice is among what was confirmed, and the importance of options is numbers."""
    chosen = expect(dict, found["chosen"], "chosen")
    check_settings(chosen["settings"])
    if chosen["name"] not in names or not any(each["eligible"] for each in found["confirmed"]):
        raise ValueError("its choice is none of those that were confirmed")
    if found["importance"] is not None:
        every(expect(dict, found["importance"], "importance").values(), is_number, "importance")
    every([found["no_importance"] or ""], is_text, "importance")


def check_settings(settings: Any) -> None:
    """Raise unless a value has options by path: numbers, texts, truth values or nothing."""
    every(
        expect(dict, settings, "settings").values(),
        lambda value: value is None or isinstance(value, str | bool) or is_number(value),
        "settings",
    )


def is_text(value: Any) -> bool:
    """Return whether a value is text."""
    return isinstance(value, str)
