"""Test sets that share passes are predicted as each of them alone."""

import pytest
import torch

from droptop import Samples
from droptop.training.evaluation import passes, predict_test, predict_tests

from toys import CLASSES, SPEC, feed, toy_batches, toy_learner


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("counts", [[3, 0, 7, 10, 1], [0, 0], [20], [5, 5, 5], []])
def test_every_row_is_in_one_pass_in_order(counts, shared):
    named = {f"test {number}": count for number, count in enumerate(counts)}
    made = passes(named, 5, shared)
    rows = [(name, row) for parts in made for name, part in parts for row in range(part.start, part.stop)]
    assert rows == [(name, row) for name, count in named.items() for row in range(count)]
    sizes = [sum(part.stop - part.start for _, part in parts) for parts in made]
    assert all(0 < size <= 5 for size in sizes)
    assert all(size == 5 for size in sizes[:-1]) or not shared
    assert shared or all(len(parts) == 1 for parts in made)


def test_sets_that_share_passes_are_predicted_as_each_alone(monkeypatch):
    """With passes of 7: some end in the middle of a test set; one set has its shortcut known, one has nothing seen."""
    learner, random = feed(toy_learner("er"), toy_batches(6)[:3]), torch.Generator().manual_seed(0)
    sizes, tests = (9, 1, 0, 17, 4), {}
    for number, size in enumerate(sizes):
        x = torch.randint(0, 256, (size, *SPEC.shape), dtype=torch.uint8, generator=random)
        y = torch.arange(size) % CLASSES if number < 4 else torch.full((size,), CLASSES - 1)
        follows = torch.arange(size) % 3 == 0 if number == 3 else None
        tests[f"test {number}"] = Samples(
            x, y, follows, groups={"parity": torch.arange(size) % 2} if size > 1 else None
        )
    monkeypatch.setattr("droptop.training.evaluation.chunk", lambda learner: 7)
    alone = {name: predict_test(learner, test) for name, test in tests.items()}
    whole = passes
    monkeypatch.setattr("droptop.training.evaluation.passes", lambda counts, size, _: whole(counts, size, True))
    together = predict_tests(learner, tests)
    assert together.keys() == alone.keys()
    for name, expected in alone.items():
        assert torch.equal(together[name].labels, expected.labels)
        assert torch.equal(together[name].predicted, expected.predicted)
        for column, groups in expected.groups.items():
            assert together[name].groups[column].names == groups.names
            assert torch.equal(together[name].groups[column].codes, groups.codes)
    assert [len(each.labels) for each in together.values()] == [5, 1, 0, 9, 0]
    assert together["test 3"].groups[""].names == ("follow", "contradict")
