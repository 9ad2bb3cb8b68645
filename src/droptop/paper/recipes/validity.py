"""Figure 5: whether one model is enough to compare two directions.

kappa as one model adjusts it is compared with kappa as a reference of two models does, each of which trains in one
direction alone.

Every class is decided on every 2 * p * l steps; a decision is up, down or none. The paper says that 82.1% of the
adjustments coincide, but not whether decisions for none are counted, so both shares are given. Runs record kappa: a
decision that leaves it where it is, such as up at the ceiling of gamma, counts as one for none.

Most decisions are for none, so two versions that have nothing in common agree on many of them. Each share is therefore
followed by the agreement of one model with the references of other seeds, which is agreement by chance.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, Series, difference, mean
from droptop.paper.claims import same_sets, stream_name, suffix, unquoted_note
from droptop.paper.recipe import DECIDES, CellOptions, Grid, Recipe, Scope
from droptop.paper.tables import ITALICS, Column, Figure, Mean, Output, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

ONE: CellOptions = {"debias": "droptop", "reference": False}
TWO: CellOptions = {"debias": "droptop", "reference": True}
OF_PAPER, QUOTED = (quoted.CIFAR_10,), (quoted.AGREEMENT, quoted.ONE_MODEL, quoted.TWO_MODELS)
MOST = 10  # classes with a panel each, at most

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
    """Count decisions, the changes that either version made, and the changes that both made alike."""

    decisions: int
    changes: int
    alike: int

    @property
    def of_decisions(self) -> float | None:
        """Return the percentage of decisions that are alike; None without any."""
        return 100 * (1 - (self.changes - self.alike) / self.decisions) if self.decisions else None

    @property
    def of_changes(self) -> float | None:
        """Return the percentage of changes that are alike; None without any."""
        return 100 * self.alike / self.changes if self.changes else None


def changes(lines: Sequence[dict[str, Any]]) -> Changes:
    """Return every change of kappa in the lines of a metrics.jsonl."""
    return {(line["step"], group): kappa for line in lines for group, kappa in line.get("kappa", {}).items()}


def by_decision(changed: Changes, arrival: dict[str, int], every: int) -> Changes:
    """Return the changes by the number of the decision instead of the step.

    A class is first decided on when the memory has held it long enough, which is a few steps earlier or later from
    seed to seed.
    """
    return {((step - arrival.get(group, 0)) // every, group): kappa for (step, group), kappa in changed.items()}


def directions(changed: Changes, first: float) -> dict[tuple[int, str], bool]:
    """Return for each change whether kappa went up, where every class begins with kappa `first`."""
    now: dict[str, float] = {}
    upwards = {}
    for (step, group), kappa in sorted(changed.items()):
        upwards[step, group] = kappa > now.get(group, first)
        now[group] = kappa
    return upwards


def decisions(start: int, last: int, period: int, history: int) -> int:
    """Return how often a class that arrives after step `start` is decided on by step `last`.

    Its first probe has nothing to compare with; each decision then takes two full histories.
    """
    probes = last // period - start // period
    return max(probes - 1, 0) // (2 * history)


def agreement(one: Changes, two: Changes, first: float, decided: int) -> Agreement:
    """Return how often both versions decided alike, out of `decided` decisions of each."""
    up_one, up_two = directions(one, first), directions(two, first)
    either = up_one.keys() | up_two.keys()
    alike = sum(place in up_one and place in up_two and up_one[place] == up_two[place] for place in either)
    return Agreement(max(decided, len(either)), len(either), alike)


def study(scope: Scope) -> list[Grid]:
    """Return the study of one model and of two."""
    return [{"data": scope.data, "method": scope.methods} | arm for arm in (ONE, TWO)]


def total(agreements: Iterable[Agreement]) -> Agreement:
    """Return the sums of all counts."""
    return Agreement(*map(sum, zip(*agreements)))


def pairs(results: CellResults, data: str, method: str) -> tuple[dict[int, Agreement], dict[int, Agreement]]:
    """Return by seed the agreement of both versions, and that of one model with the references of all other seeds.

    Only seeds that both versions have count, and only other seeds whose classes come in the same order.
    """
    one, two = ({"data": data, "method": method} | arm for arm in (ONE, TWO))
    droptop = results.scope.config(one).droptop
    assert droptop is not None
    period, history = droptop.intensity.period, droptop.intensity.history
    tasks = {seed: result["tasks"] for seed, result in results.by_seed(one).items() if seed in results.by_seed(two)}
    made: dict[int, tuple[int, list[Changes]]] = {}  # by seed: decisions, and the changes of either version
    for seed in tasks:
        lines = [results.metrics(cell, seed) for cell in (one, two)]
        ends = [0] + [line["step"] for line in lines[0] if line.get("task_end")]
        arrival = {str(group): start for start, groups in zip(ends, tasks[seed]) for group in groups}
        decided = sum(decisions(start, ends[-1], period, history) for start in arrival.values())
        made[seed] = decided, [by_decision(changes(log), arrival, 2 * period * history) for log in lines]
    same, others = {}, {}
    for seed, (decided, (single, _)) in made.items():
        by_seed = {
            other: agreement(single, reference, droptop.start, decided)
            for other, (_, (_, reference)) in made.items()
            if tasks[other] == tasks[seed]
        }
        same[seed] = by_seed.pop(seed)
        if by_seed:
            others[seed] = total(by_seed.values())
    return same, others


def shares(counted: dict[int, Agreement], of: str) -> Series:
    """Return the shares by seed (`of_decisions` or `of_changes`), without seeds that have none."""
    every = {seed: getattr(agreement, of) for seed, agreement in counted.items()}
    return {seed: share for seed, share in every.items() if share is not None}


def show(results: CellResults) -> list[Output]:
    """Return one table, and a figure per stream and method."""
    rows: list[list[Value]] = []
    figures: list[Output] = []
    notes = [MEANING]
    for data in results.scope.data:
        for method in results.scope.methods:
            counted, others = pairs(results, data, method)
            cells = [{"data": data, "method": method} | arm for arm in (ONE, TWO)]
            test = next(iter(results.test_sets(cells[0])), "clean")
            one, two = (results.series(cell, test, "A_avg") for cell in cells)
            quotes = same_sets([(data, test)], OF_PAPER)
            share, of_one, of_two = QUOTED if quotes else (None, None, None)
            notes.append(ITALICS if quotes else unquoted_note([(data, test)], OF_PAPER))
            made = {seed: float(agreement.changes) for seed, agreement in counted.items()}
            decided, decided_by_chance = (shares(of, "of_decisions") for of in (counted, others))
            moved, moved_by_chance = (shares(of, "of_changes") for of in (counted, others))
            lines: list[tuple[str, Mean | None, Series, Series | None]] = [  # label, quoted, here, compared with
                ("decisions alike, of all", share, decided, decided_by_chance),
                ("by chance", None, decided_by_chance, None),
                ("changes alike, of those that either made", None, moved, moved_by_chance),
                ("by chance", None, moved_by_chance, None),
                ("changes that either made, a seed", None, made, None),
                (f"A_avg of one model ({test})", of_one, one, None),
                (f"A_avg of two ({test})", of_two, two, one),
            ]
            for number, (label, paper, series, control) in enumerate(lines):
                stream = "" if number else stream_name(data)
                effect = None if control is None else difference(control, series)
                rows.append([stream, label, paper, mean(series), len(series), effect])
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
    """Draw one panel per class: kappa' of both versions over the steps."""
    import matplotlib.pyplot as plt

    from droptop.figures.style import DEBIASED, PLAIN

    config, result = results.scope.config(cells[0]), results.by_seed(cells[0])[seed]
    assert config.droptop is not None
    first = config.droptop.start
    taught = [(group, task) for task, groups in enumerate(result["tasks"]) for group in groups][:MOST]
    across = -(-len(taught) // 2)
    figure, axes = plt.subplots(
        2, across, figsize=(2.1 * across + 0.6, 3.6), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    lines = [results.metrics(cell, seed) for cell in cells]
    ends = [0] + [line["step"] for line in lines[0] if line.get("task_end")]
    for ax, (group, task) in zip(axes.flat, taught):
        for log, colour, label in zip(lines, (DEBIASED, PLAIN), ("one model", "two models")):
            curve(ax, changes(log), str(group), (ends[task], ends[-1]), first, colour, label)
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


def curve(
    ax: "Axes", changed: Changes, group: str, span: tuple[int, int], first: float, colour: str, label: str
) -> None:
    """Draw kappa of one class from its task to the end."""
    points = sorted((step, kappa) for (step, name), kappa in changed.items() if name == group)
    steps, values = zip((span[0], first), *points)
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
