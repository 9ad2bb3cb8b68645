"""Reservoir sampling: every sample is kept equally often, whatever the batches."""

import math

import torch

from droptop.memory import Buffer, reservoir_slots
from droptop.rng import generator

YES = torch.tensor(True)


def columns():
    return {"x": torch.zeros(2, dtype=torch.uint8), "y": torch.zeros((), dtype=torch.int64)}


def rows(*labels):
    y = torch.tensor(labels)
    return {"x": torch.stack([y, y], 1).to(torch.uint8), "y": y}


def test_reservoir_keeps_every_sample_equally_often():
    kept, trials = torch.zeros(30), 4000
    random = generator(0, "reservoir")
    for _ in range(trials):
        buffer = Buffer(5, columns())
        for start in range(0, 30, 6):  # the batch that fills the memory runs over its edge
            batch = rows(*range(start, start + 6))
            buffer.write(reservoir_slots(buffer, 6, YES, random), batch)
        kept[buffer.rows["y"][:5]] += 1
        assert buffer.size == 5
    assert (kept / trials - 5 / 30).abs().max() < 4 * math.sqrt(5 / 30 * 25 / 30 / trials)


def test_a_batch_that_is_not_accepted_changes_nothing():
    buffer = Buffer(5, columns())
    slots = reservoir_slots(buffer, 4, torch.tensor(False), generator(0, "memory"))
    assert slots.tolist() == [5] * 4
    buffer.write(slots, rows(1, 2, 3, 4))
    assert (buffer.seen, buffer.size) == (0, 0)


def test_slots_follow_vitters_rule():
    """The first fill the memory in order; sample i goes to a random slot of i + 1, and is not kept past the end."""
    buffer, random, twin = Buffer(3, columns()), generator(1, "memory"), generator(1, "memory")
    drawn = [reservoir_slots(buffer, count, YES, random) for count in (2, 3, 4)]
    uniform = torch.cat([torch.rand(count, generator=twin, dtype=torch.float64) for count in (2, 3, 4)])
    expected = [i if i < 3 else min(int(u * (i + 1)), 3) for i, u in enumerate(uniform.tolist())]
    assert torch.cat(drawn).tolist() == expected
    assert buffer.seen == 9
