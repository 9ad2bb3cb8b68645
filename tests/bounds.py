"""Bounds of settings, written by hand: numbers at the edge that are taken, and those just past it."""

import dataclasses
import math
import re
from collections.abc import Mapping
from types import NoneType
from typing import Any

import pytest

from droptop import BadRequest

INF, NAN, TINY = math.inf, math.nan, math.ulp(0.0)


def below(number: float) -> float:
    return math.nextafter(number, -INF)


def above(number: float) -> float:
    return math.nextafter(number, INF)


# What is taken, and what is not.
COUNT = ([1, 10**9], [0, -1])
ABOVE_0 = ([TINY, 1e300], [0.0, -1.0, INF, NAN])
FROM_0 = ([0.0, 1e300], [-TINY, INF, NAN])
SHARE = ([0.0, 1.0], [-TINY, above(1.0), NAN])
SHARE_BELOW_1 = ([0.0, below(1.0)], [-TINY, 1.0, NAN])
SHARE_ABOVE_0 = ([TINY, 1.0], [0.0, above(1.0), NAN])
PERCENT = ([0.0, 100.0], [-TINY, above(100.0), NAN])

Bounds = Mapping[str, tuple[list[Any], list[Any]]]


def hold(config_type: type[Any], bounds: Bounds, prefix: str = "") -> None:
    """Assert that these are the bounds of all numbers of a configuration, and that refusals name option and value."""
    numbers = {field.name for field in dataclasses.fields(config_type) if type(field.default) in (int, float, NoneType)}
    assert bounds.keys() == numbers
    for name, (taken, refused) in bounds.items():
        for value in taken:
            assert getattr(config_type(**{name: value}), name) == value
        for value in refused:
            option = prefix + name.replace("_", "-")
            with pytest.raises(BadRequest, match=rf"^--{re.escape(option)} takes .*, not {re.escape(str(value))}$"):
                config_type(**{name: value})
