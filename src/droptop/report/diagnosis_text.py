"""What a learner does before anything is debiased, in sentences."""

from collections.abc import Iterable
from typing import Any

from droptop.options import NO_DEBIAS
from droptop.report.tables import counted, listed, mean_error
from droptop.results.diagnosis import Accuracy, Diagnosis, Loss
from droptop.results.statistics import FEWEST, NO_VERDICT, verdict
from droptop.system.short_names import short_name


def diagnosis_lines(diagnosis: Diagnosis, summary: dict[str, Any]) -> list[str]:
    """Return what an arm does in two sentences: how often it is right, and whether it leans on the shortcut."""
    who = called(diagnosis["arm"], summary)
    right = [f"{mean_error(figures['A_avg'])}% on {test}" for test, figures in summary["tests"].items()]
    guess = guesses_text(diagnosis["accuracy"].values())
    return [f"{who}: average accuracy {listed(right)}{guess and '; ' + guess}", reliance(who, diagnosis)]


def called(arm: str, summary: dict[str, Any]) -> str:
    """Return what to call an arm: "plain er" without debiasing, else its method and its own name."""
    method, debias = short_name(summary["method"]), summary["debias"]
    if debias == NO_DEBIAS and arm in (NO_DEBIAS, method):
        return f"plain {method}"
    return method if arm == method else f"{method} ({arm})"


def guesses_text(accuracies: Iterable[Accuracy]) -> str:
    """Return what guesses reach on the test sets; empty where older results do not have it."""
    known = [(each["chance"], each["constant"]) for each in accuracies]
    chances = [chance for chance, constant in known if chance is not None and constant is not None]
    constants = [constant for chance, constant in known if chance is not None and constant is not None]
    if not chances:
        return ""
    blind = f"a blind guess gives {span(chances)}%"
    if max(constants) - min(chances) < 0.1:
        return blind
    return f"{blind}, always naming the most frequent class {span(constants)}%"


def span(values: list[float]) -> str:
    """Return the least and the largest of some values, as one where they are equal on paper."""
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def reliance(who: str, diagnosis: Diagnosis) -> str:
    """Return whether an arm leans on the shortcut, in one sentence."""
    finding, cue, lost = diagnosis["finding"], diagnosis["cue"], diagnosis["lost"]
    if finding == "barely learned":
        return (
            f"{who} has barely learned: it is hardly better than a guess, so nothing can be said of what it leans on. "
            "Raise the learning rate or --iterations first"
        )
    if finding == "no set without the cue":
        unseen = f"no test set lacks the cue, so nobody can see whether {who} leans on it"
        return f"{observed_text(who, diagnosis) or unseen}{groups_text(diagnosis)}"
    groups = diagnosis["lost_between"] == "groups"
    against = f"against {'samples that follow it' if groups else cue}"
    places = {test: "on samples that contradict it" if groups else f"on {test}" for test in lost}
    if finding == "too few seeds":
        return too_few(who, diagnosis["seeds"], lost, places, against)
    by_finding = {
        said: [f"{points(each, said)} {places[test]}" for test, each in lost.items() if each["finding"] == said]
        for said in ("relies", "cannot tell", "no reliance")
    }
    if finding == "no reliance":
        return f"no reliance found: {against}, {who} loses {listed(by_finding[finding])}: there is nothing to remove"
    parts = [f"loses {listed(by_finding['relies'])}"] if by_finding["relies"] else []
    parts += [f"may lose {listed(by_finding['cannot tell'])}"] if by_finding["cannot tell"] else []
    parts += [f"loses {listed(by_finding['no reliance'])}"] if by_finding["no reliance"] else []
    head = f"{who} relies on the cue" if finding == "relies" else f"whether {who} relies on the cue cannot be told yet"
    return f"{head}: {against}, it {listed(parts)}"


def observed_text(who: str, diagnosis: Diagnosis) -> str:
    """Return what is lost on test sets of which nobody says that they lack the cue; empty where there are none."""
    said = []
    for test, each in diagnosis.get("observed", {}).items():
        if (diff := each["diff"]) is not None:
            low, high = sorted(edge if diff >= 0 else -edge for edge in each["ci95"] or (0, 0))
            interval = f" ({low:z.1f} to {high:z.1f})" if each["ci95"] else ""
            said.append(f"{'loses' if diff >= 0 else 'gains'} {abs(diff):.1f} points{interval} on {test}")
    if not said:
        return ""
    few = "" if diagnosis["seeds"] >= FEWEST else f"; {NO_VERDICT}"
    return (
        f"against {diagnosis['cue']}, {who} {listed(said)}{few}; no test set is known to lack the cue, so this "
        "does not show what it leans on"
    )


def groups_text(diagnosis: Diagnosis) -> str:
    """Return how unequal groups are, as something seen and no more; empty where there are none."""
    return "".join(
        f"; at the end, its worst {column} on {diagnosis['cue']} is {seen['name']} with {seen['worst']:.1f}%, "
        f"{seen['gap']:.1f} points below the best"
        for column, seen in diagnosis.get("groups", {}).items()
    )


def points(lost: Loss, finding: str) -> str:
    """Return how many points are lost, with the interval, as the finding calls for."""
    assert lost["diff"] is not None
    if lost["ci95"] is None:
        return f"{lost['diff']:.1f} points (the same in every seed)"
    low, high = lost["ci95"]
    if finding == "no reliance":
        return f"at most {max(high, 0):.1f} points"
    if finding == "cannot tell":
        return f"{low:.1f} to {high:.1f} points"
    return f"{lost['diff']:.1f} points ({low:.1f} to {high:.1f})"


def too_few(who: str, seeds: int, lost: dict[str, Loss], places: dict[str, str], against: str) -> str:
    """Return what fewer than FEWEST seeds point to; a verdict takes more."""
    losing = [
        f"{each['diff']:.1f} points {places[test]}"
        for test, each in lost.items()
        if each["diff"] is not None
        and (seeds == 1 or verdict("A_avg", each) == "points to better")  # more points with the cue
    ]
    rest = NO_VERDICT
    if seeds == 1:
        return f"one seed: {against}, {who} loses {listed(losing)}; {rest}"
    if losing:
        return f"{counted(seeds, 'seed')} point to reliance on the cue: {against}, {who} loses {listed(losing)}; {rest}"
    return f"{counted(seeds, 'seed')} show no clear reliance on the cue; {rest}"
