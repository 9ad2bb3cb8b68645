import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from droptop import BadRequest, Samples, Spec, Stream, StreamConfig, configure, make_stream
from droptop.rng import generator
from droptop.runs.build import build_stream
from droptop.streams import Position
from droptop.streams.order import blurred, held_out, long_tailed, noisy_labels, rows_of_tasks

from plans import plain
from toys import Elsewhere

NAMES = ("ant", "bee", "cat", "dog", "eel", "fox")


def toy_stream(seed=0, limit=None, classes=NAMES, per_class=50, **options):
    """An image is its number."""
    rows = per_class * len(classes)
    x = torch.arange(rows, dtype=torch.float32)[:, None, None, None]
    y = torch.arange(len(classes)).repeat(per_class)
    config = StreamConfig(**{"tasks": 3, "batch": 4} | options)
    return Stream("toy", Spec((1, 1, 1), classes, torch.float32), Samples(x, y), {}, config, seed, limit)


def arrived(stream):
    return [row for rows in stream.order for row in rows.tolist()]


# -- Nothing asked for, nothing changed ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"class_order": "random"}, {"tasks": 2}])
@pytest.mark.parametrize("limit", [None, 40])
def test_the_default_order_is_the_plain_formula(options, limit):
    """Streams as they were before there were long tails, blurred borders or noise, written out."""
    for seed in range(3):
        stream = toy_stream(seed, limit, **options)
        order = list(range(6))
        if options.get("class_order") == "random":
            order = torch.randperm(6, generator=generator(seed, "classes")).tolist()
        size = 6 // stream.config.tasks
        assert stream.tasks == tuple(tuple(order[i : i + size]) for i in range(0, 6, size))
        for task, classes in enumerate(stream.tasks):
            rows = torch.isin(stream.train.y, torch.tensor(classes)).nonzero()[:, 0]
            expected = rows[torch.randperm(len(rows), generator=generator(seed, "order", task))][:limit]
            assert stream.order[task].numpy().tobytes() == expected.numpy().tobytes()
        assert torch.equal(stream.labels, stream.train.y)
        for x, y, _, _ in stream:
            assert torch.equal(y, stream.train.y[x.flatten().long()])


def test_both_arms_get_the_same_stream():
    config = configure("fashion-sticker", class_order="random", imbalance=20, label_noise=30, blurry=25)
    one, other = build_stream(config, 3), build_stream(plain(config), 3)
    assert all(torch.equal(a, b) for a, b in zip(one.order, other.order, strict=True))
    assert torch.equal(one.labels, other.labels)
    assert one.tasks == other.tasks
    assert not all(torch.equal(a, b) for a, b in zip(one.order, build_stream(config, 4).order))


# -- Classes ------------------------------------------------------------------------------------------------------


def test_classes_by_name_or_label():
    assert toy_stream(class_order="fox,ant,bee,cat,eel,dog").tasks == ((5, 0), (1, 2), (4, 3))
    assert toy_stream(class_order="fox, 0,1 ,cat,4,dog").tasks == ((5, 0), (1, 2), (4, 3))
    assert toy_stream(split="dog,bee/0/fox,4").tasks == ((3, 1), (0,), (5, 4))


def test_a_number_names_a_class_where_classes_are_numbers():
    stream = toy_stream(classes=("1", "10", "2"), split="10/1,2")
    assert stream.tasks == ((1,), (0, 2))
    with pytest.raises(BadRequest, match=r"--split takes classes by name or label \(1, 10, 2\), not 0"):
        toy_stream(classes=("1", "10", "2"), split="0,1")


def test_classes_not_named_are_left_out_of_training():
    stream = toy_stream(split="bee,dog/ant")
    assert set(stream.train.y[arrived(stream)].tolist()) == {0, 1, 3}
    assert [len(rows) for rows in stream.order] == [100, 50]
    assert stream.spec.classes == NAMES


