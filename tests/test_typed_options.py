"""What editors and type checkers know of options is what the functions take."""

import importlib.util
import inspect
from pathlib import Path
from typing import get_args

import pytest

import droptop
from droptop import typed_options
from droptop.debias import MEMBERS
from droptop.methods import METHODS
from droptop.options import flatten
from droptop.runs.config import configure
from droptop.streams import STREAMS

SCRIPT = Path(__file__).parent.parent / "scripts" / "typed_options.py"


def annotations(function):
    """The names of the TypedDict that a function unpacks, those that it inherits among them."""
    (kind,) = get_args(inspect.signature(function).parameters["options"].annotation)
    return set(kind.__annotations__)


def names(config, *sections):
    return {path.rpartition(".")[2] for path in flatten(config) if path.partition(".")[0] in sections}


ARGUMENTS = {"data", "method", "debias", "model", "first", "last"}  # of their own, of the functions that run
EVERY = [configure(data=data) for data in STREAMS]
EVERY += [configure(method=method) for method in METHODS]
EVERY += [configure(debias=member) for member in MEMBERS] + [
    configure(f"{kind}:there") for kind in ("folder", "csv", "hf")
]
DEBIASERS = {name for config in EVERY for name in names(config, *MEMBERS)}


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (function, {path.rpartition(".")[2] for each in EVERY for path in flatten(each)} - ARGUMENTS)
        for function in (droptop.run, droptop.compare, droptop.configure)
    ]
    + [
        (droptop.make_stream, {name for each in EVERY for name in names(each, "stream")} | {"limit", "root"}),
        (
            droptop.make_learner,
            DEBIASERS
            | {name for each in EVERY for name in names(each, "net", "learner")}
            | {"device", "weights", "pretrained", "precision", "compile"},
        ),
        (droptop.attach, DEBIASERS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_option_is_known_and_no_other(function, known):
    assert annotations(function) == known


def test_the_module_is_what_the_script_writes():
    spec = importlib.util.spec_from_file_location("script", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert Path(typed_options.__file__).read_text() == script.module(), "make pages writes it anew"


def test_every_option_says_what_it_is():
    text = Path(typed_options.__file__).read_text()
    for name in typed_options.Options.__annotations__:
        following = text[text.index(f"\n    {name}: ") + 1 :].split("\n", 2)[1]
        assert following.startswith('    """'), name
