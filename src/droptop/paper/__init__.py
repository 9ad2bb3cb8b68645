"""The paper's tables and figures, each one a recipe that can be run (`droptop paper list`).

How a recipe flows, from its name to files:

    recipe.py       Recipe: what to run (`study`), measure and show; Scope: the methods, streams and seeds of a call
    runner.py       a Call (recipe, options, OUT) becomes a study of grids, of which the missing cells are run
    call_log.py     OUT/paper.json: the options of each call, and when and where its cells ran
    cell_results.py CellResults: what each finished cell measured, by its options
    measurements.py what a recipe measures itself, beside its cells: times, features
    tables.py       Table and Figure: what `show` makes of the results
    write.py        the tables and figures as Markdown, CSV, LaTeX, PNG and PDF

`claims.py` and `variants.py` are the two kinds of table that most recipes show, `quoted.py` has the paper's numbers,
`verdict.py` the one rule for "reproduced". recipes/ holds the recipes, and beside them what only one of them uses.
"""

from importlib import import_module

from droptop.errors import BadRequest, meant
from droptop.paper.recipe import Recipe

# Modules of recipes/ in the order of `droptop paper list`; each has RECIPES.
MODULES = (
    "main_tables",
    "ablation",
    "validity",
    "sensitivity",
    "readings",
    "colours",
    "impact",
    "overhead",
    "maps",
    "histogram",
    "features",
)


def every_recipe() -> dict[str, Recipe]:
    """Return every recipe by name."""
    modules = [import_module(f"droptop.paper.recipes.{name}") for name in MODULES]
    return {recipe.name: recipe for module in modules for recipe in module.RECIPES}


def find(name: str) -> Recipe:
    """Return the recipe of this name, or raise BadRequest with the names that there are."""
    known = every_recipe()
    if name not in known:
        raise BadRequest(f"there is no recipe {name}; there are {', '.join(known)}{meant(name, known)}")
    return known[name]
