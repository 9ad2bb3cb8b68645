"""overhead: what debiasing costs, from measurements that are written down."""

import pytest

from droptop.paper import find
from droptop.paper.cell_results import CellResults
from droptop.paper.recipes import overhead

from ..invented import quick_scope


def test_added_cost_is_in_both_of_the_papers_terms():
    time, memory = overhead.added(42.55, 49.26), overhead.added(4.509, 4.563)
    assert [share.value for share in time] == pytest.approx([15.77, 13.62], abs=0.005)
    assert [share.value for share in memory] == pytest.approx([1.198, 1.183], abs=0.0005)
    assert [share.value for share in overhead.added(None, 1.0)] == [None, None]


def test_costs_are_read_from_the_measurements(tmp_path):
    recipe = find("overhead")
    results = CellResults(recipe, quick_scope(recipe), tmp_path)
    costs = {"ER": 10.0, "ER + DropTop, probe of a batch": 12.0, "ER + DropTop, probe of the whole memory": 16.0}
    for number in overhead.rounds(results):
        for arm, cost in costs.items():
            results.measurements.once(
                overhead.key(results, "fashion-sticker", arm, number),
                lambda cost=cost, number=number: {"ms": cost * (1 + 0.1 * number), "mib": 100.0},
            )
    table = overhead.table(results, "fashion-sticker").without_paper()
    assert [str(cell) for cell in table.rows[5]] == [
        "",
        "ER + DropTop, probe of the whole memory",
        "16.8 ± 0.8",
        "60.0%",
        "37.5%",
        "2",
        "+6.3 (+2.5 to +10.1), p = 0.030",
    ]
    whole = overhead.table(results, "fashion-sticker")
    assert {row[2] for row in whole.rows} == {""}  # the paper's costs are of another stream
    assert whole.notes[-1].startswith("Nothing is quoted or judged of fashion-sticker")
    [memory, *_] = overhead.table(results, "split-tiny-imagenet9").rows
    assert memory[2] == "4.509 GB"
    assert overhead.peak_mib() > 50  # of a process with torch in it
    names = {overhead.key(results, "fashion-sticker", arm, 0) for arm in costs}
    assert len(names) == 3  # a name says all that its value depends on
