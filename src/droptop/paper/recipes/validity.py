"""Is one model enough to compare two directions? Figure 5: kappa as one model adjusts it, and as a reference of two
models does, each of which trains in one direction alone.

Every class is decided on after 2 * p * l steps, again and again; a decision is up, down or none. The paper says that
82.1% of the adjustments coincide and not whether decisions for none are counted, so both shares are given. What is
recorded is kappa: a decision that leaves it where it is, such as up at the ceiling of gamma, counts as one for none.

Most decisions are for none, so that two versions which have nothing in common agree on many of them. Beside each share
therefore stands the same of one model and a reference of another seed: what is alike there is alike by chance.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, Series, difference, mean
from droptop.paper.claims import about, stream_name, suffix, unquoted
from droptop.paper.recipe import DECIDES, CellOptions, Grid, Recipe, Scope
from droptop.paper.tables import ITALICS, Column, Figure, Mean, Output, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

ONE: CellOptions = {"debias": "droptop", "reference": False}
TWO: CellOptions = {"debias": "droptop", "reference": True}
OF_PAPER, QUOTED = (quoted.CIFAR_10,), (quoted.AGREEMENT, quoted.ONE_MODEL, quoted.TWO_MODELS)
MOST = 10  # classes with a panel each

MEANING = (
    "Percent, mean ± standard error over n seeds. Decisions are up, down or none, one a class every 2 p l steps from "
    "the first probe after it arrives; whether the paper's 82.1% counts those for none it does not say. With kappa_0 = "
    "gamma, the default, a class starts at the ceiling: a decision to go up from there changes nothing, and is counted "
    "as one for none. By chance: one model of each seed and the references of all other seeds. Differences are to "
    "chance and, of A_avg, to one model; paired by seed, with 95% intervals and two-sided p-values, **bold** where "
    "p < 0.05."
)

Changes = dict[tuple[int, str], float]  # kappa by step (or decision) and class, where it changed


class Agreement(NamedTuple):
    """Counts of decisions, of changes that either version made, and of those that both made alike."""

    decisions: int
    changes: int
    alike: int

    @property
    def of_decisions(self) -> float | None:
        return 100 * (1 - (self.changes - self.alike) / self.decisions) if self.decisions else None

    @property
    def of_changes(self) -> float | None:
        return 100 * self.alike / self.changes if self.changes else None


def changes(lines: Sequence[dict[str, Any]]) -> Changes:
    """Every change of kappa in a metrics.jsonl."""
    return {(line["step"], group): kappa for line in lines for group, kappa in line.get("kappa", {}).items()}


def numbered(moved: Changes, arrival: dict[str, int], every: int) -> Changes:
    """The same by decision instead of step. A class is first decided on when the memory has held it for long enough, a
    few steps earlier or later from seed to seed."""
    return {((step - arrival.get(group, 0)) // every, group): kappa for (step, group), kappa in moved.items()}


def directions(moved: Changes, first: float) -> dict[tuple[int, str], bool]:
    """Whether each change was up."""
    now: dict[str, float] = {}
    results = {}
    for (step, group), kappa in sorted(moved.items()):
        results[step, group] = kappa > now.get(group, first)
        now[group] = kappa
    return results


def decisions(start: int, last: int, period: int, history: int) -> int:
    """How often a class that arrives after step `start` is decided on by step `last`: its first probe has nothing to
    compare with, and two histories are full after twice their length more."""
    probes = last // period - start // period
    return max(probes - 1, 0) // (2 * history)


def agreement(one: Changes, two: Changes, first: float, decided: int) -> Agreement:
    """How often both versions decided alike, of so many decisions of each."""
    up_one, up_two = directions(one, first), directions(two, first)
    either = up_one.keys() | up_two.keys()
    alike = sum(place in up_one and place in up_two and up_one[place] == up_two[place] for place in either)
    return Agreement(max(decided, len(either)), len(either), alike)


def study(scope: Scope) -> list[Grid]:
    return [{"data": scope.data, "method": scope.methods} | arm for arm in (ONE, TWO)]


def total(several: Iterable[Agreement]) -> Agreement:
    """Their counts, added up."""
    return Agreement(*map(sum, zip(*several)))


def pairs(results: CellResults, data: str, method: str) -> tuple[dict[int, Agreement], dict[int, Agreement]]:
    """The agreement of both versions of a seed, of every seed that both have; and that of one model with the reference
    of all other seeds whose classes come in the same order."""
    one, two = ({"data": data, "method": method} | arm for arm in (ONE, TWO))
    droptop = results.scope.config(one).droptop
    assert droptop is not None
    period, history = droptop.intensity.period, droptop.intensity.history
    tasks = {seed: result["tasks"] for seed, result in results.of(one).items() if seed in results.of(two)}
    made: dict[int, tuple[int, list[Changes]]] = {}  # by seed: decisions, and the changes of either version
    for seed in tasks:
        lines = [results.lines(cell, seed) for cell in (one, two)]
        ends = [0] + [line["step"] for line in lines[0] if line.get("task_end")]
        arrival = {str(group): start for start, groups in zip(ends, tasks[seed]) for group in groups}
        decided = sum(decisions(start, ends[-1], period, history) for start in arrival.values())
        made[seed] = decided, [numbered(changes(own), arrival, 2 * period * history) for own in lines]
    same, others = {}, {}
    for seed, (decided, (own, _)) in made.items():
        by_seed = {
            other: agreement(own, reference, droptop.start, decided)
            for other, (_, (_, reference)) in made.items()
            if tasks[other] == tasks[seed]
        }
        same[seed] = by_seed.pop(seed)
        if by_seed:
            others[seed] = total(by_seed.values())
    return same, others


def shares(counted: dict[int, Agreement], of: str) -> Series:
    """By seed, of decisions or of changes, where there are any."""
    every = {seed: getattr(own, of) for seed, own in counted.items()}
    return {seed: share for seed, share in every.items() if share is not None}


def show(results: CellResults) -> list[Output]:
    rows: list[list[Value]] = []
    figures: list[Output] = []
    notes = [MEANING]
    for data in results.scope.data:
        for method in results.scope.methods:
            counted, others = pairs(results, data, method)
            cells = [{"data": data, "method": method} | arm for arm in (ONE, TWO)]
            test = next(iter(results.tests(cells[0])), "clean")
            one, two = (results.series(cell, test, "A_avg") for cell in cells)
            quotes = about([(data, test)], OF_PAPER)
            share, of_one, of_two = QUOTED if quotes else (None, None, None)
            notes.append(ITALICS if quotes else unquoted([(data, test)], OF_PAPER))
            made = {seed: float(own.changes) for seed, own in counted.items()}
            decided, by_luck = (shares(of, "of_decisions") for of in (counted, others))
            moved, moved_by_luck = (shares(of, "of_changes") for of in (counted, others))
            lines: list[tuple[str, Mean | None, Series, Series | None]] = [  # what, quoted, here, held against
                ("decisions alike, of all", share, decided, by_luck),
                ("by chance", None, by_luck, None),
                ("changes alike, of those that either made", None, moved, moved_by_luck),
                ("by chance", None, moved_by_luck, None),
                ("changes that either made, a seed", None, made, None),
                (f"A_avg of one model ({test})", of_one, one, None),
                (f"A_avg of two ({test})", of_two, two, one),
            ]
            rows += [
                [
                    "" if number else stream_name(data),
                    what,
                    said,
                    mean(own),
                    len(own),
                    None if against is None else difference(against, own),
                ]
                for number, (what, said, own, against) in enumerate(lines)
            ]
            if counted:
                seed = min(counted)
                figures.append(
                    Figure(
                        f"kappa of every class on {stream_name(data)}, seed {seed}: one model and the reference of two",
                        partial(histories, results, cells, seed),
                        suffix=suffix(results, data),
                    )
                )
    columns = (
        Column("stream", "label"),
        Column("figure", "label"),
        Column("paper", "quoted"),
        Column("here"),
        Column("n"),
        Column("difference: here"),
    )
    return [Table("One model against the two-model reference", columns, rows, notes), *figures]


def histories(results: CellResults, cells: Sequence[CellOptions], seed: int) -> "Drawing":
    """A panel a class: kappa' of either version over the steps."""
    import matplotlib.pyplot as plt

    from droptop.figures.style import DEBIASED, PLAIN

    config, result = results.scope.config(cells[0]), results.of(cells[0])[seed]
    assert config.droptop is not None
    first = config.droptop.start
    taught = [(group, task) for task, groups in enumerate(result["tasks"]) for group in groups][:MOST]
    across = -(-len(taught) // 2)
    figure, axes = plt.subplots(
        2, across, figsize=(2.1 * across + 0.6, 3.6), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    lines = [results.lines(cell, seed) for cell in cells]
    ends = [0] + [line["step"] for line in lines[0] if line.get("task_end")]
    for ax, (group, task) in zip(axes.flat, taught):
        for own, colour, label in zip(lines, (DEBIASED, PLAIN), ("one model", "two models")):
            curve(ax, changes(own), str(group), (ends[task], ends[-1]), first, colour, label)
        ax.set_title(result["classes"][group])
        for end in ends[1:]:
            ax.axvline(end, color="black", alpha=0.15, linewidth=0.8)
    for ax in axes.flat[len(taught) :]:
        ax.set_axis_off()
    for row in axes:
        row[0].set_ylabel("kappa' (%)")
    for ax in axes[-1]:
        ax.set_xlabel("step")
    axes[0][0].legend(frameon=False, fontsize=7)
    return figure


def curve(ax: "Axes", moved: Changes, group: str, span: tuple[int, int], first: float, colour: str, label: str) -> None:
    """kappa of one class from its task to the end."""
    own = sorted((step, kappa) for (step, of), kappa in moved.items() if of == group)
    steps, values = zip((span[0], first), *own)
    ax.step(
        [*steps, span[1]],
        [*values, values[-1]],
        where="post",
        color=colour,
        label=label,
        linewidth=1.4,
        linestyle="-" if label == "one model" else "--",
    )


RECIPES = (
    Recipe(
        "validity",
        "Figure 5",
        "kappa as one model adjusts it against a reference of two models, ER",
        show,
        study,
        quick=DECIDES,
        takes="2 min on an H200 (estimate)",
    ),
)
