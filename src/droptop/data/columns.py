"""Find the columns of a table of images: which has the images, which the labels, and which rows are for testing.

Columns and splits are found by their usual names, in any case, unless they are named.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from droptop.errors import BadRequest, meant
from droptop.escapes import visible

PATHS = ("path", "file", "filename", "file_name", "file_path", "filepath", "image", "image_path", "img_path", "img")
LABELS = ("label", "class", "target", "y", "labels", "category", "species")
SPLITS = ("split", "partition", "set")
GROUPS = ("group", "place", "background", "environment")
CROSS = "*"  # between columns whose groups are taken together
TRAINING = ("train", "training")
TESTING = ("test", "testing")
VALIDATION = ("val", "valid", "validation", "dev", "eval")
NUMBERED = {"0": "train", "1": "val", "2": "test"}  # as in the tables of WILDS and CelebA
FURTHER = ("test-", "test_")  # what the names of further test sets begin with
WAYS = {"image": "--image-column", "label": "--label-column", "split": "--split-column"}


class Columns(NamedTuple):
    """Say which columns and splits to take; None for those with the usual names."""

    image: str | None = None
    label: str | None = None
    split: str | None = None
    train: str | None = None  # the split to train on
    tests: str | None = None  # the splits to test on, separated by commas
    folder: str | None = None  # what paths are relative to, where it is not the table's own folder
    revision: str | None = None  # of a repository of the hub
    groups: str | None = None  # columns of groups, separated by commas


class Splits(NamedTuple):
    """Say which splits are trained and tested on, by the names that they have in the data."""

    train: str
    tests: dict[str, str]  # by the names of the test sets; none where a part of the training images is held out


def column(part: str, named: str | None, usual: Sequence[str], there: Iterable[str], place: str) -> str | None:
    """Return the column of a part: the one that is named, else the first of the usual names that is there, or None.

    Refuse a name that is not there; `place` is what has the columns.
    """
    names = list(there)
    if named is not None:
        if named not in names:
            raise BadRequest(
                f"{WAYS[part]} takes a column of {place}: {', '.join(names)}; not {named}{meant(named, names)}"
            )
        return named
    found = {name.lower(): name for name in reversed(names)}
    return next((found[name] for name in usual if name in found), None)


def needed(part: str, named: str | None, usual: Sequence[str], there: Iterable[str], place: str) -> str:
    """Return the column of a part; refuse data without one."""
    names = list(there)
    found = column(part, named, usual, names, place)
    if found is None:
        raise BadRequest(
            f"{place} has no column of {part}s by a usual name, such as {usual[0]}; it has {', '.join(names)}: "
            f"name one with {WAYS[part]}"
        )
    return found


def group_columns(named: str | None, there: Iterable[str], taken: Iterable[str | None], place: str) -> list[str]:
    """Return the columns of groups: those that are named, else those with usual names; none that is taken already.

    A name such as `label*place` takes the groups of two columns together, of which one may be taken.
    """
    free = [name for name in there if name not in list(taken) and "=" not in name]
    if named is None:
        return [name for name in free if name.lower() in GROUPS]
    wanted, known = [name.strip() for name in named.split(",")], list(there)
    for name in wanted:
        parts = name.split(CROSS)
        fits = name in free or (len(parts) > 1 and all(part in known and "=" not in part for part in parts))
        if not fits or wanted.count(name) > 1:
            raise BadRequest(
                f"--group-columns takes other columns of {place}, each once: {', '.join(free) or 'there is none'}; "
                f"not {name or 'an empty name'}{meant(name, free)}"
            )
    return wanted


def crossed(name: str, cells: Callable[[str], Sequence[str]]) -> list[str]:
    """Return the groups by a column of groups, or by several taken together; empty where one of these is."""
    parts = [cells(part) for part in name.split(CROSS)]
    return [" ".join(names) if all(names) else "" for names in zip(*parts)]


def splits_of(names: Sequence[str], train: str | None, tests: str | None, place: str) -> Splits:
    """Return which splits to train and test on; refuse splits that are not there, and those with nothing to train on.

    Unless they are named, `train` is trained on, and `test` is tested on, or `val` where there is no `test`; splits
    `test-NAME` are further test sets. A note says which splits are left out.
    """
    known = {usual_name(name, names): name for name in reversed(names)}
    training = named_split("--train-split", train, names, place) if train is not None else pick(known, TRAINING)
    if training is None:
        raise BadRequest(f"{place} has no split train but {', '.join(names)}: name one with --train-split")
    if tests is not None:
        wanted = [named_split("--test-splits", name.strip(), names, place) for name in tests.split(",")]
        if len({training, *wanted}) <= len(wanted):
            raise BadRequest(f"--test-splits takes splits other than {training}, each once, not {tests}")
        return Splits(training, {name: name for name in wanted})
    first = pick(known, TESTING) or pick(known, VALIDATION)
    further = {
        name[len(FURTHER[0]) :]: name
        for name in names
        if name.lower().startswith(FURTHER) and len(name) > len(FURTHER[0]) and name != training
    }
    found = ({} if first is None else {"test": first}) | further
    if unused := [name for name in names if name not in (training, *found.values())]:
        named = f"split{'s' if len(unused) > 1 else ''} {', '.join(unused)}"
        warnings.warn(visible(f"{place}: {named} left out; --test-splits names those to test on"), stacklevel=2)
    return Splits(training, found)


def usual_name(name: str, names: Sequence[str]) -> str:
    """Return a split's name in lower case; train, val or test for 0, 1 and 2 where all splits are such numbers."""
    return NUMBERED[name] if set(names) <= NUMBERED.keys() else name.lower()


def pick(known: dict[str, str], usual: Sequence[str]) -> str | None:
    """Return the first split that has one of the usual names, or None."""
    return next((known[name] for name in usual if name in known), None)


def named_split(option: str, name: str, names: Sequence[str], place: str) -> str:
    """Return the name of a split; refuse one that is not there."""
    if name not in names:
        raise BadRequest(
            f"{option} takes a split of {place}: {', '.join(names)}; not {name or 'an empty name'}{meant(name, names)}"
        )
    return name


def classes_of(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the classes among labels, each once: by number where all are numbers, else as text."""
    names = set(labels)
    try:
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(names))
