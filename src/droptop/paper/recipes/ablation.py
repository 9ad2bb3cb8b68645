"""Tables 3, 6 and 5: what each part of DropTop is worth on biased and on unbiased sets, and other designs of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults
from droptop.paper.claims import BIASED, STANDS_FOR, UNBIASED
from droptop.paper.recipe import DECIDES, CellOptions, Grid, Recipe, Scope
from droptop.paper.recipes.main_tables import REPLAY
from droptop.paper.tables import Mean, Output
from droptop.paper.variants import EVERY, WHOLE, Comparison

PARTS: dict[str, CellOptions] = {
    "No MF": {"debias": "no-fusion"},
    "Rand Drop": {"debias": "random"},
    "Fixed Drop": {"debias": "fixed"},
    WHOLE: {"debias": "droptop"},
}
DESIGNS: dict[str, CellOptions] = {
    "Soft Drop Mask": {"debias": "droptop", "mask": "soft"},
    "Common Drop Intensity": {"debias": "droptop", "per": "common"},
    WHOLE: {"debias": "droptop"},
}
DESIGN_NAMES = dict(zip(DESIGNS, ("soft", "common", "droptop")))  # in `quoted`

Sets = tuple[tuple[str, str], ...]


def ablation(
    title: str,
    sets: Sets,
    paper_sets: Sets,
    table: Mapping[str, tuple[float, ...]],
    means: tuple[float, ...],
    degraded: tuple[float, ...],
) -> Comparison:
    """Return the comparison of PARTS; quoted figures are in their order, and are means over `paper_sets`."""
    places = {variant: place for place, variant in enumerate(PARTS)}
    figures = {**table, EVERY: means}
    # The paper gives "Degrad." as a negative number, and for the mean over methods alone.
    worse = {(EVERY, variant): -degraded[place] for variant, place in places.items() if variant != WHOLE}
    return Comparison(
        title,
        PARTS,
        sets,
        ("A_avg",),
        lambda method, variant, figure: Mean(figures[method][places[variant]]),
        lambda method, variant, figure: worse.get((method, variant)),
        "variant",
        paper_sets,
        REPLAY,
    )


ON_BIASED = ablation(
    "DropTop and variants of it, A_avg over the biased test sets",
    BIASED,
    quoted.BIASED,
    quoted.ABLATION,
    quoted.ABLATION_MEAN,
    quoted.ABLATION_DEGRADED,
)
ON_UNBIASED = ablation(
    "DropTop and variants of it, A_avg over the unbiased test sets",
    UNBIASED,
    quoted.UNBIASED,
    quoted.ABLATION_UNBIASED,
    quoted.ABLATION_UNBIASED_MEAN,
    quoted.ABLATION_UNBIASED_DEGRADED,
)
DESIGN = Comparison(
    "DropTop and other designs of it",
    DESIGNS,
    BIASED,
    ("A_avg", "F_last"),
    lambda method, variant, figure: quoted.DESIGN[DESIGN_NAMES[variant]][figure],
    lambda method, variant, figure: quoted.DEGRADED[DESIGN_NAMES[variant]][figure],
    "droptop",
    (quoted.CIFAR_10,),
    ("er",),
)
DESIGN_UNBIASED = replace(
    DESIGN, title="DropTop and other designs of it, where shortcuts cannot be trusted", sets=UNBIASED, suffix="unbiased"
)


def study_of(comparison: Comparison) -> Callable[[Scope], list[Grid]]:
    """Return the `study` of a recipe that shows this comparison."""
    return lambda scope: [{"data": scope.data, "method": scope.methods} | cell for cell in comparison.variants.values()]


def show_table(comparison: Comparison) -> Callable[[CellResults], list[Output]]:
    """Return the `show` of a recipe that is the table of this comparison."""
    return lambda results: [comparison.table(results)]


def show_designs(results: CellResults) -> list[Output]:
    """Return the table on biased sets, as in the paper, and one on the unbiased sets of streams that have some."""
    streams = {name for name, _ in UNBIASED}
    data = tuple(name for name in results.scope.data if STANDS_FOR.get(name, name) in streams)
    unbiased = CellResults(results.recipe, replace(results.scope, data=data), results.out)
    return [DESIGN.table(results), *([DESIGN_UNBIASED.table(unbiased)] if data else [])]


RECIPES = (
    Recipe(
        "ablation",
        "Table 3",
        "no fusion, random and fixed dropping against DropTop, biased sets",
        show_table(ON_BIASED),
        study_of(ON_BIASED),
        methods=REPLAY,
        data=("split-cifar100", "split-cifar10", "split-imagenet9"),
        takes="30 min on an H200 for CIFAR (estimate)",
    ),
    Recipe(
        "ablation-unbiased",
        "Table 6",
        "no fusion, random and fixed dropping against DropTop, unbiased sets",
        show_table(ON_UNBIASED),
        study_of(ON_UNBIASED),
        methods=REPLAY,
        data=("split-imagenet9",),
        takes="nothing in a folder in which ablation ran on ImageNet-9: the same cells",
    ),
    Recipe(
        "design",
        "Table 5",
        "a soft mask and one intensity for all classes against DropTop, ER",
        show_designs,
        study_of(DESIGN),
        quick=DECIDES,
        takes="2 min on an H200 (estimate)",
    ),
)
