"""What `--debias` names stand for, besides single debiasers: members together, and options that go with them.

droptop+mixstyle     members, in the order in which they act
robust+droptop       a recipe and a member
"""

from typing import Any, NamedTuple


class Recipe(NamedTuple):
    """Hold what a name stands for: members, and options that hold until the user sets others."""

    members: tuple[str, ...]
    options: dict[str, Any]


RECIPES = {
    # DropTop as the paper has it, also where ours differs (`Learner.paper`), and the paper's ablations.
    "droptop-paper": Recipe(("droptop",), {}),
    "no-fusion": Recipe(("droptop",), {"attention": "last"}),
    "fixed": Recipe(("droptop",), {"drop": "top"}),
    "random": Recipe(("droptop",), {"drop": "random"}),
    # Averaged weights predict; nothing else changes.
    "average": Recipe((), {"average": True}),
}


def preset_options(debias: str) -> dict[str, Any]:
    """Return the options that the recipes in a name set, such as `robust` in `robust+droptop`."""
    options: dict[str, Any] = {}
    for part in debias.split("+"):
        if part in RECIPES:
            options |= RECIPES[part].options
    return options
