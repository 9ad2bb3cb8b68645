"""What a study found, against scipy and by hand."""

import itertools

import numpy as np
import pytest
from scipy.stats import ttest_rel

from droptop import BadRequest
from droptop.report.tables import averaged_over
from droptop.results.statistics import compare
from droptop.sweeps.pairing import Plain
from droptop.sweeps.results import FIGURES, also_varied, export, grouped_rows, usual_figures


def values(seeds=6):
    """Two learning rates, two arms; debiasing adds 2 at lr 0.1 and nothing at 0.2, with noise."""
    random = np.random.default_rng(0)
    found = []
    for lr, seed in itertools.product((0.1, 0.2), range(seeds)):
        plain = 50 + 10 * lr + random.normal()
        for debias, extra in (("none", 0.0), ("droptop", 2.0 if lr == 0.1 else 0.0)):
            value = plain + extra + (random.normal() * 0.3 if extra or debias == "droptop" else 0)
            own = {"droptop.gamma": 5.0} if debias == "droptop" else {}
            found.append(
                {
                    "data": "fashion",
                    "method": "er",
                    "debias": debias,
                    "learner.lr": lr,
                    "seed": seed,
                    "run": f"{debias}-{lr}",
                    "test": "clean",
                    "figure": "A_avg",
                    "value": value,
                }
                | own
            )
    return found


def test_options_that_are_averaged_over_are_named():
    assert also_varied(values(), ["data", "debias"]) == ["lr"]
    assert also_varied(values(), ["data", "debias", "lr"]) == []
    assert averaged_over(["lr"]) == "lr varies as well and is averaged over"
    assert averaged_over(["gamma", "lr"]) == "gamma and lr vary as well and are averaged over"


def test_p_values_are_corrected_as_in_compare():
    """The same runs as one comparison and as a study of it: the same p-values, corrected too."""
    random = np.random.default_rng(1)
    tests, figures = ("biased", "removed", "random"), ("A_avg", "A_last", "F_last")
    arms = {
        arm: {test: {figure: (60 + random.normal(size=5)).tolist() for figure in figures} for test in tests}
        for arm in ("none", "droptop")
    }
    none, droptop = (
        {"data": "d", "method": "er", "debias": arm, "seeds": list(range(5)), "tests": own} for arm, own in arms.items()
    )
    study = [
        {
            "data": "d",
            "method": "er",
            "debias": arm,
            "seed": seed,
            "run": arm,
            "test": test,
            "figure": figure,
            "value": value,
        }
        for arm, own in arms.items()
        for test in tests
        for figure in figures
        for seed, value in enumerate(own[test][figure])
    ]
    effects = compare({"none": none, "droptop": droptop})["effects"]["droptop"]
    for row in grouped_rows(study, ["debias"]):
        if row["debias"] == "droptop":
            assert row["p_holm"] == pytest.approx(effects[row["test"]][row["figure"]]["p_holm"])


def test_grouping_by_seed_gives_a_row_per_seed():
    data = values(seeds=3)
    found = grouped_rows(data, ["debias", "lr", "seed"])
    assert [(row["lr"], row["seed"], row["mean"]) for row in found if row["debias"] == "none"] == [
        (value["learner.lr"], value["seed"], value["value"]) for value in data if value["debias"] == "none"
    ]
    assert {(row["n"], row["p"], row["error"]) for row in found} == {(1, None, None)}
    plain, debiased = (
        next(row for row in found if (row["debias"], row["lr"], row["seed"]) == (arm, 0.1, 2))
        for arm in ("none", "droptop")
    )
    assert debiased["diff"] == pytest.approx(debiased["mean"] - plain["mean"])
    assert also_varied(data, ["data", "debias", "lr"]) == []


def test_groups_have_means_and_paired_differences():
    data = values()
    found = {(row["debias"], row["lr"]): row for row in grouped_rows(data, ["debias", "lr"])}
    assert found.keys() == {("none", 0.1), ("none", 0.2), ("droptop", 0.1), ("droptop", 0.2)}
    for lr in (0.1, 0.2):
        arms = [
            [v["value"] for v in data if (v["debias"], v["learner.lr"]) == (arm, lr)] for arm in ("none", "droptop")
        ]
        row = found["droptop", lr]
        assert (row["n"], row["pairs"]) == (6, 6)
        assert row["mean"] == pytest.approx(np.mean(arms[1]))
        assert row["error"] == pytest.approx(np.std(arms[1], ddof=1) / 6**0.5)
        expected = ttest_rel(arms[1], arms[0])
        assert row["p"] == pytest.approx(expected.pvalue)
        interval = expected.confidence_interval()
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
        assert found["none", lr]["diff"] is None
    ps = [found["droptop", lr]["p"] for lr in (0.1, 0.2)]
    assert found["droptop", 0.1]["p_holm"] == pytest.approx(min(ps) * 2)


