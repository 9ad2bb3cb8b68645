"""ASER: Shapley values by their definition, and what the memory keeps and gives by them."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from droptop import BadRequest, configure
from droptop.learner import Joined
from droptop.memory import balanced_draw, draw_per_class
from droptop.methods import aser
from droptop.methods.aser import knn_shapley, standing_in, take_places

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


# -- As in the authors' code: floor(per_class) candidates and judges per class, and no more are replayed --------------


@pytest.mark.parametrize("memory_batch", [2, 3, 6])
def test_published_sampling_against_a_slow_loop(memory_batch):
    options = {"memory": 16, "memory_batch": memory_batch, "debias": "none"}
    learner = feed(toy_learner("aser", sampling="published", **options), toy_batches(6))
    learner.memory.rows["y"][:16] = torch.tensor([0, 1, 2, 3, *range(3)] + 3 * [0, 1, 2])  # of one class, one sample
    stream = dict(zip("xy", toy_batches(1, size=5, seed=5)[0]))
    state = learner.random["memory"].get_state()
    replayed = learner.retrieve(stream)
    learner.random["memory"].set_state(state)
    slots, there = draw_per_class(learner.memory, 4, 2, learner.random["memory"])
    assert there.sum(1).tolist() == [2, 2, 2, 1]  # the fourth class has no judge
    candidates, judges = (learner.memory.read(slots[there[:, part], part]) for part in (0, 1))
    cooperative, adversarial = (
        mean_values(learner, rows["x"], rows["y"], candidates["x"], candidates["y"]) for rows in (judges, stream)
    )
    value = [a - b for a, b in zip(cooperative, adversarial)]
    count = min(memory_batch, 4)
    assert replayed["there"].tolist() == [True] * count + [False] * (memory_batch - count)
    of_row = {x.numpy().tobytes(): n for n, x in enumerate(candidates["x"])}
    places = [of_row[x.numpy().tobytes()] for x in replayed["x"][:count]]
    assert len(set(places)) == count
    assert replayed["y"][:count].tolist() == candidates["y"][places].tolist()
    assert [value[n] for n in places] == pytest.approx(sorted(value, reverse=True)[:count], abs=1e-5)


def test_published_sampling_replays_one_row_of_each_class_there_is():
    learner = feed(toy_learner("aser", sampling="published", memory=12), toy_batches(8)[:4])  # the first of two tasks
    assert learner.memory.size == 12
    replayed = learner.retrieve(dict(zip("xy", toy_batches(1)[0])))
    assert len(replayed["y"]) == 6  # every step has as many rows
    assert sorted(replayed["y"][replayed["there"]].tolist()) == [0, 1]


def test_published_sampling_replays_at_random_until_the_memory_is_full():
    learner, stream = toy_learner("aser", sampling="published", memory=60), dict(zip("xy", toy_batches(1)[0]))
    assert not learner.retrieve(stream)["there"].any()
    feed(learner, toy_batches(3))
    state = learner.random["memory"].get_state()
    replayed = learner.retrieve(stream)
    learner.random["memory"].set_state(state)
    draw_per_class(learner.memory, 4, 2, learner.random["memory"])
    expected = learner.memory.sample(6, learner.random["memory"], fill=stream)
    assert replayed["there"].all()
    assert torch.equal(replayed["x"], expected["x"])


def test_the_loss_is_that_of_the_rows_that_count():
    """Of the rows that the authors' code would have, by a loop; those that stand in have no gradient either."""
    learner = toy_learner("aser", sampling="published")
    logits = torch.randn(8 + 6, 4, requires_grad=True)
    y, there = torch.arange(14) % 4, torch.tensor([True, False, True, False, False, True])
    batch = Joined(torch.zeros(14), y, 8, {"there": there}, {})
    loss = learner.loss(logits, batch)
    counting = [*range(8), 8, 10, 13]
    expected = sum(F.cross_entropy(logits[i], y[i]) for i in counting) / len(counting)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert [i for i in range(14) if logits.grad[i].abs().sum() > 0] == counting


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 40))
def test_rows_that_stand_in_are_spread_over_those_that_count(there, stream):
    source = standing_in(torch.tensor(there), stream).tolist()
    counting = [*range(stream), *(stream + i for i, held in enumerate(there) if held)]
    assert all(source[i] == stream + i for i, held in enumerate(there) if held)
    taken = [source[i] for i, held in enumerate(there) if not held]
    times = [taken.count(row) for row in counting]
    assert sum(times) == len(taken)  # no other row is taken
    assert max(times) - min(times) <= 1
    memory = sum(row >= stream for row in taken)  # of the memory's rows as many as their share, but for rounding
    assert abs(memory - len(taken) * sum(there) / len(counting)) < 1


def test_published_updates_have_as_many_rivals_and_judges():
    """Rounded down, and a judge per class."""
    learner = toy_learner("aser", sampling="published", per_class=1.6)  # of four classes int(6.4)
    assert learner.judges == 6
    assert toy_learner("aser", per_class=1.6).judges == 7
    [(slots, _)] = learner.draw_balanced(6)
    assert len(slots) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_class": 0.5}, "--sampling takes filled with --per-class below 1"),
        ({"replay_forward": "separate"}, "--sampling takes filled with --replay-forward separate"),
    ],
)
def test_published_sampling_is_refused_where_it_cannot_be(options, message):
    with pytest.raises(BadRequest, match=message):
        configure("fashion", "aser", sampling="published", **options)
