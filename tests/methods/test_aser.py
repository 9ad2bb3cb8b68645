"""ASER: Shapley values by their definition, and what the memory keeps and gives by them."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from droptop.memory import balanced_draw
from droptop.methods import aser
from droptop.methods.aser import knn_shapley, take_places

from toys import feed, toy_batches, toy_learner


def utility(subset, distance, match, k):
    """Share of right votes among the k nearest of a subset (Jia et al., 2019, unweighted)."""
    nearest = sorted(subset, key=lambda i: distance[i])[:k]
    return sum(match[i] for i in nearest) / k


def shapley_by_definition(distance, match, k):
    n = len(distance)
    values = []
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        total = 0.0
        for size in range(n):
            for subset in itertools.combinations(rest, size):
                gain = utility((*subset, i), distance, match, k) - utility(subset, distance, match, k)
                total += gain / math.comb(n - 1, size)
        values.append(total / n)
    return values


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.integers(0, 3))
def test_shapley_values_by_their_definition(seed, points, k, missing):
    random = torch.Generator().manual_seed(seed)
    samples, labels = torch.randn(3, 2, generator=random), torch.randint(0, 2, (3,), generator=random)
    candidates = torch.randn(points + missing, 2, generator=random)
    candidate_labels = torch.randint(0, 2, (points + missing,), generator=random)
    there = torch.arange(points + missing) < points
    values = knn_shapley(samples, labels, candidates, candidate_labels, there, k)
    for sample in range(3):
        distance = (candidates[:points] - samples[sample]).norm(dim=1).tolist()
        match = (candidate_labels[:points] == labels[sample]).float().tolist()
        assert values[sample, :points].tolist() == pytest.approx(shapley_by_definition(distance, match, k), abs=1e-5)
        assert (values[sample, points:] == 0).all()


def test_newcomers_take_the_slots_of_those_that_leave():
    none = 99
    slots = torch.tensor([40, 41, 42])
    leaves = torch.tensor([True, False, True, False, True, False, True])  # 40 and 42 go; newcomers 0 and 2 stay
    assert take_places(leaves, slots, none).tolist() == [40, none, 42, none]
    nobody = torch.tensor([False] * 3 + [True] * 4)
    assert take_places(nobody, slots, none).tolist() == [none] * 4


def test_retrieval_is_random_until_the_memory_is_full():
    learner = feed(toy_learner("aser", memory=60), toy_batches(3))
    stream = dict(zip("xy", toy_batches(1, seed=5)[0]))
    learner.features = lambda *parts: tuple(torch.full((len(part), 2), torch.nan) for part in parts)
    state = learner.random["memory"].get_state()
    retrieved = learner.retrieve(stream)
    learner.random["memory"].set_state(state)
    balanced_draw(learner.memory, 12, learner.random["memory"])
    expected = learner.memory.sample(6, learner.random["memory"], fill=stream)
    assert torch.equal(retrieved["x"], expected["x"])


def mean_values(learner, samples, labels, candidates, candidate_labels):
    """Mean values by the slow definition, on the learner's own features."""
    features = learner.features(samples, candidates)
    distance = torch.cdist(features[0], features[1])
    return [
        sum(
            shapley_by_definition(distance[i].tolist(), (candidate_labels == labels[i]).tolist(), 3)[j]
            for i in range(len(labels))
        )
        / len(labels)
        for j in range(len(candidate_labels))
    ]


def test_retrieval_ranks_by_cooperative_minus_adversarial_value():
    learner = feed(toy_learner("aser", memory=12, memory_batch=3, per_class=1.5), toy_batches(6))
    assert learner.memory.size == 12
    stream = dict(zip("xy", toy_batches(1, size=4, seed=5)[0]))
    state = learner.random["memory"].get_state()
    retrieved = learner.retrieve(stream)
    learner.random["memory"].set_state(state)
    slots, there = balanced_draw(learner.memory, 12, learner.random["memory"])  # 6 candidates, 6 judges
    assert there.all()
    rows = learner.memory.read(slots)
    cooperative = mean_values(learner, rows["x"][6:], rows["y"][6:], rows["x"][:6], rows["y"][:6])
    adversarial = mean_values(learner, stream["x"], stream["y"], rows["x"][:6], rows["y"][:6])
    value = torch.tensor(cooperative) - torch.tensor(adversarial)
    worst_chosen = min(value[i] for i in range(6) if any(torch.equal(rows["x"][i], x) for x in retrieved["x"]))
    assert worst_chosen >= value.sort(descending=True).values[2] - 1e-5
    assert len({x.numpy().tobytes() for x in retrieved["x"]}) == 3  # the memory batch is really filled


