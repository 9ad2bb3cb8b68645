"""What a result is compared with: the result of the same seed that differs in one thing alone.

Plain    the same without debiasing, which is what `results` shows unless told otherwise
Named    the same with other values of some options, as `--against` says: method=er, lr=0.1, droptop
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from droptop.errors import BadRequest, meant
from droptop.options import NO_DEBIAS, WITHOUT_EFFECT, ending_in, named_values
from droptop.recipes import recipe_of
from droptop.system.short_names import short_name

Value = dict[str, Any]  # one figure of a cell, with the cell's options
NO_OPTIONS = ("run", "arm", "value", *WITHOUT_EFFECT)  # what results are never told apart by
MEASURED = ("seed", "test", "figure")
WORDS = ("arm", "debias", "method")  # options whose values need no name before them
MOST_NAMED = 8  # values in a refusal


class Reference(Protocol):
    """Know what results are compared with."""

    name: str
    also: set[str]  # options in which it differs besides, which no one asked for

    def beside(self, value: Value) -> float | None:
        """Return the number that a result is compared with; None where there is none, or for the reference itself."""


def sort_key(value: Any) -> tuple[int, float, str]:
    """Return what sorts values in a table: None and "none" first, then numbers by size, then words."""
    if value in (None, "none"):
        return (0, 0.0, "")
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


class Plain:
    """Find the plain twin of a debiased cell: the one that differs from it in debiasing alone.

    Options that a recipe sets, such as the averaged weights of `robust`, are part of the debiasing. Where several plain
    cells differ in these, the twin is the one with the least of them: the cheapest.
    """

    name = NO_DEBIAS

    def __init__(self, values: Sequence[Value]) -> None:
        self.also: set[str] = set()
        self.plain = sorted(
            (value for value in values if value.get("debias") == NO_DEBIAS),
            key=lambda value: sorted((path, sort_key(content)) for path, content in value.items()),
            reverse=True,  # so that the least comes last, and stays
        )
        self.by_key: dict[tuple[str, ...], dict[Any, Value]] = {}  # by the names that are left out of the key

    def beside(self, value: Value) -> float | None:
        """Return the number of the plain twin of a debiased cell."""
        twin = self.twin(value)
        return None if twin is None else twin["value"]

    def twin(self, value: Value) -> Value | None:
        """Return the plain cell of a debiased one; None where there is none, or for a cell that is plain."""
        if value.get("debias") == NO_DEBIAS:
            return None
        recipe = recipe_of(str(value.get("debias")))
        names = (*recipe.options, *recipe.factors)
        if names not in self.by_key:
            self.by_key[names] = {key_of(plain, names): plain for plain in self.plain}
        return self.by_key[names].get(key_of(value, names))


def key_of(value: Value, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what a cell shares with its twins: all options but those of debiasers and those of some names."""
    ignored = ("debias", "run", "value", *WITHOUT_EFFECT, *(path for name in names for path in ending_in(name, value)))
    return tuple(
        sorted(
            (path, str(content))
            for path, content in value.items()
            if path not in ignored and ("." not in path or path.partition(".")[0] in ("stream", "net", "learner"))
        )
    )


class Named:
    """Find the cells that have given values of some options and are otherwise as another cell is.

    Only options that both have are compared: those of a method or debiaser of its own are part of it. So are options
    that a recipe sets where debiasing is compared, and, where methods are, what a method has only one value of on a
    stream: its own learning rate (`also` names those that differ). An arm of a comparison is what it is: seed, test set
    and figure decide. Of several cells the mean counts, as in the table.
    """

    def __init__(self, values: Sequence[Value], chosen: dict[str, Any], name: str) -> None:
        self.name, self.chosen = name, chosen
        self.also: set[str] = set()  # options that differ between methods, each of which has one value
        self.varied = varied_within(values, chosen) if "method" in chosen else None
        self.kinds: dict[frozenset[str], list[Value]] = {}  # cells with these values, by the options they have
        for value in values:
            if self.has(value) and value["value"] is not None:
                self.kinds.setdefault(frozenset(value), []).append(value)
        self.paths: dict[Any, tuple[str, ...]] = {}
        self.by_key: dict[Any, dict[Any, list[float]]] = {}

    def has(self, value: Value) -> bool:
        """Return whether a cell is one of those that others are compared with."""
        return all(value.get(path) == content for path, content in self.chosen.items())

    def beside(self, value: Value) -> float | None:
        """Return the mean of the cells that a cell is compared with."""
        if self.has(value):
            return None
        found: list[float] = []
        alike = (frozenset(value), value.get("debias"), group_of(value, self.chosen))
        for kind, members in self.kinds.items():
            if (kind, alike) not in self.paths:
                self.paths[kind, alike] = self.compared(value, kind)
            paths = self.paths[kind, alike]
            if (kind, paths) not in self.by_key:
                index = self.by_key[kind, paths] = {}
                for member in members:
                    index.setdefault(content_of(member, paths), []).append(member["value"])
            found += self.by_key[kind, paths].get(content_of(value, paths), [])
        return float(np.mean(found)) if found else None

    def compared(self, value: Value, kind: frozenset[str]) -> tuple[str, ...]:
        """Return the options in which a cell must equal those of a kind."""
        if "arm" in self.chosen:
            return MEASURED
        both, ignored = kind & value.keys(), {*NO_OPTIONS, *self.chosen}
        if "debias" in self.chosen:
            for recipe in (recipe_of(str(debias)) for debias in (value.get("debias"), self.chosen["debias"])):
                ignored |= {path for name in (*recipe.options, *recipe.factors) for path in ending_in(name, value)}
        own = {path for path in both if self.varied is not None and not of_every_cell(path)}
        if self.varied is not None:
            for each in (value, value | self.chosen):
                own -= self.varied.get(group_of(each, self.chosen), set())
            twin = next((member for member in self.kinds[kind] if member.get("data") == value.get("data")), value)
            self.also |= {path.rpartition(".")[2] for path in own - ignored if twin[path] != value[path]}
        return tuple(
            path
            for path in sorted(kind | value.keys())
            if path not in ignored | own and (of_every_cell(path) or path in both)
        )


