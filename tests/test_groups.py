"""Groups of samples: what they may be, that they stay with their samples, and what is counted by them."""

import math

import numpy as np
import pytest
import torch

import droptop
from droptop import BadBatch, BadRequest, Groups, Samples
from droptop.results.metrics import column_figures, columns_of, groups_in
from droptop.training.device_stream import on_device
from droptop.training.evaluation import evaluation_lines, predict_test
from droptop.types import Subset, groups_of

from toys import CLASSES, Elsewhere, feed, toy_batches, toy_learner

X, Y, _ = toy_batches(1, size=40, tasks=1)[0]
PLACES = ["water" if number % 3 else "land" for number in range(40)]
CAMERAS = np.arange(40) % 4 + 7
LEARNER = feed(toy_learner(), toy_batches(2))


def slow_counts(learner, places):
    """One sample at a time, by group and class: how many there are of the classes seen, and how many are right."""
    counts = {place: {"n": [0] * CLASSES, "correct": [0] * CLASSES} for place in sorted(set(places))}
    for x, y, place in zip(X, Y.tolist(), places):
        if learner.seen[y]:
            counts[place]["n"][y] += 1
            counts[place]["correct"][y] += int(learner.predict(x[None]).argmax()) == y
    return counts


@pytest.mark.parametrize("where", ["memory", "elsewhere", "subset"])
def test_right_answers_are_counted_by_group(where):
    samples = Samples(X, Y, groups={"place": PLACES, "camera": CAMERAS})
    source = samples
    if where == "elsewhere":
        source = Elsewhere(samples)
        source.groups = {"place": PLACES, "camera": CAMERAS}
    if where == "subset":
        order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
        source = Subset(samples, order)
    lines = evaluation_lines({"test": predict_test(LEARNER, source)}, CLASSES)
    assert lines["groups"]["test"]["place"] == slow_counts(LEARNER, PLACES)
    assert lines["groups"]["test"]["camera"] == slow_counts(LEARNER, [str(camera) for camera in CAMERAS])
    assert lines["eval"] == {"test": droptop.evaluate(LEARNER, Samples(X, Y))}  # as without groups
    assert droptop.evaluate(LEARNER, source, by="place") == lines["groups"]["test"]["place"]
    assert "groups" not in evaluation_lines({"test": predict_test(LEARNER, Samples(X, Y))}, CLASSES)


def test_figures_of_a_column_by_hand():
    def tally(*cells):
        return {"n": [n for _, n in cells], "correct": [right for right, _ in cells]}

    groups = {
        "land": tally((9, 10), (0, 10)),
        "sea": tally((4, 4), (4, 4)),
        "air": tally((0, 4), (0, 0)),
        "fire": tally(),
    }
    figures = column_figures("place", groups)
    assert figures["place=land"] == 45
    assert (figures["place=air"], figures["place=fire"]) == (0, None)
    assert (figures["worst place"], figures["gap place"]) == (45, 55)  # four samples in the air are too few
    assert list(columns_of(figures)) == ["place"]
    assert groups_in(figures, "place") == ["land", "sea", "air", "fire"]
    few = column_figures("place", {"air": tally((0, 4))})
    assert (few["worst place"], few["gap place"]) == (None, None)


def test_groups_stay_with_their_samples():
    samples = Samples(X, Y, groups={"place": PLACES})
    rows = torch.tensor([5, 0, 39])
    for part in (samples[rows], Subset(samples, rows), Subset(Subset(samples, rows), torch.arange(3))):
        of = groups_of(part)["place"]
        assert [of.names[code] for code in of.codes] == [PLACES[row] for row in rows]
    assert samples[:7].groups["place"].names == ("land", "water")
    assert groups_of(Elsewhere(samples)) == {}
    stream = droptop.Stream(
        "mine", LEARNER.spec, samples, {"test": samples}, droptop.StreamConfig(tasks=1, batch=4, hold_out=20), seed=0
    )
    held = stream.tests["held-out"]
    assert [PLACES[row] for row in stream.held.nonzero()[:, 0]] == [
        held.groups["place"].names[code] for code in held.groups["place"].codes
    ]
    assert on_device(stream, torch.device("cpu")).tests["held-out"] is held