def test_update_lets_the_lowest_values_leave():
    learner = feed(toy_learner("aser", debias="none", memory=12, memory_batch=3), toy_batches(6))
    stream = dict(zip("xy", toy_batches(1, size=4, seed=5)[0]))
    state = learner.random["memory"].get_state()
    before = learner.memory.rows["x"][:-1].clone()
    stream["y"][:2] = 3  # of which the memory holds too few
    learner.memory.rows["y"][learner.memory.rows["y"] == 3] = 2
    scarce = learner.scarce(stream["y"])
    assert scarce[:2].all()
    panel = balanced_draw(learner.memory, 6, learner.random["memory"])[0]
    slots = learner.memory.draw(6, learner.random["memory"], but=panel)[0]
    assert not set(panel.tolist()) & set(slots.tolist())
    sitting, rows = learner.memory.read(panel), learner.memory.read(slots)
    judges, labels = torch.cat([sitting["x"], stream["x"][scarce]]), torch.cat([sitting["y"], stream["y"][scarce]])
    rivals = torch.cat([rows["x"], stream["x"]])
    value = torch.tensor(mean_values(learner, judges, labels, rivals, torch.cat([rows["y"], stream["y"]])))
    learner.random["memory"].set_state(state)
    learner.remember(stream | {"logits": torch.zeros(4, 4)})
    replaced = {slot for slot in range(12) if not torch.equal(before[slot], learner.memory.rows["x"][slot])}
    cut = value.sort().values[3]
    assert replaced <= {int(slots[i]) for i in range(6) if value[i] <= cut + 1e-5}
    assert {int(slots[i]) for i in range(6) if value[i] < cut - 1e-5} <= replaced
    for slot in replaced:
        assert any(torch.equal(learner.memory.rows["x"][slot], x) for x in stream["x"])


@pytest.mark.parametrize("wanted", [False, True])
def test_samples_that_do_not_fit_compete(wanted, monkeypatch):
    """The batch that fills the memory: two of it find a place, the other four compete."""
    learner = feed(toy_learner("aser", debias="none", memory=20), toy_batches(3, size=6))
    stream = dict(zip("xy", toy_batches(1, size=6, seed=5)[0])) | {"logits": torch.zeros(6, 4)}
    batch = len(stream["y"])
    assert (learner.memory.size, batch) == (18, 6)
    monkeypatch.setattr(
        aser,
        "mean_value",
        lambda *args: torch.cat(
            [torch.zeros(len(args[4]) - batch), torch.ones(batch) if wanted else -torch.ones(batch)]
        ),
    )
    before = learner.memory.rows["x"][:18].clone()
    learner.remember(stream)
    rows = learner.memory.rows["x"][:20]
    assert learner.memory.size == 20
    held = [sum(torch.equal(row, x) for row in rows) for x in stream["x"]]
    if wanted:  # rivals may be those that have just found a place
        assert held[2:] == [1] * 4
    else:
        assert torch.equal(rows, torch.cat([before, stream["x"][:2]]))


def test_classes_with_few_samples_are_handled():
    learner = toy_learner("aser", memory=80)  # an equal share of four classes is 20
    labels = torch.tensor([0] * 54 + [1] * 20 + [2] * 5 + [3])
    learner.memory.write(torch.arange(80), {"x": torch.zeros(80, 3, 16, 16, dtype=torch.uint8), "y": labels})
    often = torch.stack([learner.scarce(torch.tensor([0, 1, 2, 3])) for _ in range(4000)]).float().mean(0)
    expected = torch.tensor([0, 0, 15 / 20, 19 / 20])
    assert (often - expected).abs().max() < 4 * math.sqrt(0.25 / 4000)
    assert not often[:2].any()
