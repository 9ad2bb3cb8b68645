import textwrap

import pytest
import torch

import droptop
from droptop import BadBatch, BadRequest, Diverged, Samples, accuracy
from droptop.training import task_free as free

from toys import SMALL, SPEC, differences, feed, snapshot, toy_batches, toy_learner


def pairs(count, **options):
    return [(x, y) for x, y, _ in toy_batches(count, **options)]


def samples(count=4, **options):
    x, y = zip(*pairs(count, **options))
    return Samples(torch.cat(x), torch.cat(y))


def test_the_example_runs(capsys):
    lines = free.__doc__.partition("\n\n")[2]
    assert len(lines.strip().splitlines()) <= 10
    exec(textwrap.dedent(lines), {})
    assert capsys.readouterr().out.startswith("[30, 60, 90] [")


def test_learn_gives_what_a_loop_gives():
    """Measuring changes nothing, and the curve is what evaluating at those points gives."""
    batches, tests = pairs(12, tasks=1), {"a": samples(), "b": samples(6, seed=1)}
    learner, other = toy_learner(), toy_learner()
    history = droptop.learn(learner, iter(batches), tests, every=20)
    expected = {}
    for index, (x, y) in enumerate(batches):
        other.observe(x, y)
        expected[8 * (index + 1)] = {name: droptop.evaluate(other, test) for name, test in tests.items()}
    assert not differences(snapshot(learner), snapshot(other))
    assert history.samples == [24, 40, 64, 80, 96]  # the first batch end at or after every multiple of 20
    for name in tests:
        assert history.evaluations[name] == [expected[at][name] for at in history.samples]
        assert history.accuracy(name) == [accuracy(expected[at][name]) for at in history.samples]
        a = history.accuracy(name)
        assert history.anytime(name) == pytest.approx((24 * a[0] + 16 * a[1] + 24 * a[2] + 16 * a[3] + 16 * a[4]) / 96)


def test_history_is_measured_at_the_end_once():
    test = {"test": samples()}
    assert droptop.learn(toy_learner(), pairs(5), test).samples == [40]
    assert droptop.learn(toy_learner(), pairs(5), test, every=8).samples == [8, 16, 24, 32, 40]
    assert droptop.learn(toy_learner(), pairs(5), test, every=3).samples == [8, 16, 24, 32, 40]
    assert droptop.learn(toy_learner(), pairs(5), {}, every=16).samples == [16, 32, 40]


def test_accuracy_counts_only_classes_seen():
    x, y = samples(8).x, samples(8).y
    history = droptop.learn(toy_learner(), pairs(8), {"late": Samples(x[y > 1], y[y > 1])}, every=32)
    first, last = history.accuracy("late")
    assert first != first  # nothing to ask: NaN
    assert history.anytime("late") == last


def test_batches_may_come_from_a_stream_or_a_loader():
    stream = droptop.make_stream("fashion", limit=64, batch=16)
    learner, other = (droptop.make_learner("er", stream, width=4) for _ in range(2))
    droptop.learn(learner, stream, {})
    for batch in stream:
        other.observe(batch.x, batch.y, batch.task)
    assert not differences(snapshot(learner), snapshot(other))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(samples().x, samples().y), batch_size=8)
    assert droptop.learn(toy_learner(), loader, {}).samples == [32]


@pytest.mark.parametrize(
    ("method", "options"), [("dualprompt", {}), ("er", {"p_counter": "task", "period": 3, "history": 2})]
)
def test_a_batch_with_a_task_is_learned_in_that_task(method, options):
    batches = toy_batches(10)  # five steps per task, no multiple of the period
    by_task, loop, without = (toy_learner(method, **options) for _ in range(3))
    history = droptop.learn(by_task, [(*batch, None) for batch in batches], {"test": samples()}, every=24)
    feed(loop, batches)
    droptop.learn(without, [(x, y) for x, y, _ in batches], {})
    assert not differences(snapshot(by_task), snapshot(loop))
    assert history.samples == [24, 48, 72, 80]
    assert [learner.clock["task"] for learner in (by_task, without)] == [1, 0]
    assert differences(snapshot(by_task), snapshot(without))


def test_learning_goes_on_in_the_task_of_the_next_batch():
    """As after a checkpoint in the middle of the second task."""
    batches = toy_batches(10)
    whole, half, resumed = toy_learner("dualprompt"), toy_learner("dualprompt"), toy_learner("dualprompt", seed=1)
    droptop.learn(whole, batches, {})
    droptop.learn(half, batches[:7], {})
    resumed.load_state_dict(half.state_dict())
    droptop.learn(resumed, batches[7:], {})
    assert not differences(snapshot(whole), snapshot(resumed))


