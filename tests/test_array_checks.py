"""Every array that a user can hand over: one that does not fit is refused in a line, or gives what the right one gives.

Never other numbers. `CASES` has every public constructor and function that takes arrays, with arrays that fit and what
comes of them; hypothesis breaks one of the arrays in one way or two.
"""

import copy
import math
from collections.abc import Callable
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


def of_samples(**columns):
    """What is counted on samples, and what of them reaches a batch of a stream and the report of dropped cells."""
    samples = Samples(**columns)
    learner = FLOATS if samples.x.is_floating_point() else BYTES
    stream = Stream("toy", learner.spec, samples, {"test": samples}, StreamConfig(tasks=1, batch=6), seed=0)
    batches = [(batch.x, batch.y, 0 if batch.shortcut is None else batch.shortcut.float().mean()) for batch in stream]
    return droptop.evaluate(learner, samples), len(samples), batches


def of_a_source(x, y, rows):
    """The same, where the images come from somewhere else, which may mix them up."""
    source = Elsewhere(Samples(x, rows))
    source.y = y
    return droptop.evaluate(BYTES, source)


def of_a_batch(learner, x, y):
    learner = copy.deepcopy(learner)
    return learner.observe(x, y), learner.state_dict()


def of_batches(x, y, test_x, test_y):
    history = droptop.learn(copy.deepcopy(BYTES), [(x, y)], {"test": Samples(test_x, test_y)})
    return history.samples, history.accuracy("test")


def of_rows(rows):
    samples = Samples(X, Y, FOLLOWS, SHORTCUT)[rows]
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
    own: tuple[str, ...] = ()  # those whose shape and type a user's own model decides


CELLS = torch.randperm(2 * 16, generator=torch.Generator().manual_seed(0)).view(2, 4, 4).float() / 32
UNIT = (X // 64).float() / 4  # exact in every floating point type
CASES = {
    "samples": Case(of_samples, {"x": X, "y": Y, "follows": FOLLOWS, "shortcut": SHORTCUT}),
    "float samples": Case(of_samples, {"x": UNIT, "y": Y}),
    "source": Case(of_a_source, {"x": X, "y": Y, "rows": Y}),
    "rows": Case(of_rows, {"rows": FOLLOWS}),
    "observe": Case(lambda x, y: of_a_batch(BYTES, x, y), {"x": X, "y": Y}),
    "observe floats": Case(lambda x, y: of_a_batch(FLOATS, x, y), {"x": UNIT, "y": Y}),
    "predict": Case(BYTES.predict, {"x": X}, ("x",)),
    "predict floats": Case(FLOATS.predict, {"x": UNIT}, ("x",)),
    "learn": Case(of_batches, {"x": X, "y": Y, "test_x": X, "test_y": Y}),
    "layer": Case(of_a_layer, {"x": UNIT, "y": Y, "memory": UNIT, "memory_y": Y}, own=("x", "memory")),
    "penalty": Case(
        of_a_penalty, {"loss": torch.tensor(2.5), "logits": torch.arange(48.0).view(12, 4) / 64, "y": Y}, ("loss",)
    ),
    "fuse": Case(lambda first, last: droptop.fuse(first, last).float(), {"first": UNIT, "last": UNIT[:, :, ::4, ::4]}),
    "drop_mask": Case(
        lambda **parts: droptop.drop_mask(*parts.values()).float(),
        {
            "attention": CELLS,
            "top": torch.tensor([3, 2]),
            "total": torch.tensor([5, 8]),
            "noise": CELLS.flip(1),
        },
    ),
}


def with_one(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Set an entry of a copy."""

    def change(array: torch.Tensor) -> torch.Tensor:
        changed = array.clone()
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
    "narrower": lambda array: array[..., :-1],
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
    "yes": with_one(2),
}


def breaks(case: Case, name: str) -> dict[str, Callable[[torch.Tensor], Any]]:
    """The ways in which an array can be wrong; of images and maps, other values are other images, and not wrong."""
    cast = {to: lambda array, to=to: array.to(getattr(torch, to)) for to in TYPES}
    valued = name in ("y", "memory_y", "test_y", "rows", "follows", "shortcut", "top", "total")
    return {
        **KINDS,
        **({} if name in case.own else cast | SHAPES),
        **({} if name in case.free else LENGTHS),
        **(RANGES if valued else {}),
    }


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
    ways = breaks(case, array)
    value = case.arrays[array]
    for way in draw(st.lists(st.sampled_from(list(ways)), min_size=1, max_size=2)):
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            try:
                value = ways[way](value)
            except (IndexError, RuntimeError, TypeError):
                assume(False)  # it cannot be broken in this way
    return name, array, value


@settings(max_examples=250)
@given(broken())
def test_a_wrong_array_is_refused_or_gives_the_right_numbers(broken):
    name, array, value = broken
    if array in ("follows", "shortcut") and value is None:
        return  # they are optional
    try:
        outcome = CASES[name].outcome(**CASES[name].arrays | {array: value})
    except (BadBatch, BadRequest) as error:
        assert "\n" not in str(error)
    else:
        assert same(outcome, RIGHT[name])
