import math

import torch

from droptop.memory import Buffer
from droptop.rng import generator


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
