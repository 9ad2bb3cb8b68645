"""Every array that a user can hand over: one that does not fit is refused in a line, or gives what the right one gives.

Never other numbers. `CASES` has every public constructor and function that takes arrays, with arrays that fit and what
comes of them; hypothesis breaks one of the arrays in one way or two.
"""

import copy
import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import droptop
from droptop import BadBatch, BadRequest, Samples, Spec, Stream, StreamConfig

from models import ResNet
from toys import CLASSES, FLOAT_SPEC, SPEC, Elsewhere, feed, toy_batches, toy_learner

X, Y, _ = toy_batches(1, size=12, tasks=1)[0]
Y[:CLASSES] = torch.arange(CLASSES)
FOLLOWS = torch.arange(12) % 3 > 0
SHORTCUT = torch.arange(12 * 16 * 16).view(12, 16, 16) % 5 == 0
BYTES, FLOATS = (feed(toy_learner(spec=spec), toy_batches(2, spec=spec, tasks=1)) for spec in (SPEC, FLOAT_SPEC))


def of_samples(learner, **columns):
    """What is counted on samples, and what of them reaches a batch of a stream and the report of dropped cells."""
    samples = Samples(**columns)
    stream = Stream("toy", learner.spec, samples, {"test": samples}, StreamConfig(tasks=1, batch=6), seed=0)
    batches = [(batch.x, batch.y, 0 if batch.shortcut is None else batch.shortcut.float().mean()) for batch in stream]
    return droptop.evaluate(learner, samples), len(samples), batches


def of_a_source(x, y, theirs):
    """The same, where the images come from somewhere else, which may mix them up."""
    source = Elsewhere(Samples(x, theirs))
    source.y = y
    return droptop.evaluate(BYTES, source)


def of_a_batch(learner, x, y):
    learner = copy.deepcopy(learner)
    return learner.observe(x, y), learner.state_dict()


def of_batches(x, y, test_x, test_y):
    history = droptop.learn(copy.deepcopy(BYTES), [(x, y)], {"test": Samples(test_x, test_y)})
    return history.samples, history.accuracy("test")


def of_rows(rows=None, truths=None):
    samples = Samples(X, Y, FOLLOWS, SHORTCUT)[truths if rows is None else rows]
    return samples.x, samples.y, samples.follows


def of_a_layer(x, y, memory, memory_y):
    """A step with the layer in somebody's model, and the intensities after a probe."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ResNet()
    layer = droptop.attach(model, "maxpool", "layer4", CLASSES, "droptop+colour+decouple", period=1, history=2)
    with layer.labels(y):
        logits = model(layer.images(x))
    loss = layer.penalised(F.cross_entropy(logits, Y[: len(logits)]), logits, y)
    layer.adjust(memory, memory_y)
    return loss.detach(), layer.kappa.detach(), model.eval()(x[:1].float())


def of_a_penalty(loss, logits, y):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(784, 4))
    return droptop.attach(model, "0", "1", CLASSES, "decouple").penalised(loss, logits, y).sum()


class Case(NamedTuple):
    """Arrays that fit, by name, and what comes of them."""

    outcome: Callable[..., Any]
    arrays: dict[str, Any]
    free: tuple[str, ...] = ()  # those that may have another number of rows
    own: tuple[str, ...] = ()  # those whose shape and type is the user's to decide


CELLS = torch.randperm(2 * 16, generator=torch.Generator().manual_seed(0)).view(2, 2, 8).float() / 32
UNIT = (X // 64).float() / 4  # exact in every floating point type
CASES = {
    "samples": Case(partial(of_samples, BYTES), {"x": X, "y": Y, "follows": FOLLOWS, "shortcut": SHORTCUT}),
    "float samples": Case(partial(of_samples, FLOATS), {"x": UNIT, "y": Y}),
    "source": Case(of_a_source, {"x": X, "y": Y, "theirs": Y}),
    "rows": Case(of_rows, {"rows": torch.tensor([5, 0, 11, 5])}, ("rows",)),
    "rows by truth": Case(of_rows, {"truths": FOLLOWS}, own=("truths",)),  # as numbers, they are other rows
    "observe": Case(partial(of_a_batch, BYTES), {"x": X, "y": Y}),
    "observe floats": Case(partial(of_a_batch, FLOATS), {"x": UNIT, "y": Y}),
    "predict": Case(BYTES.predict, {"x": X}, ("x",)),
    "predict floats": Case(FLOATS.predict, {"x": UNIT}, ("x",)),
    "learn": Case(of_batches, {"x": X, "y": Y, "test_x": X, "test_y": Y}),
    "layer": Case(of_a_layer, {"x": UNIT, "y": Y, "memory": UNIT, "memory_y": Y}, own=("x", "memory")),
    "penalty": Case(
        of_a_penalty,
        {"loss": torch.tensor(2.5), "logits": torch.arange(48.0).view(12, 4) / 64, "y": Y},
        free=("loss",),
        own=("loss", "logits"),
    ),
    "fuse": Case(
        lambda first, last: droptop.fuse(first, last).float(),
        {"first": UNIT, "last": UNIT[:, :, ::4, ::4]},
        own=("first", "last"),
    ),
    "drop_mask": Case(
        lambda **parts: droptop.drop_mask(*parts.values()).float(),
        {"attention": CELLS, "top": torch.tensor([3, 2]), "total": torch.tensor([5, 8]), "noise": CELLS.flip(1)},
    ),
}


def with_one(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Set an entry of a copy."""

    def change(array: torch.Tensor) -> torch.Tensor:
        changed = array * 1  # of True and False, numbers
        changed.view(-1)[:1] = value
        return changed

    return change


TYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
KINDS: dict[str, Callable[[torch.Tensor], Any]] = {
    "numpy": lambda array: array.numpy(),
    "list": lambda array: array.tolist(),
    "tuple": tuple,
    "none": lambda array: None,
    "sparse": lambda array: array.to_sparse(),
}
SHAPES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a side before": lambda array: array[None],
    "a side after": lambda array: array[..., None],
    "one": lambda array: array[0],
    "flat": lambda array: array.flatten(),
    "narrower": lambda array: array[:, ..., :-1] if array.dim() > 1 else array[None, :-1],
    "channels last": lambda array: array.movedim(1, -1),
}
LENGTHS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shorter": lambda array: array[:-1],
    "longer": lambda array: torch.cat([array, array[:1]]),
    "nothing": lambda array: array[:0],
    "one of many": lambda array: array[:1],
}
RANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "labels that start at 5": lambda array: array + 5,
    "negative": lambda array: array - 9,
    "nan": with_one(math.nan),
    "infinite": with_one(math.inf),
    "bytes in floating point": lambda array: (array * 255).round(),
    "percent": lambda array: array * 100,
    "one is wrong": with_one(77),
}


def breaks(case: Case, name: str) -> list[dict[str, Callable[[torch.Tensor], Any]]]:
    """The ways in which an array can be wrong; of images and maps, other values are other images, and not wrong."""
    cast = {to: lambda array, to=to: array.to(getattr(torch, to)) for to in TYPES}
    valued = name in ("y", "memory_y", "test_y", "theirs", "follows", "shortcut")
    ways = [] if name in case.own else [cast, SHAPES]
    return [*ways, *([] if name in case.free else [LENGTHS]), *([RANGES] if valued else []), KINDS]