@pytest.mark.parametrize(
    ("split", "complaint"),
    [
        ("dog,dog/ant", "every class once, not dog twice"),
        ("dog,ant/3", "every class once, not dog twice"),
        ("dog,cow/ant", "ant, bee, cat, dog, eel, fox.*not cow"),
        ("dog//ant", "not an empty name"),
        ("dog,ant/", "not an empty name"),
        ("", "not an empty name"),
        ("6", "not 6"),
        ("-1", "not -1"),
    ],
)
def test_impossible_splits_are_refused(split, complaint):
    with pytest.raises(BadRequest, match=f"^--split takes {'.*' if complaint[0] != 'e' else ''}{complaint}"):
        toy_stream(split=split)


def test_tasks_may_have_two_classes_each():
    assert toy_stream(tasks=0).tasks == ((0, 1), (2, 3), (4, 5))
    assert toy_stream(tasks=0, classes=NAMES[:5], class_order="eel,ant,bee,cat,dog").tasks == ((4, 0), (1, 2), (3,))
    for tasks in (-1, 4, 12):
        with pytest.raises(BadRequest, match="tasks"):
            toy_stream(tasks=tasks)


def test_a_missing_class_is_named():
    with pytest.raises(BadRequest, match="--class-order takes natural, random or all classes; cat is missing"):
        toy_stream(class_order="fox,ant,bee,eel,dog")


# -- Long tails ---------------------------------------------------------------------------------------------------


def test_the_counts_of_long_tailed_cifar10():
    """As published for 5,000 images a class and a ratio of 100."""
    y = torch.arange(10).repeat(5000)
    kept = long_tailed(y, (tuple(range(10)),), 100.0, seed=1)
    counts = y[kept].bincount()
    assert sorted(counts.tolist()) == [50, 83, 139, 232, 387, 645, 1077, 1796, 2997, 5000]
    assert counts.tolist() != sorted(counts.tolist())  # in an order of the seed's
    orders = {tuple(y[long_tailed(y, (tuple(range(10)),), 100.0, seed)].bincount().tolist()) for seed in range(5)}
    assert len(orders) == 5


def test_imbalance_leaves_tests_and_other_classes_alone():
    stream = make_stream("fashion", imbalance=10, split="0,1/2,3")
    assert sorted(stream.train.y[torch.cat(stream.order)].bincount().tolist()) == [120, 258, 556, 1200]  # 10^(-c / 3)
    assert stream.tests["clean"].y.bincount().tolist() == [200] * 10
    assert torch.cat(stream.order).unique().numel() == 120 + 258 + 556 + 1200


def test_no_class_vanishes():
    stream = toy_stream(imbalance=1e6, drop_last=False)
    assert sorted(stream.train.y[arrived(stream)].bincount().tolist()) == [1, 1, 1, 1, 3, 50]
    assert long_tailed(torch.zeros(7, dtype=torch.int64), ((0,),), 7.0, 0).all()  # one class has no tail


# -- Blurred borders ----------------------------------------------------------------------------------------------


def test_blurry_moves_as_many_as_asked_and_spreads_them():
    stream = make_stream("fashion", blurry=30)
    home = torch.tensor([next(t for t, classes in enumerate(stream.tasks) if c in classes) for c in range(10)])
    counts = torch.stack([home[stream.train.y[rows]].bincount(minlength=5) for rows in stream.order])
    assert counts.diagonal().tolist() == [1680] * 5  # 70% of 2,400
    others = counts[~torch.eye(5, dtype=torch.bool)]
    assert others.min() > 140  # 720 over four tasks: 180 each, give or take three standard deviations
    assert others.max() < 220
    assert sorted(arrived(stream)) == list(range(12000))
    assert len(stream) == 375


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.floats(0, 100), st.integers(0, 9))
def test_blurry_whatever_the_tasks(lengths, percent, seed):
    order = list(torch.arange(sum(lengths)).split(lengths))
    mixed = blurred(order, percent, seed)
    assert [len(rows) for rows in mixed] == lengths
    assert sorted(torch.cat(mixed).tolist()) == list(range(sum(lengths)))
    wanted = [round(n * percent / 100) for n in lengths]
    for rows, own, want in zip(mixed, order, wanted):
        stays = torch.isin(rows, own)
        assert (~stays).sum() == min(want, sum(wanted) - want)
        assert torch.equal(rows[stays], own[stays])  # who stays keeps its place
    assert all(torch.equal(a, b) for a, b in zip(mixed, blurred(order, percent, seed)))