def test_a_coarser_grouping_pools_and_still_pairs_like_with_like():
    data = values()
    [droptop] = [row for row in grouped_rows(data, ["debias"]) if row["debias"] == "droptop"]
    assert (droptop["cells"], droptop["n"], droptop["pairs"]) == (12, 6, 6)
    assert droptop["diff"] == pytest.approx(1.0, abs=0.3)


def test_cells_of_one_seed_are_one_observation():
    """Eight gammas that all do nothing but what the seed does: three seeds are three, not twenty-four."""
    shift = [-2.0, 1.0, 4.5]
    base = {"data": "d", "method": "er", "test": "clean", "figure": "A_avg"}
    data = [base | {"debias": "none", "run": "none", "seed": seed, "value": 50.0} for seed in range(3)]
    data += [
        base
        | {"debias": "droptop", "droptop.gamma": gamma, "run": f"g{gamma}", "seed": seed, "value": 50.0 + shift[seed]}
        for gamma in range(8)
        for seed in range(3)
    ]
    [row] = [row for row in grouped_rows(data, ["debias"]) if row["debias"] == "droptop"]
    assert (row["cells"], row["n"], row["pairs"]) == (24, 3, 3)
    assert row["p"] == pytest.approx(ttest_rel(shift, [0, 0, 0]).pvalue)


def test_options_that_results_do_not_depend_on_do_not_part_twins():
    data = [value | {"checkpoint_seconds": 9.0 if value["debias"] == "none" else 5.0} for value in values()]
    assert {row["pairs"] for row in grouped_rows(data, ["debias", "lr"]) if row["debias"] == "droptop"} == {6}


def test_rows_are_sorted_by_size():
    data = [value | {"learner.lr": 10.0 if value["learner.lr"] == 0.2 else 2.0} for value in values()]
    assert [row["lr"] for row in grouped_rows(data, ["lr", "debias"])] == [2.0, 2.0, 10.0, 10.0]


def test_cells_without_a_twin_are_not_paired():
    data = [v for v in values() if v["debias"] != "none" or v["seed"] < 3]
    assert {row["lr"]: row["pairs"] for row in grouped_rows(data, ["debias", "lr"]) if row["debias"] == "droptop"} == {
        0.1: 3,
        0.2: 3,
    }


def test_unknown_options_are_named():
    with pytest.raises(BadRequest, match="--by"):
        grouped_rows(values(), ["learning_rate"])


def test_rows_are_exported_as_csv(tmp_path):
    export(grouped_rows(values(), ["debias", "lr"]), tmp_path / "r.csv")
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines[0].startswith("debias,lr,test,figure,n,mean,error")
    assert len(lines) == 1 + 4
    with pytest.raises(BadRequest, match=r"\.csv or \.parquet"):
        export([], tmp_path / "r.xlsx")


def cell(debias, value=0.0, **options):
    """One figure of a cell, with options of its learner."""
    of_learner = {"learner.iterations": 1, "learner.average": False, "learner.lr": 0.1} | options
    return {"debias": debias, "seed": 0, "test": "clean", "figure": "A_avg", "run": debias, "value": value} | of_learner


def test_the_plain_twin_differs_in_what_the_debiasing_stands_for():
    """Averaged weights and more iterations belong to `robust`; of several plain cells it takes the cheapest."""
    iterations, average, rate = "learner.iterations", "learner.average", "learner.lr"
    none = cell("none", 1.0)
    plain = [
        cell("none", 3.0, **{iterations: 2}),
        none,
        cell("none", 2.0, **{average: True}),
        cell("none", 9.0, **{rate: 1}),
    ]
    for cells in (plain, plain[::-1]):
        twin = Plain(cells).twin
        robust = {iterations: 2, average: True}
        assert twin(cell("robust", **robust, **{"colour.share": 0.5})) is none
        assert twin(cell("robust+droptop", **robust, **{"droptop.gamma": 5.0})) is none
        assert twin(cell("droptop", **{"droptop.gamma": 5.0})) is none
        assert twin(cell("average", **{average: True})) is none
        assert twin(cell("robust", **robust | {rate: 1}))["value"] == 9.0
        assert twin(cell("droptop", **{iterations: 2}))["value"] == 3.0  # asked for beside it, and so for both
        assert twin(cell("droptop", **{rate: 0.7})) is None
        assert twin(none) is None
        assert twin(cell("robust", **robust) | {"seed": 1}) is None


def test_the_worst_group_and_the_gap_are_shown_unless_others_are_named():
    figures = ("A_avg", "gap place", "place=sea", "worst place", "worst", "A_last")
    values = [{"figure": figure} for figure in figures * 2]
    assert usual_figures(values) == [*FIGURES, "gap place", "worst place"]
