"""What `--debias` names stand for, besides single debiasers: members together, and options that go with them.

droptop+mixstyle     members, in the order in which they act
robust+droptop       a recipe and a member
"""

from typing import Any, NamedTuple

from droptop.options import NO_DEBIAS

ROBUST = ("colour", "mixstyle", "decouple"), {"average": True, "colour.share": 0.5}


class Recipe(NamedTuple):
    """Hold what a name stands for: members, and options that hold until the user sets others."""

    members: tuple[str, ...]
    options: dict[str, Any]
    factors: dict[str, int] = {}  # options that are so many times what they would be without the recipe


RECIPES = {
    # DropTop as the paper has it, also where ours differs (`Learner.paper`), and the paper's ablations.
    "droptop-paper": Recipe(("droptop",), {}),
    "no-fusion": Recipe(("droptop",), {"attention": "last"}),
    "fixed": Recipe(("droptop",), {"drop": "top"}),
    "random": Recipe(("droptop",), {"drop": "random"}),
    # Averaged weights predict; nothing else changes.
    "average": Recipe((), {"average": True}),
    # What to take where nothing is known of the cue: docs/evidence/robust.md says how it was chosen.
    "robust-light": Recipe(*ROBUST),
    "robust": Recipe(*ROBUST, {"iterations": 2}),
    # Against a mark that a colour tells: every hue is turned at random and half of the images lose theirs.
    "colour-blind": Recipe(
        ROBUST[0], {"average": True, "colour.share": 1.0, "colour.hue": 0.5, "colour.gray": 0.5}, {"iterations": 2}
    ),
}


def recipe_of(debias: str) -> Recipe:
    """Return what a name stands for, such as `robust+droptop`, as one recipe."""
    recipes = [RECIPES.get(part, Recipe((part,), {})) for part in debias.split("+") if part != NO_DEBIAS]
    options: dict[str, Any] = {}
    factors: dict[str, int] = {}
    for recipe in recipes:
        options |= recipe.options
        factors |= recipe.factors
    return Recipe(tuple(member for recipe in recipes for member in recipe.members), options, factors)