def same(a: Any, b: Any) -> bool:
    """Whether two outcomes are equal to the last bit, whatever the precision that they are kept in."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and torch.equal(a.to(torch.complex128), b.to(torch.complex128))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


RIGHT = {name: case.outcome(**case.arrays) for name, case in CASES.items()}


@st.composite
def broken(draw):
    """A case, one of its arrays, and that array broken in one way or two."""
    name = draw(st.sampled_from(list(CASES)))
    case = CASES[name]
    array = draw(st.sampled_from(list(case.arrays)))
    ways, value = breaks(case, array), case.arrays[array]
    for place in sorted(draw(st.sets(st.integers(0, len(ways) - 1), min_size=1, max_size=2))):
        way = draw(st.sampled_from(list(ways[place].values())))
        try:
            with warnings.catch_warnings(action="ignore"):  # of what a cast loses
                value = way(value)
        except (IndexError, RuntimeError, TypeError):
            assume(False)  # it cannot be broken in this way
    return name, array, value


@settings(max_examples=300)
@given(broken())
def test_a_wrong_array_is_refused_or_gives_the_right_numbers(broken):
    name, array, value = broken
    if array in ("follows", "shortcut") and value is None:
        return  # they are optional
    try:
        outcome = CASES[name].outcome(**CASES[name].arrays | {array: value})
    except (BadBatch, BadRequest) as error:
        lines = str(error).splitlines()
    else:
        lines = [] if same(outcome, RIGHT[name]) else ["other", "numbers"]
    assert len(lines) <= 1


def test_a_column_of_0_and_1_is_no_list_of_rows():
    """What any CSV file gives; as indices it would count samples 0 and 1 over and over."""
    right = droptop.evaluate(BYTES, Samples(X, Y, FOLLOWS))
    for column in (FOLLOWS.long(), FOLLOWS.double(), FOLLOWS.to(torch.uint8)):
        assert droptop.evaluate(BYTES, Samples(X, Y, column)) == right
        assert Samples(X, Y, column).follows.dtype == torch.bool


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"y": Y == 0}, r"labels must be int64, not torch\.bool$"),
        ({"y": Y.int()}, r"labels must be int64, not torch\.int32: y\.long\(\) makes them so"),
        ({"y": Y[:, None]}, r"labels must be one per sample, of shape \(samples\), not \(12, 1\)"),
        ({"y": Y[1:]}, "there are 12 images and 11 labels"),
        ({"x": X.numpy()}, r"images must be a tensor, not ndarray: torch\.as_tensor makes one"),
        ({"x": X.int()}, r"images must be torch\.uint8 from 0 to 255 or floating point from 0 to 1, not torch\.int32"),
        ({"x": X[0]}, r"images must have shape \(batch, channels, height, width\), not \(3, 16, 16\)"),
        ({"x": with_one(math.nan)(UNIT)}, "images must be finite: these hold NaN or infinity"),
        ({"follows": Y}, r"follows must be True or False \(whether each .*\), and this torch\.int64 holds more than"),
        ({"follows": FOLLOWS[:5]}, r"follows must have shape \(12,\) \(whether each .*\), not \(5,\)"),
        ({"follows": FOLLOWS.numpy()}, "follows must be a tensor, not ndarray"),
        ({"shortcut": SHORTCUT[:, None]}, r"shortcut must have shape \(12, 16, 16\) .*, not \(12, 1, 16, 16\)"),
        ({"shortcut": SHORTCUT.byte() * 255}, "shortcut must be True or False .*: shortcut > 0 makes it so"),
        ({"shortcut": SHORTCUT[..., :8]}, r"shortcut must have shape \(12, 16, 16\) .*, not \(12, 16, 8\)"),
    ],
    ids=lambda value: str(value)[:30].split("tensor")[0],
)
def test_samples_that_do_not_fit_are_refused_in_a_line(columns, says):
    with pytest.raises(BadBatch, match=says) as caught:
        Samples(**{"x": X, "y": Y} | columns)
    assert "\n" not in str(caught.value)


def test_bytes_in_floating_point_are_refused():
    for call in (FLOATS.predict, lambda x: FLOATS.observe(x, Y), lambda x: droptop.evaluate(FLOATS, Samples(x, Y))):
        with pytest.raises(BadBatch, match=r"lie in 0 to 1, and these are whole numbers up to 2\d\d: divide them by"):
            call(X.float())
    assert FLOATS.predict(torch.ones(2, 3, 16, 16)).shape == (2, CLASSES)  # white


def test_a_source_that_mixes_up_its_rows_is_refused():
    class Wrong(Elsewhere):
        def __getitem__(self, rows):
            return self.wrong(rows)

    source = Wrong(Samples(X, Y))
    for wrong, says in (
        (lambda rows: (X[rows], Y[rows]), "gives droptop.Samples of the rows asked for, not tuple"),
        (lambda rows: source.samples[rows.repeat(2)], "was asked for 1 rows and gave 2"),
        (lambda rows: source.samples[rows + 1], "gives other labels with its rows than its y has for them"),
    ):
        source.wrong = wrong
        with pytest.raises(BadRequest, match=says):
            droptop.evaluate(BYTES, source)


@pytest.mark.parametrize("classes", [(True, False, True, False), (-1,), (0, 0), (4,), (0.0,), 2, "01"])
def test_classes_to_count_are_numbers_of_classes(classes):
    """Truths would be a mask, -1 the last class, and one class twice would count twice."""
    counted = droptop.evaluate(BYTES, Samples(X, Y))
    with pytest.raises(BadRequest, match="classes must be numbers from 0 to 3, each once, not"):
        droptop.accuracy(counted, classes)
    assert droptop.accuracy(counted, np.arange(4)) == droptop.accuracy(counted)


def test_a_task_may_be_a_tensor():
    learner = copy.deepcopy(BYTES)
    droptop.learn(learner, [(X, Y, torch.tensor(3)), (X, Y, torch.tensor([1, 2]))], {})
    assert learner.clock["task"] == 0  # two numbers are something else
    droptop.learn(learner, [(X, Y, torch.tensor(3))], {})
    assert learner.clock["task"] == 3


def test_a_spec_takes_lists_and_arrays():
    spec = Spec([3, 16, 16], ["a", "b", "c", "d"], mean=np.full(3, 0.5), std=torch.tensor([0.5, 0.25, 0.5]))
    assert spec == Spec((3, 16, 16), tuple("abcd"), mean=(0.5,) * 3, std=(0.5, 0.25, 0.5))
    for wrong in ({"shape": (3, 16.5, 16)}, {"classes": (0, 1)}, {"dtype": "uint8"}, {"mean": "grey"}):
        with pytest.raises(BadRequest, match="must be"):
            Spec(**{"shape": (3, 16, 16), "classes": tuple("ab")} | wrong)


def test_a_stream_refuses_images_that_do_not_fit_its_spec():
    config = StreamConfig(tasks=1, batch=4)
    for train, tests, says in (
        (Samples(UNIT, Y), {}, r"training images of mine: images must be torch\.uint8, not torch\.float32"),
        (Samples(X, Y), {"far": Samples(X[..., :8], Y)}, r"test set far of mine: images must have shape \(batch, 3,"),
        (Samples(X, Y), Samples(X, Y), "test sets come by name"),
        ((X, Y), {}, "training images of mine must be Samples of images and labels, not a tuple"),
    ):
        with pytest.raises(BadRequest, match=says):
            Stream("mine", SPEC, train, tests, config, seed=0)
