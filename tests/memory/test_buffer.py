import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from droptop import BadRequest
from droptop.memory import Buffer
from droptop.memory import buffer as module
from droptop.memory.buffer import comes_again
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


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_of_many_writers_of_a_slot_the_last_stays(slots):
    buffer = Buffer(4, columns())
    buffer.write(torch.tensor(slots), rows(*range(10, 10 + len(slots))))
    last = {slot: 10 + place for place, slot in enumerate(slots)}
    assert buffer.rows["y"][:4].tolist() == [last.get(slot, 0) for slot in range(4)]
    assert buffer.size == max((slot + 1 for slot in slots if slot < 4), default=0)
    assert comes_again(torch.tensor(slots)).tolist() == [slot in slots[at + 1 :] for at, slot in enumerate(slots)]


def test_the_whole_memory_is_shown_and_not_copied():
    buffer = Buffer(3, columns())
    shown = buffer.whole()
    buffer.write(torch.tensor([1, 3]), rows(7, 8))
    assert shown["y"].tolist() == [0, 7, 0]  # the row for rejected samples is not among them


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


def test_a_memory_is_refused_where_the_bytes_of_its_rows_do_not_fit(monkeypatch):
    columns = {"x": torch.zeros(3, 5), "y": torch.zeros((), dtype=torch.int64), "odd": torch.zeros(7, dtype=torch.bool)}
    needed = 11 * (3 * 5 * 4 + 8 + 7)  # ten rows, and the one for rejected samples
    monkeypatch.setattr(module, "room_on", lambda device: needed)
    made = Buffer(10, columns)
    assert sum(column.nbytes for column in made.rows.values()) == needed
    monkeypatch.setattr(module, "room_on", lambda device: needed - 1)
    with pytest.raises(BadRequest, match="--memory takes as many samples as the machine can hold: 10 take"):
        Buffer(10, columns)
