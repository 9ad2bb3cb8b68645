"""Groups of samples: what else is known of each, such as its background, by which accuracy is counted separately."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from droptop import array_checks
from droptop.errors import BadBatch

ONE = "group"  # the name of a column that was given none
LIKE = "an integer or a text per sample"


@dataclass(frozen=True)
class Groups:
    """Say which group each sample is in.

    Args:
        names: The names of the groups.
        codes: N: the position of each sample's group in `names`, int64.

    Raises:
        BadBatch: Names are none or repeated, or codes are of another type or shape, or no positions in them.
    """

    names: tuple[str, ...]
    codes: Tensor

    def __post_init__(self) -> None:
        names = () if isinstance(self.names, str) else tuple(self.names)
        if not names or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
            raise BadBatch(f"groups take one name or more, each another, not {self.names!r}")
        object.__setattr__(self, "names", names)
        array_checks.check_codes(self.codes, len(names))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Tensor) -> "Groups":
        """Return the groups of these rows, under the same names."""
        return self.at(self.codes[rows])

    def at(self, codes: Tensor) -> "Groups":
        """Return groups of these names with other codes, which are not checked again."""
        groups = object.__new__(Groups)
        vars(groups).update(names=self.names, codes=codes)
        return groups


def groups_by_column(given: Any, count: int, device: torch.device) -> dict[str, Groups]:
    """Return groups by column, from those of one column or of several by name, for `count` samples.

    A column is `Groups`, or a list or array of integers or texts; groups are then sorted. Raise BadBatch for others.
    """
    columns = given if isinstance(given, Mapping) else {} if given is None else {ONE: given}
    made = {}
    for name, column in columns.items():
        if not isinstance(name, str) or not name.strip() or "=" in name:
            raise BadBatch(f"columns of groups have names without =, not {name!r}")
        groups = column if isinstance(column, Groups) else coded(name, column, device)
        if len(groups) != count:
            raise BadBatch(f"groups take one per sample: there are {count} samples, and {name} has {len(groups)}")
        made[name] = groups
    return made


def coded(name: str, values: Any, device: torch.device) -> Groups:
    """Return the groups that a list or array names, one per sample."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(listed, list | tuple):
        raise BadBatch(f"groups are {LIKE}; {name} is a {type(values).__name__}")
    if not listed:
        raise BadBatch(f"groups are {LIKE}; {name} is empty")
    other = [value for value in listed if not isinstance(value, str | int)]
    if other or len({isinstance(value, str) for value in listed}) > 1:
        raise BadBatch(f"groups are {LIKE}; {name} holds {repr(other[0]) if other else 'both'}")
    if "" in listed:
        raise BadBatch(f"groups have names; {name} has an empty one for sample {listed.index('')}")
    different = sorted(set(listed))
    place = {value: code for code, value in enumerate(different)}
    return Groups(tuple(map(str, different)), torch.tensor([place[value] for value in listed], device=device))
