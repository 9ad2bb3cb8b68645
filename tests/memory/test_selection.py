"""Draws by weight and by class, against what they should be on average."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from droptop.memory import Buffer, balanced_draw, draw_per_class, first_free_slots, selection, weighted_draw


def buffer_of(labels, capacity):
    buffer = Buffer(capacity, {"y": torch.zeros((), dtype=torch.int64)})
    buffer.write(torch.arange(len(labels)), {"y": torch.tensor(labels)})
    return buffer


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(1, 25), st.integers(0, 10**6))
def test_balanced_draw_takes_a_sample_of_every_class_in_turn(labels, count, seed):
    buffer = buffer_of(labels, 22)
    slots, there = balanced_draw(buffer, count, torch.Generator().manual_seed(seed))
    drawn = slots[there].tolist()
    assert len(set(drawn)) == len(drawn) == min(count, len(labels))
    assert all(slot < len(labels) for slot in drawn)
    assert all(slot >= len(labels) for slot in slots[~there].tolist())  # what is not there names no sample
    taken = [sum(labels[slot] == label for slot in drawn) for label in range(5)]
    held = [labels.count(label) for label in range(5)]
    rounds = max(taken)
    assert all(t >= min(rounds - 1, h) for t, h in zip(taken, held))


def test_balanced_draw_prefers_no_class_in_a_partial_turn():
    buffer, random = buffer_of([0] * 2 + [1] * 9 + [2] * 40, 60), torch.Generator().manual_seed(0)
    labels = buffer.rows["y"]
    counts = sum(labels[balanced_draw(buffer, 4, random)[0]].bincount(minlength=3) for _ in range(3000)) / 3000
    assert (counts - 4 / 3).abs().max() < 4 * math.sqrt(2 / 9 / 3000)


def test_balanced_draw_is_fair_within_a_class():
    buffer, random = buffer_of([0] * 8 + [1] * 2, 12), torch.Generator().manual_seed(0)
    counts = torch.zeros(12)
    for _ in range(4000):
        slots, _ = balanced_draw(buffer, 4, random)
        counts[slots] += 1
    assert (counts[:8] / 4000 - 2 / 8).abs().max() < 4 * math.sqrt(0.25 * 0.75 / 4000)
    assert (counts[8:10] == 4000).all()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(1, 4), st.integers(0, 10**6))
def test_draw_per_class_takes_so_many_of_every_class(labels, each, seed):
    slots, there = draw_per_class(buffer_of(labels, 22), 5, each, torch.Generator().manual_seed(seed))
    assert slots.shape == there.shape == (5, each)
    for label in range(5):
        drawn = slots[label][there[label]].tolist()
        assert all(labels[slot] == label for slot in drawn)
        assert len(set(drawn)) == len(drawn) == min(each, labels.count(label))
        assert (slots[label][~there[label]] == 22).all()


def test_draw_per_class_is_fair_within_a_class():
    buffer, random = buffer_of([0] * 8 + [1] * 2, 12), torch.Generator().manual_seed(0)
    counts = torch.zeros(2, 13)
    for _ in range(4000):
        slots, _ = draw_per_class(buffer, 2, 2, random)
        for place in (0, 1):  # the first of each class, and the second
            counts[place, slots[:, place]] += 1
    assert (counts[:, :8] / 4000 - 1 / 8).abs().max() < 4 * math.sqrt(1 / 8 * 7 / 8 / 4000)
    assert (counts[:, 8:10] / 4000 - 1 / 2).abs().max() < 4 * math.sqrt(0.25 / 4000)


def test_weighted_draw_is_sequential_sampling_without_replacement():
    weights, trials = torch.tensor([0.5, 0.3, 0.2, 0.0]), 6000
    random = torch.Generator().manual_seed(0)
    draws = torch.stack([weighted_draw(weights, 2, random, none=4) for _ in range(trials)])
    for first in range(3):
        for second in range(3):
            if first != second:
                p = float(weights[first] * weights[second] / (1 - weights[first]))
                measured = ((draws[:, 0] == first) & (draws[:, 1] == second)).float().mean().item()
                assert abs(measured - p) < 4 * math.sqrt(p / trials)
    assert (draws < 3).all()
    assert weighted_draw(weights, 6, random, none=4).tolist()[4:] == [4, 4]


def test_weights_of_zero_come_last():
    random = torch.Generator().manual_seed(0)
    for _ in range(50):
        drawn = weighted_draw(torch.tensor([0.0, 1e-3, 0.0, 5.0]), 3, random, none=9).tolist()
        assert set(drawn[:2]) == {1, 3}
        assert drawn[2] in (0, 2)


def test_free_slots_follow_the_filled_ones_and_end_at_the_capacity():
    buffer = buffer_of([7, 7], 4)
    assert first_free_slots(buffer, 4).tolist() == [2, 3, 4, 4]  # 4 is the row past the end
    buffer.write(first_free_slots(buffer, 4), {"y": torch.tensor([1, 2, 3, 4])})
    assert buffer.rows["y"][:4].tolist() == [7, 7, 1, 2]
    assert first_free_slots(buffer, 2).tolist() == [4, 4]


def slow_turns(keys, labels):
    """The place of each slot among those of its label by key, among equals the first; labels is -1 where none is."""
    return [
        sum((keys[other], other) < (keys[slot], slot) for other, label in enumerate(labels) if label == labels[slot])
        for slot in range(len(labels))
    ]


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 20), st.integers(1, 4), st.integers(0, 10**6))
def test_balanced_draw_is_by_turn_then_at_random_and_among_equals_by_slot(labels, count, levels, seed):
    drawn = []

    def coarse(count, generator, device):
        drawn.append((torch.rand(count, generator=generator) * levels).floor() / levels)  # so that numbers tie
        return drawn[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "uniform", coarse)
        buffer = buffer_of(labels, 14) if labels else Buffer(14, {"y": torch.zeros((), dtype=torch.int64)})
        slots, there = balanced_draw(buffer, count, torch.Generator().manual_seed(seed))
    keys, among = (values.tolist() for values in drawn)
    held = [*labels, *[-1] * (14 - len(labels))]
    turns = torch.tensor(slow_turns(keys, held)) + torch.tensor(among)
    expected = sorted(range(len(labels)), key=lambda slot: (turns[slot].item(), slot))
    assert there.tolist() == [place < len(labels) for place in range(count)]
    assert slots[there].tolist() == expected[:count]


def test_turns_hold_in_a_large_memory():
    labels = torch.randint(0, 30, (3000,), generator=torch.Generator().manual_seed(0))
    turns = selection.turns_of_classes(buffer_of(labels.tolist(), 3100), torch.Generator().manual_seed(1))
    for label in range(30):
        of_label = turns[:3000][labels == label]
        assert torch.equal(of_label.sort().values, torch.arange(len(of_label)))


@given(st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=20))
def test_keys_as_whole_numbers_have_their_order(keys):
    keys = torch.tensor(keys, dtype=torch.float32).abs()
    assert torch.equal(selection.ordered(keys).argsort(stable=True), keys.argsort(stable=True))
    assert (selection.ordered(keys) >= 0).all()
    assert (selection.ordered(keys) < 2**32).all()