def of_every_cell(path: str) -> bool:
    """Return whether an option belongs to no method or debiaser, so that a cell without it has it at None."""
    return "." not in path or path.startswith("stream.")


def content_of(value: Value, paths: Iterable[str]) -> tuple[str, ...]:
    """Return a cell's values of some options, as text."""
    return tuple(str(value.get(path)) for path in paths)


def group_of(value: Value, paths: Iterable[str]) -> tuple[Any, ...]:
    """Return the stream of a cell and its values of some options."""
    return (value.get("data"), *(value.get(path) for path in sorted(paths)))


def varied_within(values: Sequence[Value], paths: Iterable[str]) -> dict[tuple[Any, ...], set[str]]:
    """Return which options have several values among cells of one stream that are alike in the options of `paths`."""
    seen: dict[tuple[Any, ...], dict[str, set[str]]] = {}
    for value in {value["run"]: value for value in values}.values():
        of_group = seen.setdefault(group_of(value, paths), {})
        for path, content in value.items():
            of_group.setdefault(path, set()).add(str(content))
    return {
        group: {path for path, contents in of_group.items() if len(contents) > 1} for group, of_group in seen.items()
    }


# -- From words -------------------------------------------------------------------------------------------------------


def option(name: str, known: Iterable[str], flag: str = "by") -> str:
    """Return the path of the option that `name` is an end of; refuse a name of none or of several."""
    known = list(known)
    paths = ending_in(name, known)
    if len(paths) != 1:
        hint = meant(name, [path.rpartition(".")[2] for path in known])
        raise BadRequest(
            f"--{flag} takes options of the study's runs, such as data, debias, lr or seed, not {name}{hint}"
        )
    return paths[0]


def options_of(values: Sequence[Value]) -> set[str]:
    """Return the paths of all options that tell cells apart, with the seed."""
    known = {path for value in {value["run"]: value for value in values}.values() for path in value}
    return known - {"run", "test", "figure", "value", *WITHOUT_EFFECT}


def reference_of(values: Sequence[Value], against: str | None) -> Reference:
    """Return what results are compared with, by what `--against` says; by default the same without debiasing.

    Of a comparison's results, which have an arm each, it is by default the first arm.
    """
    if against is None:
        arms = list(dict.fromkeys(value["arm"] for value in values if "arm" in value))
        return Named(values, {"arm": arms[0]}, arms[0]) if arms else Plain(values)
    known, chosen = options_of(values), dict[str, Any]()
    for name, text in named_values(against):
        path, content = content_named(values, text) if name == "" else (option(name, known, "against"), None)
        chosen[path] = value_named(values, path, text) if content is None else content
    plain = chosen == {"debias": NO_DEBIAS} and not any("arm" in value for value in values)
    return Plain(values) if plain else Named(values, chosen, against)


def content_named(values: Sequence[Value], text: str) -> tuple[str, Any]:
    """Return the option and the value that a word stands for: an arm, a debiasing or a method of these results."""
    known: dict[str, tuple[str, Any]] = {}
    for path in reversed(WORDS):
        for content in {value[path] for value in values if path in value}:
            known |= {content: (path, content), short_name(content): (path, content)}
    if text not in known:
        names = ", ".join(dict.fromkeys(short_name(name) for name in sorted(known)))
        raise BadRequest(f"--against takes {names} or OPTION=VALUE, not {text}{meant(text, known)}")
    return known[text]


def value_named(values: Sequence[Value], path: str, text: str) -> Any:
    """Return the value of an option that a text stands for; refuse one that no result has."""
    known = sorted({value[path] for value in values if path in value}, key=sort_key)
    for content in known:
        if text in (str(content), str(content).lower(), short_name(str(content))) or same_number(text, content):
            return content
    shown = ", ".join(short_name(str(content)) for content in known[:MOST_NAMED])
    raise BadRequest(
        f"--against takes {path.rpartition('.')[2]} of {shown}{', ...' if len(known) > MOST_NAMED else ''} in these "
        f"results, not {text}"
    )


def same_number(text: str, content: Any) -> bool:
    """Return whether a text is a number that equals a value."""
    try:
        return isinstance(content, int | float) and not isinstance(content, bool) and float(text) == content
    except ValueError:
        return False
