import pytest
import torch

from droptop import BadRequest, Samples, Spec, Stream, StreamConfig, make_stream
from droptop.streams import Position

SPEC = Spec((1, 2, 2), tuple("abcdef"))


def toy_stream(seed=0, limit=None, **options):
    y = torch.arange(6).repeat(11)
    x = torch.arange(66, dtype=torch.uint8)[:, None, None, None].expand(66, 1, 2, 2)  # an image is its number
    return Stream("toy", SPEC, Samples(x, y), {}, StreamConfig(**{"tasks": 3, "batch": 4} | options), seed, limit)


def numbers(stream, start=Position()):
    return [batch.x[:, 0, 0, 0].tolist() for batch in stream.batches(start)]


def test_every_sample_arrives_once_in_its_task():
    stream = toy_stream(drop_last=False)
    seen = []
    for x, y, task, shortcut in stream:
        assert set(y.tolist()) <= set(stream.tasks[task])
        assert shortcut is None
        seen += x[:, 0, 0, 0].tolist()
    assert sorted(seen) == list(range(66))
    assert len(numbers(stream)) == len(stream) == 3 * 6


def test_a_ragged_batch_is_dropped_unless_told():
    assert [len(batch) for batch in numbers(toy_stream())] == [4] * 15
    assert [len(batch) for batch in numbers(toy_stream(drop_last=False))] == [4, 4, 4, 4, 4, 2] * 3


@pytest.mark.parametrize(
    ("batch", "drop_last"), [(4, True), (4, False), (11, False), (22, False), (50, False), (21, False)]
)
def test_the_last_batch_of_a_task_has_what_is_left(batch, drop_last):
    stream = toy_stream(batch=batch, drop_last=drop_last)
    for task in range(3):
        assert stream.last_batch(task) == len(stream.batch(Position(task, stream.steps(task) - 1)).y)


def test_order_depends_on_the_seed_alone():
    assert numbers(toy_stream(1)) == numbers(toy_stream(1))
    assert numbers(toy_stream(1)) != numbers(toy_stream(2))


@pytest.mark.parametrize("start", [Position(0, 3), Position(1, 0), Position(2, 4), Position(3, 0)])
def test_batches_may_start_at_any_position(start):
    stream = toy_stream()
    assert numbers(stream, start) == numbers(stream)[5 * start.task + start.batch :]


def test_limit_takes_the_first_of_the_shuffled():
    whole = numbers(toy_stream())
    assert numbers(toy_stream(limit=8)) == whole[0:2] + whole[5:7] + whole[10:12]
    with pytest.raises(BadRequest, match="--limit"):
        toy_stream(limit=3)


def test_class_orders():
    assert toy_stream().tasks == ((0, 1), (2, 3), (4, 5))
    assert toy_stream(class_order="5,0,1,2,4,3").tasks == ((5, 0), (1, 2), (4, 3))
    shuffled = [toy_stream(seed, class_order="random").tasks for seed in range(5)]
    assert len(set(shuffled)) > 1
    assert all(sorted(sum(tasks, ())) == list(range(6)) for tasks in shuffled)
    for wrong in ("0,1,2", "0,1,2,3,4,4", "backwards", ""):
        with pytest.raises(BadRequest, match="class-order"):
            toy_stream(class_order=wrong)


def test_tasks_must_divide_the_classes():
    with pytest.raises(BadRequest, match="tasks"):
        make_stream("fashion", tasks=3)


def test_an_option_that_a_stream_does_not_have_is_named_in_its_own_terms():
    with pytest.raises(BadRequest, match=r"^stream fashion-sticker has no option limt; it has .*did you mean limit\?$"):
        make_stream("fashion-sticker", limt=3)
    with pytest.raises(BadRequest, match=r"^stream fashion has no option lr; it has root, limit, tasks, [a-z_, ]+$"):
        make_stream("fashion", lr=0.1)  # a learner's: it would say nothing here
    assert make_stream("fashion", **{"stream.drop-last": False}).config.drop_last is False


@pytest.mark.parametrize("cue", [{"elsewhere": True}, ["test"], True])
def test_a_cue_of_other_test_sets_is_refused(cue):
    samples = Samples(torch.zeros(12, 1, 2, 2, dtype=torch.uint8), torch.arange(12) % 6)
    with pytest.raises(BadRequest, match="cue says by name which test sets have it"):
        Stream("toy", SPEC, samples, {"test": samples}, StreamConfig(tasks=1, batch=4), 0, cue=cue)


def test_the_first_test_set_has_the_cue_unless_told():
    assert make_stream("fashion-sticker").cue == {"biased": True, "removed": False, "random": False}
    assert make_stream("fashion-sticker", hold_out=20.0).cue == {"held-out": True}
    assert make_stream("fashion", shortcut="frame").cue == {"biased": True, "removed": False, "random": False}


def test_a_seed_below_0_is_refused():
    with pytest.raises(BadRequest, match="--seed takes a number from 0, not -1"):
        make_stream("fashion", seed=-1)


def test_a_set_lacks_the_cue_where_its_name_or_the_user_says_so():
    samples = Samples(torch.zeros(12, 1, 2, 2, dtype=torch.uint8), torch.arange(12) % 6)
    tests, config = dict.fromkeys(("night", "no-logo", "seen"), samples), StreamConfig(tasks=1, batch=4)
    assert Stream("toy", SPEC, samples, tests, config, 0).cue == {"night": True, "no-logo": False}
    assert Stream("toy", SPEC, samples, tests, config, 0, cue={"seen": False}).cue == {"seen": False}
