"""What to try next, as commands that run as they stand: chosen from what a comparison or a run has found."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from droptop.options import NO_DEBIAS
from droptop.report.sentences import all_guess, contenders, decisive_sets, ranked, words_of
from droptop.report.tables import signed
from droptop.results.diagnosis import Diagnosis
from droptop.results.statistics import FEWEST, Effect, least_effect

MOST = 2  # steps that are named
# What to try where a learner may rely on a cue, one after the other; `poe` with these methods alone.
AGAINST_CUES = ("robust", "robust+poe")
WITH_POE = ("er", "er-ace", "mir", "gss", "aser", "mkd", "pcr", "l2p", "dualprompt", "finetune", "joint")
FEW_STEPS = 20  # of a task, in which little is learned
SMALLEST_BATCH = 4  # that is worth a suggestion
MOST_SEEDS = 40  # more are not worth a suggestion


class Step(NamedTuple):
    """Hold why to do something, and the command that does it."""

    why: str
    command: str


class Facts(NamedTuple):
    """Hold what steps are chosen from, of a run or a comparison that is done."""

    out: Path
    again: str  # the command that makes the same again, with --out at its end
    options: Mapping[str, Any]  # of the reference arm, by path
    diagnosis: Diagnosis
    comparison: Mapping[str, Any] | None = None  # None of a run
    steps: int | None = None  # of the shortest task; None where nobody knows


def next_steps(facts: Facts) -> list[Step]:
    """Return what to try next, the most useful step first."""
    finding = facts.diagnosis["finding"]
    steps = quick_look(facts)
    if finding == "barely learned":
        steps += learn_more(facts)
    elif facts.comparison is None:
        steps.append(Step("see whether debiasing helps", compared(facts)))
    if finding == "no set without the cue":
        steps += test_set_without_the_cue(facts)
    if facts.comparison is not None and finding != "barely learned":
        steps += after_effects(facts)
    if facts.comparison is not None and facts.comparison.get("tuning"):  # with other options, arms are tuned anew
        steps = [step for step in steps if step.command.startswith("droptop resume ")]
    return steps[:MOST]


def quick_look(facts: Facts) -> list[Step]:
    """Return the step from a quick look to the whole stream; [] where it was whole."""
    if "limit" not in facts.options:
        return []
    enough = facts.diagnosis["seeds"] >= FEWEST or facts.diagnosis["finding"] == "barely learned"
    seeds = {} if enough else {"--seeds": str(FEWEST)}
    return [Step("all samples of the stream", changed(facts, "whole", seeds, without=("--limit",)))]


def learn_more(facts: Facts) -> list[Step]:
    """Return how to learn more from a stream, in one pass over it."""
    steps = []
    batch = facts.options.get("stream.batch", 0)
    if facts.steps is not None and facts.steps < FEW_STEPS and batch > SMALLEST_BATCH:
        smaller = str(max(SMALLEST_BATCH, facts.steps * batch // FEW_STEPS))
        why = f"a smaller batch: a task has {facts.steps} step{'s' * (facts.steps != 1)}"
        steps.append(Step(why, changed(facts, f"batch-{smaller}", {"--batch": smaller})))
    for name, path, factor, why in (
        ("iterations", "learner.iterations", 3, "more steps per batch"),
        ("lr", "learner.lr", 3.0, "a higher learning rate"),
    ):
        if path in facts.options:
            value = f"{facts.options[path] * factor:g}"
            steps.append(Step(why, changed(facts, f"{name}-{value}", {f"--{name}": value})))
    return steps


def test_set_without_the_cue(facts: Facts) -> list[Step]:
    """Return how to get a test set without the suspected cue; [] for a stream that is not a folder of one's own."""
    kind, _, place = str(facts.options["data"]).partition(":")
    if kind != "folder":
        return []
    test = next((Path(place, name) for name in ("test", "val") if Path(place, name).is_dir()), Path(place, "train"))
    why = "a test set without the suspected cue: copy images, remove the cue from the copies, then compare again"
    return [Step(why, shlex.join(["cp", "-r", str(test), str(Path(place, "test-no-cue"))]))]


def after_effects(facts: Facts) -> list[Step]:
    """Return what the effects of a comparison call for: more seeds, or another debiasing.

    Where all arms guess, on all sets that decide, no number of seeds shows anything: then to learn more.
    """
    assert facts.comparison is not None
    words, best = words_of(dict(facts.comparison)), contenders(ranked(dict(facts.comparison)))[0]
    decisive = decisive_sets(dict(facts.comparison))
    helps = any(of_arm[test] == "better" for of_arm in words.values() for test in decisive)
    effects = {test: facts.comparison["effects"][best][test]["A_avg"] for test in decisive}
    largest = max(effects, key=lambda test: abs(effects[test]["diff"] or 0.0))
    steps = []
    blind = all(all_guess(dict(facts.comparison), test) for test in decisive)
    if blind:
        steps += learn_more(facts)[:1]
    elif not helps and (seeds := seeds_wanted(effects[largest], facts.diagnosis["seeds"])):
        few = facts.diagnosis["seeds"] < FEWEST
        seen = f"an effect as large as that of {best} on {largest} ({signed(effects[largest]['diff'] or 0.0)} points)"
        why = "enough seeds for a verdict" if few else f"{seeds} seeds would see {seen}"
        steps.append(Step(why, shlex.join(["droptop", "resume", str(facts.out), "--seeds", str(seeds)])))
    may_rely = facts.diagnosis["finding"] in ("relies", "cannot tell") and facts.options["debias"] == NO_DEBIAS
    known = AGAINST_CUES if facts.options["method"] in WITH_POE else AGAINST_CUES[:1]
    untried = next((debias for debias in known if not any(debias in arm for arm in words)), None)
    if may_rely and not helps and untried:
        steps.append(Step("another debiasing", changed(facts, untried, {"--debias": untried})))
    return steps


def seeds_wanted(effect: Effect, seeds: int) -> int | None:
    """Return how many seeds would have seen an effect as large as this one; None where more of them do not help."""
    if seeds < FEWEST:
        return FEWEST
    if not effect["diff"] or not effect["least"]:
        return None
    spread = effect["least"] / least_effect(seeds) * seeds**0.5
    for wanted in (2 * FEWEST, 4 * FEWEST, MOST_SEEDS):
        if wanted > seeds and spread / wanted**0.5 * least_effect(wanted) <= abs(effect["diff"]):
            return wanted
    return None


def compared(facts: Facts) -> str:
    """Return the command that compares a run's debiasing, or DropTop, with none."""
    options = {"--debias": "droptop"} if facts.options["debias"] == NO_DEBIAS else {}
    words = shlex.split(changed(facts, "compared", options))
    return shlex.join([words[0], "compare", *words[2:]])


def changed(facts: Facts, name: str, options: Mapping[str, str], without: Sequence[str] = ()) -> str:
    """Return the command that makes the same again with other options, in a new folder that is named for them."""
    words = shlex.split(facts.again)
    for flag in (*without, *options, "--out"):
        if flag in words:
            del words[words.index(flag) : words.index(flag) + 2]
    if "--config" in words:  # the file has them
        words += [word for flag in without for word in (flag, "None")]
    place = unused(facts.out.parent / f"{facts.out.name}-{name}")
    return shlex.join([*words, *(token for pair in options.items() for token in pair), "--out", place])


def unused(place: Path) -> str:
    """Return the path of a folder that is not there yet: the one given, or with a number at its end."""
    names = [str(place), *(f"{place}-{number}" for number in range(2, 100))]
    return next((name for name in names if not Path(name).exists()), names[-1])