def test_a_class_may_come_before_its_task():
    stream = toy_stream(blurry=40)
    first = next(iter(stream))
    early = torch.cat([batch.y for batch in stream if batch.task == 0])
    assert first.task == 0
    assert set(early.tolist()) > set(stream.tasks[0])
    assert len(early) == 100


def test_blurry_within_a_limit():
    stream = toy_stream(limit=20, blurry=50)
    plain = toy_stream(limit=20)
    assert [len(rows) for rows in stream.order] == [20] * 3
    assert sorted(arrived(stream)) == sorted(arrived(plain))


# -- Label noise --------------------------------------------------------------------------------------------------


def test_noise_is_as_much_as_asked_within_the_task_and_even():
    stream = make_stream("fashion", tasks=2, label_noise=40)
    wrong = stream.labels != stream.train.y
    for task, classes in enumerate(stream.tasks):
        rows = stream.order[task]
        assert wrong[rows].sum() == 0.4 * 6000
        assert set(stream.labels[rows].tolist()) == set(classes)
        pairs = (stream.train.y[rows][wrong[rows]] * 10 + stream.labels[rows][wrong[rows]]).bincount(minlength=100)
        moved = pairs[pairs > 0]
        assert len(moved) == 5 * 4  # from every class to every other one
        assert moved.min() > 80  # 120 each, give or take four standard deviations
        assert moved.max() < 165
    told = torch.cat([batch.y for batch in stream])
    order = torch.cat([rows[: len(rows) // 32 * 32] for rows in stream.order])
    assert torch.equal(told, stream.labels[order])
    assert stream.train.y.bincount().tolist() == [1200] * 10  # the truth is still there


def test_noise_in_a_source_that_is_no_tensor():
    memory = toy_stream(label_noise=30)
    disk = Stream("toy", memory.spec, Elsewhere(memory.train), {}, memory.config, memory.seed)
    assert all(torch.equal(a.x, b.x) and torch.equal(a.y, b.y) for a, b in zip(memory, disk, strict=True))


def test_noise_goes_with_the_other_options():
    plain, stream = (toy_stream(2, limit=60, imbalance=3, blurry=20, label_noise=n, drop_last=False) for n in (0, 25))
    assert arrived(plain) == arrived(stream)
    wrong = stream.labels != stream.train.y
    assert wrong.sum() == sum(round(0.25 * len(rows)) for rows in stream.task_rows)
    assert wrong[arrived(stream)].sum() == wrong.sum()  # all of it arrives
    whole, rest = (
        list(stream),
        list(toy_stream(2, limit=60, imbalance=3, blurry=20, label_noise=25, drop_last=False).batches(Position(1, 2))),
    )  # as a run resumes
    assert all(torch.equal(a.x, b.x) and torch.equal(a.y, b.y) for a, b in zip(whole[-len(rest) :], rest, strict=True))
    own = {c: set(classes) for classes in stream.tasks for c in classes}
    assert all(told in own[true] for told, true in zip(stream.labels.tolist(), stream.train.y.tolist()))


def test_noise_of_100_percent_leaves_no_right_label():
    stream = toy_stream(split="0,1/2", label_noise=100)
    assert stream.labels[stream.order[0]].tolist() == (1 - stream.train.y[stream.order[0]]).tolist()
    assert (stream.labels[stream.order[1]] == 2).all()  # a task of one class has no other to be taken for
    y = torch.zeros(3, dtype=torch.int64)
    assert torch.equal(noisy_labels(y, [torch.arange(3)], ((0,),), 100.0, 0), y)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("imbalance", 0.5),
        ("imbalance", float("nan")),
        ("label_noise", -1),
        ("label_noise", 101),
        ("blurry", 100.5),
        ("blurry", float("nan")),
    ],
)
def test_impossible_values_are_refused(option, wrong):
    with pytest.raises(BadRequest, match=f"--{option.replace('_', '-')} takes"):
        toy_stream(**{option: wrong})


# -- Kept back --------------------------------------------------------------------------------------------------------


def test_what_is_held_out_is_tested_on_and_never_learned():
    streams = [
        toy_stream(seed, hold_out=20, imbalance=imbalance, drop_last=False)
        for seed, imbalance in ((0, 1), (1, 1), (2, 8))
    ]
    for stream in streams:
        [(name, held)] = stream.tests.items()
        assert name == "held-out"
        assert held.y.bincount().tolist() == [10] * 6  # a fifth of every class's 50
        assert torch.equal(stream.train.y[held.x.flatten().long()], held.y)
        assert not set(held.x.flatten().tolist()) & set(arrived(stream))
    assert [len(arrived(stream)) for stream in streams[:2]] == [6 * 40] * 2
    assert torch.equal(streams[0].tests["held-out"].x, streams[2].tests["held-out"].x)  # whatever the seed
    tail = streams[2].train.y[torch.tensor(arrived(streams[2]))].bincount()
    assert (tail.max().item(), tail.min().item()) == (40, 5)  # the ratio of what is learned


def test_held_out_rows_of_a_disk_stay_there():
    samples = toy_stream().train
    disk = Stream(
        "toy", Spec((1, 1, 1), NAMES, torch.float32), Elsewhere(samples), {}, StreamConfig(tasks=3, hold_out=10), 0
    )
    memory = toy_stream(hold_out=10)
    held, expected = disk.tests["held-out"], memory.tests["held-out"]
    assert not isinstance(held, Samples)
    assert torch.equal(held.y, expected.y)
    assert torch.equal(held[torch.tensor([3, 0])].x, expected.x[[3, 0]])
    assert len(held) == len(expected) == 30


def test_nothing_held_out_is_the_stream_itself():
    test = toy_stream().train
    stream = Stream(
        "toy", Spec((1, 1, 1), NAMES, torch.float32), test, {"clean": test}, StreamConfig(tasks=3, hold_out=0), 0
    )
    assert list(stream.tests) == ["clean"]
    assert not stream.held.any()


@pytest.mark.parametrize("percent", [-1, 100, float("nan")])
def test_impossible_percentages_are_refused(percent):
    with pytest.raises(BadRequest, match="--hold-out takes a percentage from 0 to below 100"):
        StreamConfig(hold_out=percent)


@given(st.lists(st.integers(0, 5), max_size=30))
def test_rows_of_tasks_and_rows_held_out_are_those_of_their_classes(labels):
    y, tasks = (
        torch.tensor(labels, dtype=torch.int64),
        ((4, 0), (2,), (5,)),
    )  # of the classes 1 and 3 nothing is learned
    rows = rows_of_tasks(y, tasks, 6)
    assert [of_task.tolist() for of_task in rows] == [
        [row for row, label in enumerate(labels) if label in classes] for classes in tasks
    ]
    held = held_out(y, 40)
    for label in set(labels):
        of_label = (y == label).nonzero()[:, 0]
        drawn = torch.randperm(len(of_label), generator=generator(0, "hold out", label))
        count = max(1, round(len(of_label) * 0.4))
        assert of_label[held[of_label]].tolist() == sorted(of_label[drawn[:count]].tolist())
