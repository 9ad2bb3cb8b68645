"""What tuning found, as a table and as sentences, for a terminal and for a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from droptop.options import name_of as option_name
from droptop.report.tables import counted, listed
from droptop.results.statistics import Effect, estimate
from droptop.sweeps.tuning.tune_json import FIGURE, USUAL, Confirmed, best_trials, gain, in_words, space_in_words

COLUMNS = ("settings", "in its trial", "on fresh seeds", "seeds", "")
WHERE = {
    "hold-out": "images of every task that training did not see",
    "first-task": "images of the first task that training did not see, with that task learned alone",
}


def name_of(each: Confirmed) -> str:
    """Return what people call confirmed settings."""
    return "the usual options" if each.name == USUAL else each.name.replace("-", " ")


def rows(found: Mapping[str, Any]) -> list[list[str]]:
    """Return the confirmed settings as text, the best mean first."""
    chosen = found["chosen"]["name"]
    lines = []
    for each in sorted(found["confirmed"], key=lambda each: -each.mean):
        mean = estimate(each.values)
        error = "" if mean.error is None else f" ± {mean.error:.1f}"
        known = "-" if each.trial_value is None else f"{each.trial_value:.1f}"
        word = "chosen" if each.name == chosen else "" if each.eligible else "usual; outside of the space"
        usual = " (usual)" if each.settings == found["usual"] and each.eligible else ""
        lines.append([in_words(each.settings) + usual, known, f"{each.mean:.1f}{error}", str(mean.n), word])
    return lines


def confirmed_table(found: Mapping[str, Any]) -> Table:
    """Return what the best trials and the usual options reach on fresh seeds, as a table."""
    of = f"{found['method']} on {found['data']}"
    table = Table(*COLUMNS, title=f"{of}: {FIGURE} on held-out training images (percent, mean ± standard error)")
    for row in rows(found):
        table.add_row(*row)
    return table


def progress(found: Mapping[str, Any]) -> str:
    """Return how many trials came to which end."""
    states = [trial["state"] for trial in found["trials"]]
    count = {state: states.count(state) for state in ("done", "pruned", "failed", "running")}
    words = {"done": "came to the end", "pruned": "ended early", "failed": "failed", "running": "not finished"}
    told = [f"{number} {words[state]}" for state, number in count.items() if number or state == "done"]
    return f"{counted(len(states), 'trial')}: {', '.join(told)}"


def answer(found: Mapping[str, Any]) -> list[str]:
    """Return what was found, in sentences: the choice, how sure it is, and what it was chosen by."""
    if "chosen" not in found:
        best = best_trials(found["trials"], 1)
        so_far = f"; the best so far: {in_words(best[0]['settings'])} ({best[0]['value']:.1f}%)" if best else ""
        return [f"{progress(found)}{so_far}."]
    confirmed: Sequence[Confirmed] = found["confirmed"]
    chosen = next(each for each in confirmed if each.name == found["chosen"]["name"])
    seeds = counted(len(chosen.values), "fresh seed")
    sentences = [f"The choice is {in_words(chosen.settings)}: {chosen.mean:.1f}% on average over {seeds}."]
    sentences += luckiest(confirmed, chosen) + beside_usual(found, confirmed, chosen)
    sentences.append(
        f"{progress(found)}; over {space_in_words(found['over'])}. All of it on {found['hold_out']:g}% of the training "
        f"images ({WHERE[found['by']]}); the test sets were not looked at."
    )
    sentences.append(matters(found))
    return sentences


def luckiest(confirmed: Sequence[Confirmed], chosen: Confirmed) -> list[str]:
    """Return what became of the best trial, where that is not the choice."""
    tried = [each for each in confirmed if each.trial_value is not None]
    best = max(tried, key=lambda each: each.trial_value or 0.0, default=chosen)
    if best.name == chosen.name:
        return []
    return [
        f"The luckiest trial, {in_words(best.settings)}, had {best.trial_value:.1f}% and has {best.mean:.1f}% on fresh "
        "seeds."
    ]


def beside_usual(found: Mapping[str, Any], confirmed: Sequence[Confirmed], chosen: Confirmed) -> list[str]:
    """Return what the choice adds to the usual options, on the same seeds, and how sure that is."""
    usual = next((each for each in confirmed if each.settings == found["usual"]), None)
    if usual is None:
        return []
    if usual.name == chosen.name:
        return ["These are the usual options: no trial that was confirmed is better."]
    effect = gain(confirmed, chosen, usual.name)
    assert effect is not None
    return [
        f"Beside the usual options ({in_words(usual.settings)}; {usual.mean:.1f}%): {points(effect)}. The choice was "
        "made by these means, so this is too good, and no verdict: `droptop compare` on other seeds gives one."
    ]


def tuned_alike(tuning: Mapping[str, Any] | None) -> list[str]:
    """Return how the arms of a comparison were tuned, in sentences; none where they were not."""
    if tuning is None:
        return []
    alike = f"{counted(tuning['trials'], 'trial')} over {space_in_words(tuning['over'])}, on "
    alike += f"{tuning['hold_out']:g}% of the training images, held out, and other seeds than these"
    given = {arm: in_words(of["settings"]) for arm, of in tuning["arms"].items()}
    if (only := tuning["for"]) is not None:
        return [
            f"options were tuned for {only} alone and given to all arms, which is usual and favours {only}: "
            f"{given[only]} ({alike})"
        ]
    return [f"every arm was tuned alike: {alike}", *(f"tuned {arm}: {options}" for arm, options in given.items())]


def tuned_caption(tuning: Mapping[str, Any] | None) -> str:
    """Return in a few words how the arms of a comparison were tuned; empty where they were not."""
    if tuning is None:
        return ""
    trials = counted(tuning["trials"], "trial")
    if tuning["for"] is not None:
        return f"; options tuned for {tuning['for']} alone, by {trials}, and given to all"
    return f"; each arm tuned by {trials} on held-out training images"


def points(effect: Effect) -> str:
    """Return a difference with its interval."""
    interval = effect["ci95"]
    between = "" if interval is None else f" (95% interval {interval[0]:+.1f} to {interval[1]:+.1f})"
    return f"{effect['diff']:+.1f} points{between}"


def matters(found: Mapping[str, Any]) -> str:
    """Return which options set the trials apart, or why nobody can say."""
    if found.get("importance") is None:
        return f"Which option matters cannot be said: {found.get('no_importance') or 'it was not asked'}."
    shares = sorted(found["importance"].items(), key=lambda item: -item[1])
    told = listed([f"{option_name(path)} {100 * share:.0f}%" for path, share in shares])
    done = sum(trial["state"] == "done" for trial in found["trials"])
    return f"What sets trials apart (fANOVA of the {done} that came to the end): {told}."
