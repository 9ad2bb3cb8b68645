"""What may vary while options are tuned: a range or a list of values per option.

    lr=log:0.003:0.3        any number between, by its logarithm
    gamma=lin:1:10          any number between
    memory_batch=int:16:64  whole numbers
    momentum=0,0.9          these values

`Space` maps options, by path, to what they may be.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from droptop.errors import BadRequest, require
from droptop.options import ending_in, flag_of, flatten, name_of
from droptop.runs.config import Config, override, resolve
from droptop.sweeps.tuning.tune_json import text_of

Kind = Literal["log", "lin", "int"]
KINDS: tuple[Kind, ...] = ("log", "lin", "int")
TAKES = "NAME=log:LOW:HIGH, NAME=lin:LOW:HIGH, NAME=int:LOW:HIGH or NAME=VALUE,VALUE"
WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}
TUNED = ("net", "learner")  # sections with options that may be tuned, besides those of debiasers
# Of every method, tuned where nobody says what is to be: learning rates lie around the usual one.
AROUND = 10.0
FURTHER: dict[str, dict[str, str]] = {"momentum": {"momentum": "0.0,0.9"}, "adam": {"beta_1": "0.0,0.9"}}


@dataclass(frozen=True)
class Range:
    """Hold the numbers between two, both of them included."""

    kind: Kind
    low: float
    high: float
    whole: bool = False  # of a logarithmic range: whole numbers alone

    @property
    def edges(self) -> tuple[Any, ...]:
        """Return the values to try whether an option takes them."""
        return (self.low, self.high)

    def __contains__(self, value: object) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high  # type: ignore[operator]

    def __str__(self) -> str:
        return f"{self.kind}:{self.low:g}:{self.high:g}"


@dataclass(frozen=True)
class Choice:
    """Hold the values of a list."""

    values: tuple[Any, ...]

    @property
    def edges(self) -> tuple[Any, ...]:
        """Return the values to try whether an option takes them."""
        return self.values

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return ",".join(text_of(value) for value in self.values)


Over = Mapping[str, str | Sequence[Any]]  # a range such as log:0.003:0.3 or a list of values, by option
Space = dict[str, Range | Choice]  # by the option's path


def read_space(said: Mapping[str, str], arms: Iterable[Config]) -> Space:
    """Return the space that texts by option stand for; refuse what is not the same space for all arms.

    Raise BadRequest for an option that an arm does not have, or that is no part of net, learner or debiasing, for a
    range that is empty, and for a value that the option itself refuses.
    """
    space, several = Space(), list(arms)
    for name, text in said.items():
        paths = {resolve(name, arm, "--over: ") for arm in several}
        if len(paths) > 1:
            raise BadRequest(f"--over {name} stands for {' and '.join(sorted(paths))} in different arms")
        (path,) = paths
        check_tunable(path, several[0])
        require(path not in space, "over", "every option once", name)
        space[path] = read_values(name, text, flatten(several[0])[path])
    if not space:
        raise BadRequest(f"--over takes {TAKES}: there is nothing to tune")
    return {path: accepted(path, values, several) for path, values in space.items()}


def said_of(texts: Iterable[str]) -> dict[str, str]:
    """Return what `--over` says by option, of texts such as lr=log:0.01:0.1; refuse what has no option or no value."""
    said: dict[str, str] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        require(bool(name and equals and values), "over", TAKES, text or "nothing")
        require(name not in said, "over", "every option once", name)
        said[name] = values
    return said


def said_in_python(over: Over | None) -> dict[str, str]:
    """Return what may vary, as `--over` says it."""
    return {
        name: values if isinstance(values, str) else ",".join(map(text_of, values))
        for name, values in (over or {}).items()
    }


def check_tunable(path: str, config: Config) -> None:
    """Refuse an option that is not the learner's: what is learned, on which machine, how often."""
    head, dot, _ = path.partition(".")
    tunable = bool(dot) and (head in TUNED or hasattr(config.members, head)) and path != "learner.preset"
    if not tunable:
        raise BadRequest(f"--over takes options of net, learner and debiasing, not {flag_of(path).removeprefix('--')}")


