"""Options by path: flattened, named by the end of a path, and set again with their types checked."""

from dataclasses import dataclass, field
from typing import Literal

import pytest

from droptop import BadRequest
from droptop.options import ending_in, flag_of, flatten, replaced


@dataclass(frozen=True)
class Inner:
    alpha: float = 0.9
    kind: Literal["a", "b"] = "a"
    probe: int | None = None


@dataclass(frozen=True)
class Outer:
    gamma: float = 5.0
    inner: Inner = field(default_factory=Inner)


@dataclass(frozen=True)
class General:
    seeds: int = 5
    name: str = "x"
    quick: bool = False


@dataclass(frozen=True)
class Whole:
    options: General = field(default_factory=General)
    droptop: Outer | None = field(default_factory=Outer)


PATHS = ("seeds", "name", "quick", "droptop.gamma", "droptop.inner.alpha", "droptop.inner.kind", "droptop.inner.probe")


def test_flatten_gives_every_option_by_its_path():
    assert tuple(flatten(Whole())) == PATHS
    assert flatten(Whole())["droptop.inner.alpha"] == 0.9


@pytest.mark.parametrize("name", ["alpha", "inner.alpha", "droptop.inner.alpha"])
def test_any_end_of_a_path_names_its_option(name):
    assert ending_in(name, PATHS) == ["droptop.inner.alpha"]


def test_names_end_at_a_dot_and_may_be_written_as_flags():
    assert ending_in("pha", PATHS) == []
    assert ending_in("memory-batch", ["learner.memory_batch", "learner.memory"]) == ["learner.memory_batch"]
    assert ending_in("width", ["net.width", "stream.width"]) == ["net.width", "stream.width"]  # which is ambiguous
    assert ending_in("share", ["learner.share", "colour.share"]) == ["learner.share"]  # whose flag is --share itself


def test_a_flag_leaves_the_section_out():
    assert [flag_of(path) for path in ("droptop.inner.kind", "learner.memory_batch", "first_seed")] == [
        "--inner.kind",
        "--memory-batch",
        "--first-seed",
    ]


def test_replaced_sets_several_options_at_once_and_leaves_the_old_one_alone():
    before = Whole()
    values = {"options.seeds": 2, "droptop.gamma": 7, "droptop.inner.alpha": 0.5, "droptop.inner.probe": 64}
    after = replaced(before, values)
    assert after == Whole(General(seeds=2), Outer(7, Inner(0.5, "a", 64)))
    assert before == Whole()
    assert replaced(after, {"droptop.inner.probe": None}).droptop.inner.probe is None


@pytest.mark.parametrize(
    ("path", "value", "takes"),
    [
        ("options.seeds", 2.5, "--seeds takes an integer, not 2.5"),
        ("options.seeds", True, "--seeds takes an integer, not True"),
        ("options.quick", 1, "--quick takes true or false, not 1"),
        ("options.name", 3, "--name takes a text, not 3"),
        ("droptop.gamma", "5", "--gamma takes a number, not '5'"),
        ("droptop.inner.kind", "c", "--kind takes one of a, b, not c"),
        ("droptop.inner.probe", "all", "--probe takes an integer, not 'all'"),
    ],
)
def test_values_of_another_type_are_refused_by_name(path, value, takes):
    with pytest.raises(BadRequest) as error:
        replaced(Whole(), {path: value})
    assert str(error.value) == takes