@pytest.mark.parametrize(
    ("given", "names", "codes"),
    [
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        (np.array(["b", "a", "b"]), ("a", "b"), [1, 0, 1]),
        ([10, 9, 10], ("9", "10"), [1, 0, 1]),
        (torch.tensor([3, 3, 1]), ("1", "3"), [1, 1, 0]),
        (np.array([True, False, True]), ("False", "True"), [1, 0, 1]),
        (Groups(("z", "a"), torch.tensor([0, 1, 0])), ("z", "a"), [0, 1, 0]),
    ],
)
def test_groups_are_integers_or_texts(given, names, codes):
    for groups in (given, {"group": given}):
        made = Samples(X[:3], Y[:3], groups=groups).groups
        assert (list(made), made["group"].names, made["group"].codes.tolist()) == (["group"], names, codes)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["a", "b"], "groups take one per sample: there are 3 samples, and group has 2"),
        ({"place": [1.0, 2.0, 1.0]}, "groups are an integer or a text per sample; place holds 1.0"),
        (["a", 1, "b"], "group holds both"),
        (["a", "", "b"], "group has an empty one for sample 1"),
        ([math.nan, "a", "b"], "group holds nan"),
        (["a", None, "b"], "group holds None"),
        ("abc", "group is a str"),
        ({"a=b": [1, 2, 3]}, "columns of groups have names without =, not 'a=b'"),
        ({3: [1, 2, 3]}, "columns of groups have names without =, not 3"),
        (np.zeros((3, 2), int), "group holds"),
    ],
)
def test_what_is_no_group_is_refused(given, says):
    with pytest.raises(BadBatch, match=says) as caught:
        Samples(X[:3], Y[:3], groups=given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "codes", "says"),
    [
        (("a", "b"), [0, 2], "codes of groups must lie in 0 to 1, not 0 to 2"),
        (("a", "b"), [-1, 0], "codes of groups must lie in 0 to 1, not -1 to 0"),
        (("a", "b"), [0.0, 1.0], r"codes of groups must be int64 \(samples\), not \(2,\) of torch\.float32"),
        (("a", "b"), [True, False], "codes of groups must be int64"),
        (("a", "b"), [[0], [1]], r"codes of groups must be int64 \(samples\), not \(2, 1\)"),
        (("a", "a"), [0, 1], "groups take one name or more, each another"),
        ("ab", [0, 1], "groups take one name or more, each another"),
        ((), [], "groups take one name or more, each another"),
    ],
)
def test_codes_are_positions_in_the_names(names, codes, says):
    with pytest.raises(BadBatch, match=says):
        Groups(names, torch.tensor(codes))


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(BadRequest, match="by takes a column of groups, place; not 'plaice'"):
        droptop.evaluate(LEARNER, Samples(X, Y, groups={"place": PLACES}), by="plaice")
    with pytest.raises(BadRequest, match="of which there is none"):
        droptop.evaluate(LEARNER, Samples(X, Y), by="place")


def test_painted_images_keep_their_groups():
    samples = Samples(X, Y, groups={"place": PLACES})
    config = droptop.StreamConfig(tasks=1, batch=4, shortcut="frame")
    stream = droptop.Stream("mine", LEARNER.spec, samples, {"test": samples}, config, seed=0)
    lines = evaluation_lines({name: predict_test(LEARNER, test) for name, test in stream.tests.items()}, CLASSES)
    assert set(lines["eval"]["random"]) == {"follow", "contradict"}
    assert set(lines["groups"]) == {"biased", "removed", "random"}
    assert all(set(columns["place"]) == {"land", "water"} for columns in lines["groups"].values())
    assert lines["groups"]["removed"]["place"] == slow_counts(LEARNER, PLACES)