def read_values(name: str, text: str, usual: Any) -> Range | Choice:
    """Return the values that a text stands for; of an option whose usual value is whole, ranges are whole too."""
    kind, colon, rest = text.partition(":")
    if colon and kind in KINDS:
        return read_range(name, kind, rest, isinstance(usual, int) and not isinstance(usual, bool))
    words = [word.strip() for word in text.split(",")]
    values = [value_of(word, usual) for word in words]
    fine = len(values) > 1 and all(words) and len({text_of(value) for value in values}) == len(values)
    require(
        fine,
        "over",
        f"two values of {name} or more, each once, or a range such as log:0.01:1, lin:1:10 or int:16:64",
        text,
    )
    return Choice(tuple(values))


def read_range(name: str, kind: str, rest: str, whole: bool) -> Range:
    """Return the range that a text such as 0.003:0.3 stands for; refuse an empty one."""
    about = f"{name}={kind}:LOW:HIGH, two numbers of which the second is larger"
    try:
        low, high = (float(number) for number in rest.split(":"))
    except ValueError:
        raise BadRequest(f"--over takes {about}, not {name}={kind}:{rest}") from None
    fine = math.isfinite(low) and math.isfinite(high) and low < high
    require(fine, "over", about, f"{name}={kind}:{rest}")
    require(kind != "log" or low > 0, "over", f"{name}=log:LOW:HIGH from above 0", f"{name}={kind}:{rest}")
    if whole or kind == "int":
        integers = low.is_integer() and high.is_integer()
        require(integers, "over", f"whole numbers for {name}", f"{name}={kind}:{rest}")
        return Range("log" if kind == "log" else "int", int(low), int(high), True)
    return Range("log" if kind == "log" else "lin", low, high)


def value_of(word: str, usual: Any) -> Any:
    """Return the value that a word of a list stands for, of the kind that the option's usual value is."""
    if isinstance(usual, str):
        return word
    if word.lower() in WORDS:
        return WORDS[word.lower()]
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        return float(number) if isinstance(usual, float) else number
    return word


def accepted(path: str, values: Range | Choice, arms: Sequence[Config]) -> Range | Choice:
    """Return values that every arm's own check takes at their edges; raise its refusal where one does not."""
    for arm in arms:
        for value in values.edges:
            try:
                override(arm, {path: value})
            except BadRequest as error:
                raise BadRequest(f"--over {name_of(path)}={values}: {error}") from None
    return values


def usual_space(arms: Sequence[Config]) -> dict[str, str]:
    """Return the space that is searched where nobody says which, as texts: the same for all arms.

    The learning rate from a tenth of the usual one to ten times it (of several arms, around the smallest and the
    largest), and momentum, or for Adam its beta_1.
    """
    usual = [flatten(arm)["learner.lr"] for arm in arms]
    said = {"lr": f"log:{min(usual) / AROUND:g}:{max(usual) * AROUND:g}"}
    adam = [bool(ending_in("beta_1", flatten(arm))) for arm in arms]
    if all(adam):
        return said | FURTHER["adam"]
    return said if any(adam) else said | FURTHER["momentum"]


def settings_of(space: Space, config: Config) -> dict[str, Any] | None:
    """Return a configuration's own values of the options in a space; None where one lies outside of it."""
    values = flatten(config)
    return {path: values[path] for path in space} if all(values[path] in space[path] for path in space) else None


def number_of_settings(space: Space) -> int | None:
    """Return how many settings a space has; None where it has ranges of numbers that are not whole."""
    count = 1
    for values in space.values():
        if isinstance(values, Range):
            if not values.whole:
                return None
            count *= int(values.high) - int(values.low) + 1
        else:
            count *= len(values.values)
    return count
