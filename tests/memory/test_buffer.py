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


def test_the_last_writer_of_a_slot_stays_and_rejected_rows_vanish():
    buffer = Buffer(3, columns())
    buffer.write(torch.tensor([0, 1, 0, 3]), rows(10, 11, 12, 13))
    assert buffer.rows["y"][:3].tolist() == [12, 11, 0]
    assert buffer.size == 2
    assert buffer.filled().tolist() == [True, True, False]
    assert all(13 not in column for name, column in buffer.state_dict().items() if name == "y")


def test_draws_without_replacement_and_fills_from_the_stream():
    buffer = Buffer(10, columns())
    buffer.write(torch.arange(4), rows(1, 2, 3, 4))
    drawn = buffer.sample(6, generator(0, "memory"), rows(7, 8))
    assert sorted(drawn["y"][:4].tolist()) == [1, 2, 3, 4]
    assert drawn["y"][4:].tolist() == [7, 8]  # rows 4 and 5 of the batch, counted round the stream's two
    assert torch.equal(drawn["x"][:, 0].long(), drawn["y"])
    assert buffer.sample(25, generator(0, "memory"), rows(7, 8))["y"].shape == (25,)  # more than it can hold


def test_draws_are_uniform():
    buffer = Buffer(10, columns())
    buffer.write(torch.arange(8), rows(*range(8)))
    random = generator(0, "memory")
    counts = torch.stack([buffer.draw(3, random)[0] for _ in range(4000)]).flatten().bincount(minlength=10)
    assert counts[8:].sum() == 0
    assert (counts[:8] / 4000 - 3 / 8).abs().max() < 4 * math.sqrt(3 / 8 * 5 / 8 / 4000)


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


def test_reservoir_that_does_not_accept_changes_nothing():
    buffer = Buffer(5, columns())
    slots = reservoir_slots(buffer, 4, torch.tensor(False), generator(0, "memory"))
    assert slots.tolist() == [5] * 4
    buffer.write(slots, rows(1, 2, 3, 4))
    assert (buffer.seen, buffer.size) == (0, 0)
