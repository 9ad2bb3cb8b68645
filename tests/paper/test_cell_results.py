"""The arithmetic of series by seed."""

from droptop.paper.cell_results import average, difference, mean, relative


def test_means_and_differences_of_series_by_hand():
    assert average([{0: 1.0, 1: 2.0}, {1: 4.0, 2: 9.0}]) == {1: 3.0}
    assert average([]) == {}
    assert mean({}).mean is None
    assert (mean({3: 5.0}).mean, mean({3: 5.0}).error) == (5.0, None)
    assert difference({0: 1.0, 1: 2.0}, {1: 4.0, 2: 9.0}).diff == 2.0
    assert relative({0: 40.0}, {0: 30.0}, "F_last") == 25.0
    assert relative({0: 40.0}, {0: 30.0}, "A_avg") == -25.0
    assert relative({0: 40.0}, {}, "A_avg") is None