@pytest.mark.parametrize("third", [torch.arange(8), "a path", 1.0, None])
def test_a_third_part_that_is_no_integer_is_no_task(third):
    learner, other = toy_learner("dualprompt"), toy_learner("dualprompt")
    droptop.learn(learner, [(x, y, third) for x, y in pairs(3)], {})
    droptop.learn(other, pairs(3), {})
    assert not differences(snapshot(learner), snapshot(other))


def test_a_task_that_the_learner_cannot_have_is_named():
    learner = toy_learner("dualprompt", experts=2)
    x, y = pairs(1)[0]
    with pytest.raises(BadBatch, match="batch 1: there is no expert for task 2"):
        droptop.learn(learner, [(x, y, 1), (x, y, 2)], {})
    assert learner.clock["step"] == 1


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ((torch.zeros(8, 3, 9, 9, dtype=torch.uint8), torch.zeros(8).long()), "batch 2: images must have shape"),
        ((torch.zeros(8, 3, 16, 16), torch.zeros(8, dtype=torch.int64)), "batch 2: images must be torch.uint8"),
        ((torch.zeros(8, 3, 16, 16, dtype=torch.uint8), torch.full((8,), 4)), "batch 2: labels must lie in 0 to 3"),
        ((torch.zeros(8, 3, 16, 16, dtype=torch.uint8),), "batch 2 must be a tuple of images and labels"),
        (torch.zeros(2, 3, 16, 16, dtype=torch.uint8), "batch 2 must be a tuple of images and labels, not a Tensor"),
        (None, "not a NoneType"),
    ],
)
def test_a_bad_batch_is_named_and_changes_nothing(wrong, complaint):
    good = pairs(4)
    learner = toy_learner()
    with pytest.raises(BadBatch, match=complaint):
        droptop.learn(learner, [*good[:2], wrong, *good[2:]], {"test": samples()}, every=8)
    assert not differences(snapshot(learner), snapshot(feed(toy_learner(), toy_batches(4)[:2])))


def test_impossible_requests_are_refused():
    with pytest.raises(BadBatch, match="no batches"):
        droptop.learn(toy_learner(), [], {"test": samples()})
    with pytest.raises(BadRequest, match="every"):
        droptop.learn(toy_learner(), pairs(1), {}, every=0)
    for test, says in (
        (Samples(samples().x[:0], samples().y[:0]), "must hold samples"),
        (Samples(samples().x, samples().y + 3), "must have labels from 0 to 3, not 3 to 6"),
        (samples().x, "must be Samples of images and labels, not a Tensor"),
    ):
        with pytest.raises(BadRequest, match=f"test set mine {says}"):
            droptop.learn(toy_learner(), pairs(1), {"mine": test})
    with pytest.raises(BadRequest, match=r'test sets come by name, such as \{"test": samples\}, not as a Samples'):
        droptop.learn(toy_learner(), pairs(1), samples())
    for test in (samples().x, samples().y, None, (samples().x, samples().y), {"test": samples()}):
        with pytest.raises(BadRequest, match="a test set must be Samples of images and labels, not a "):
            droptop.evaluate(toy_learner(), test)
    with pytest.raises(BadRequest, match="a test set must have labels from 0 to 3"):
        droptop.evaluate(toy_learner(), Samples(samples().x, samples().y - 1))
    history = droptop.learn(toy_learner(), pairs(2), {"test": samples(), "other": samples()})
    for ask in (history.accuracy, history.anytime):
        with pytest.raises(BadRequest, match=r"no test set tets; there are test, other; did you mean test\?"):
            ask("tets")
    with pytest.raises(Diverged, match="batch 1: the loss is"):
        droptop.learn(toy_learner(lr=1e30), pairs(3), {})


def test_a_learner_for_a_spec_is_the_learner_for_a_stream_of_that_spec():
    y = torch.arange(4).repeat(8)
    stream = droptop.Stream(
        "mine",
        SPEC,
        Samples(torch.zeros(32, *SPEC.shape, dtype=torch.uint8), y),
        {},
        droptop.StreamConfig(tasks=2, batch=8),
        0,
    )
    one, other = (droptop.make_learner("mir", given, "none", 3, **SMALL) for given in (SPEC, stream))
    assert not differences(snapshot(one), snapshot(other))
    assert droptop.make_learner("joint", SPEC, **SMALL).spec is SPEC  # no tasks, none to refuse
    with pytest.raises(BadRequest, match=r"unknown option gama.*did you mean --gamma"):
        droptop.make_learner("er", SPEC, gama=1)
