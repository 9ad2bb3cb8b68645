"""The statistics of `compare` for results of one's own: arms against the first of them, paired by seed.

paired([61.2, 60.4, 62.0], [63.1, 61.9, 64.5])          two lists, in the same order of seeds
paired({0: 61.2, 1: 60.4}, {1: 61.9, 0: 63.1})          or by seed
paired({"none": [...], "droptop": [...], "mine": [...]})   several arms, corrected by Holm's method
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, overload

from droptop.errors import BadRequest
from droptop.results.statistics import FEWEST, NO_VERDICT, Estimate, estimate, holm, paired_effect

Results: TypeAlias = Mapping[Any, float | None] | Iterable[float | None]  # by seed, or in the order of seeds


@dataclass(frozen=True, repr=False)
class Paired:
    """Hold an arm beside another one on the same seeds: what `compare` says of a test set and a figure."""

    names: tuple[str, str]  # of the reference and of the arm that is compared with it
    reference: Estimate  # mean, standard error and number of its values
    arm: Estimate
    n: int  # seeds that both have a value of
    diff: float | None  # the arm minus the reference; None without a pair
    ci95: tuple[float, float] | None  # its 95% interval; None of fewer than two pairs
    least: float | None  # the smallest effect that so many pairs, as spread as these, would have seen
    p: float | None  # of a two-sided paired t-test; None of fewer than two pairs
    p_holm: float | None  # corrected for the number of arms

    def __repr__(self) -> str:
        """Return all of it in one line."""
        first, second = self.names
        effect = "no pair" if self.diff is None else f"{self.diff:+.3g}"
        if self.ci95 is not None and self.p is not None and self.p_holm is not None:
            low, high = self.ci95
            effect += f", 95% interval {low:+.3g} to {high:+.3g}, {written('p', self.p)}"
            effect += f" ({written('Holm', self.p_holm)})" if self.p_holm != self.p else ""
        means = f"{first} {mean_text(self.reference)}, {second} {mean_text(self.arm)}"
        seen = "" if self.least is None else f", which would have seen an effect of {self.least:.2g}"
        few = f"; {NO_VERDICT}" if self.p is not None and self.n < FEWEST else ""
        return f"{second} - {first}: {effect}; {means}; {self.n} seed{'' if self.n == 1 else 's'}{seen}{few}"


class PairedArms(dict[str, Paired]):
    """Hold several arms by name, each beside the first one of those that were given."""

    def __repr__(self) -> str:
        """Return a line per arm."""
        return "\n".join(map(repr, self.values()))


@overload
def paired(a: Mapping[str, Results], b: None = None) -> PairedArms: ...
@overload
def paired(a: Results, b: Results) -> Paired: ...
def paired(a: Any, b: Any = None) -> Paired | PairedArms:
    """Return what `compare` says, of results of your own: do they differ, over the same seeds?

    Args:
        a: Results of the reference, a number per seed: a list, an array, or a dict by seed. Or all arms, a dict of
            these by the arms' names, the reference first; then leave out `b`.
        b: Results of what is compared with it, of the same seeds. A seed where either has None or NaN is left out of
            the difference.

    Returns:
        Means with their standard errors, the difference b - a with its 95% interval and the p-value of a paired t-test,
        and the smallest effect that would have been seen, four times of five; of several arms all of that by name, with
        p-values that are also corrected for their number (`p_holm`).

    Raises:
        BadRequest: The seeds are not the same, or a result is not a number.
    """
    if b is not None:
        return arms_paired({"a": by_seed(a, "a"), "b": by_seed(b, "b")})["b"]
    if not isinstance(a, Mapping) or any(value is None or isinstance(value, float | int) for value in a.values()):
        raise BadRequest("paired takes two lists of results, or one dict of a list per arm")
    if len(a) < 2:
        raise BadRequest(f"paired takes two arms at least, not {len(a)}")
    return arms_paired({str(name): by_seed(values, name) for name, values in a.items()})


def arms_paired(arms: Mapping[str, dict[Any, float | None]]) -> PairedArms:
    """Return every arm beside the first one; refuse seeds that are not the same."""
    (first, reference), *others = arms.items()
    found = PairedArms()
    for name, values in others:
        check_seeds({first: reference, name: values})
        pairs = [(reference[seed], values[seed]) for seed in reference]
        effect = paired_effect([before for before, _ in pairs], [after for _, after in pairs])
        low_high = effect["ci95"]
        found[name] = Paired(
            names=(first, name),
            reference=estimate(reference.values()),
            arm=estimate(values.values()),
            n=effect["n"],
            diff=effect["diff"],
            ci95=None if low_high is None else (low_high[0], low_high[1]),
            least=effect["least"],
            p=effect["p"],
            p_holm=None,
        )
    corrected = holm([each.p for each in found.values()])
    return PairedArms((name, replace(found[name], p_holm=p)) for name, p in zip(found, corrected))


def by_seed(results: Any, name: object) -> dict[Any, float | None]:
    """Return results by seed, NaN as None; those of a list by their place. Refuse what is not a number per seed."""
    try:
        if isinstance(results, str | bytes | set | frozenset):  # which have no number, or no order
            raise TypeError
        known = dict(results) if hasattr(results, "keys") else dict(enumerate(results))
        values = {seed: number(value) for seed, value in known.items()}
    except (TypeError, ValueError):
        raise BadRequest(
            f"paired takes a number per seed, as a list, an array or a dict by seed; {name} is not"
        ) from None
    if not values:
        raise BadRequest(f"paired takes a result of one seed at least; {name} has none")
    if infinite := [seed for seed, value in values.items() if value is not None and math.isinf(value)]:
        raise BadRequest(f"paired takes numbers that are finite; {name} has an infinite one at {infinite[0]}")
    return values


def number(value: Any) -> float | None:
    """Return a value as a number, NaN as None; raise TypeError for a text, a truth value or several values."""
    value = value.item() if getattr(value, "ndim", None) == 0 else value  # of NumPy or torch
    if isinstance(value, str | bytes | bool) or hasattr(value, "ndim"):
        raise TypeError
    return None if value is None or math.isnan(known := float(value)) else known


def check_seeds(arms: Mapping[str, dict[Any, float | None]]) -> None:
    """Raise BadRequest unless two arms have the same seeds."""
    (first, a), (second, b) = arms.items()
    if a.keys() == b.keys():
        return
    lacking = ((first, [seed for seed in b if seed not in a]), (second, [seed for seed in a if seed not in b]))
    said = [f"{name} lacks {', '.join(map(str, seeds))}" for name, seeds in lacking if seeds]
    raise BadRequest(
        f"paired takes the same seeds of every arm; {first} has {len(a)}, {second} has {len(b)}: {' and '.join(said)}"
    )


def mean_text(value: Estimate) -> str:
    """Return a mean with its standard error as text."""
    if value.mean is None:
        return "-"
    return f"{value.mean:.4g}" if value.error is None else f"{value.mean:.4g} ± {value.error:.2g}"


def written(name: str, p: float) -> str:
    """Return a p-value with its name as text."""
    return f"{name} < 0.001" if p < 0.001 else f"{name} = {p:.3f}"
