"""What results are compared with by `--against`: against plain loops over the cells, of which some are missing."""

import itertools

import numpy as np
import pytest
from scipy.stats import ttest_rel

from droptop import BadRequest
from droptop.results.statistics import holm
from droptop.sweeps.pairing import Named, Plain, reference_of
from droptop.sweeps.results import grouped_rows

GRID = list(itertools.product(("er", "derpp"), (0.03, 0.1), ("none", "droptop"), range(6)))


def cell(random, method, lr, debias, seed, **options):
    """One figure of a cell, whose method and debiasing have options of their own."""
    own = {"learner.distill_weight": 0.1} if method == "derpp" else {}
    own |= {"droptop.gamma": 5.0} if debias == "droptop" else {}
    measured = {"test": "clean", "figure": "A_avg", "value": 50 + 3 * random.normal() + (2 if method == "derpp" else 0)}
    names = {"data": "d", "method": method, "debias": debias, "learner.lr": lr, "seed": seed}
    run = f"{method}-{lr}-{debias}-{options}"
    return names | {"run": run, "stream.batch": 32, "learner.memory": 500} | own | measured | options


@pytest.fixture
def values():
    """Cells of two methods, rates and debiasings; seeds 2 and 5 of some are missing, and one has no number."""
    random = np.random.default_rng(0)
    missing = {("er", 0.1, "none", 2), ("derpp", 0.1, "droptop", 5), ("er", 0.03, "droptop", 2)}
    found = [cell(random, *each) for each in GRID if each not in missing]
    found[3]["value"] = None
    return found


def slow_rows(values, by, option, wanted):
    """What every group differs by, by loops: over the cells of the group, and over all cells for their twins."""
    rows = {}
    for name in {value[by] for value in values}:
        differences = {}
        for value in values:
            if value[by] != name or value[option] == wanted or value["value"] is None:
                continue
            for other in values:
                same = all(
                    other.get(path) == value.get(path)
                    for path in ("data", "method", "debias", "learner.lr", "droptop.gamma", "seed", "test", "figure")
                    if path != option and not (option == "debias" and path == "droptop.gamma")
                )
                if same and other[option] == wanted and other["value"] is not None:
                    differences.setdefault(value["seed"], []).append(value["value"] - other["value"])
        rows[name] = [np.mean(differences[seed]) for seed in sorted(differences)]
    return rows


@pytest.mark.parametrize(
    ("against", "option", "wanted"),
    [
        ("er", "method", "er"),
        ("method=derpp", "method", "derpp"),
        ("lr=0.1", "learner.lr", 0.1),
        ("learner.lr=3e-2", "learner.lr", 0.03),
        ("droptop", "debias", "droptop"),
        ("debias=none", "debias", "none"),
        (None, "debias", "none"),
    ],
)
@pytest.mark.parametrize("by", ["method", "learner.lr", "debias"])
def test_differences_are_those_of_a_loop(values, by, against, option, wanted):
    rows = grouped_rows(values, [by], reference=reference_of(values, against))
    expected = slow_rows(values, by, option, wanted)
    for row in rows:
        differences = expected[row[by]]
        assert row["pairs"] == len(differences)
        if differences:
            test = ttest_rel(differences, np.zeros(len(differences)))
            assert (row["diff"], row["p"]) == (pytest.approx(np.mean(differences)), pytest.approx(test.pvalue))
    assert [row["p_holm"] for row in rows] == holm([row["p"] for row in rows])


def test_of_several_cells_of_the_reference_the_mean_counts():
    """DropTop with two gammas: the row of `droptop` is their mean, and so is what others are compared with."""
    random = np.random.default_rng(1)
    found = [cell(random, "er", 0.1, "none", seed) for seed in range(4)]
    found += [cell(random, "er", 0.1, "droptop", seed, **{"droptop.gamma": g}) for g in (2.0, 5.0) for seed in range(4)]
    droptop, none = grouped_rows(found, ["debias"], reference=reference_of(found, "droptop"))[::-1]
    assert none["diff"] == pytest.approx(none["mean"] - droptop["mean"])
    narrow = reference_of(found, "droptop,gamma=5")
    assert [narrow.beside(value) for value in found[:4]] == [value["value"] for value in found[8:]]


def test_options_that_a_recipe_sets_belong_to_the_debiasing():
    random = np.random.default_rng(2)
    more = {"learner.iterations": 2, "learner.average": True, "colour.share": 0.5}
    few = {"learner.iterations": 1, "learner.average": False}
    robust, droptop = (
        [cell(random, "er", 0.1, debias, seed, **options) for seed in range(3)]
        for debias, options in (("robust", more), ("droptop", few))
    )
    for against, these, those in (("droptop", robust, droptop), ("robust", droptop, robust)):
        reference = reference_of(robust + droptop, against)
        assert [reference.beside(value) for value in these] == [value["value"] for value in those]
    other = [value | {"learner.memory": 77} for value in robust]
    assert [reference_of(other + droptop, "droptop").beside(value) for value in other] == [None] * 3


def test_what_a_method_has_one_value_of_is_its_own_and_is_named():
    random = np.random.default_rng(3)
    er = [cell(random, "er", 0.1, "none", seed) for seed in range(3)]
    l2p = [cell(random, "l2p", 0.03, "none", seed, **{"net.patch": 16}) for seed in range(3)]
    reference = reference_of(er + l2p, "er")
    assert [reference.beside(value) for value in l2p] == [value["value"] for value in er]
    assert reference.also == {"lr"}
    more = [cell(random, "er", 0.03, "none", seed) for seed in range(3)]  # now the rate varies, and must be the same
    reference = reference_of(er + l2p + more, "er")
    assert [reference.beside(value) for value in l2p] == [value["value"] for value in more]
    assert reference.also == set()


def test_an_option_that_is_not_set_is_not_any_value():
    """`limit` stands in config.toml only where there is one."""
    random = np.random.default_rng(4)
    er, mir = cell(random, "er", 0.1, "none", 0), cell(random, "mir", 0.1, "none", 0, limit=64)
    assert reference_of([er, mir], "er").beside(mir) is None
    assert reference_of([er, mir | {"stream.split": "0/1"}], "er").beside(mir | {"stream.split": "0/1"}) is None


def test_arms_of_a_comparison_are_compared_with_the_first():
    random = np.random.default_rng(5)
    first, other = (
        [cell(random, method, lr, "none", seed, arm=method) for seed in (0, 1)]
        for method, lr in (("er", 1), ("mir", 2))
    )
    reference = reference_of(first + other, None)
    assert isinstance(reference, Named)
    assert reference.name == "er"
    assert [reference.beside(value) for value in first + other] == [None, None, *(value["value"] for value in first)]
    assert reference_of(first + other, "mir").beside(first[1]) == other[1]["value"]


def test_the_default_is_the_same_without_debiasing(values):
    assert isinstance(reference_of(values, None), Plain)
    assert isinstance(reference_of(values, "none"), Plain)


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("erp", "--against takes der.*er, none or OPTION=VALUE, not erp; did you mean er?"),
        ("lr=0.2", "--against takes lr of 0.03, 0.1 in these results, not 0.2$"),
        ("method=mir", "--against takes method of derpp, er in these results, not mir"),
        ("lrr=0.1", "--against takes options of the study's runs, .* not lrr; did you mean lr[?]"),
        ("", "--against takes .* or OPTION=VALUE, not $"),
    ],
)
def test_what_no_result_has_is_refused_in_a_line(values, against, says):
    with pytest.raises(BadRequest, match=says) as error:
        reference_of(values, against)
    assert "\n" not in str(error.value)
