"""The paper, runnable: a recipe for every table and figure (`droptop paper list`).

recipe.py    what a recipe is: the cells it needs, and what it shows of them
results.py     what those cells measured
outputs.py  tables and figures; write.py makes files of them
verdict.py   reproduced, partly, not reproduced: one rule for all
quoted.py    what the paper says
cook.py      runs what is missing and shows what is there
recipes/     a file each, or for those that have much in common one
"""

from importlib import import_module

from droptop.errors import BadRequest, meant
from droptop.paper.recipe import Recipe

# In recipes/, in the order of `droptop paper list`; each has RECIPES.
MODULES = (
    "tables",
    "ablation",
    "validity",
    "sensitivity",
    "readings",
    "colours",
    "impact",
    "overhead",
    "attention",
    "features",
)


def every_recipe() -> dict[str, Recipe]:
    """Every recipe by name."""
    modules = [import_module(f"droptop.paper.recipes.{name}") for name in MODULES]
    return {recipe.name: recipe for module in modules for recipe in module.RECIPES}


def find(name: str) -> Recipe:
    known = every_recipe()
    if name not in known:
        raise BadRequest(f"there is no recipe {name}; there are {', '.join(known)}{meant(name, known)}")
    return known[name]
