"""What each part of DropTop is worth: Table 3, its twin for unbiased sets (6), and other designs (5)."""

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
DESIGN_NAMES = dict(zip(DESIGNS, ("soft", "common", "droptop")))


Sets = tuple[tuple[str, str], ...]


def ablation(
    title: str,
    sets: Sets,
    paper_sets: Sets,
    table: Mapping[str, tuple[float, ...]],
    means: tuple[float, ...],
    degraded: tuple[float, ...],
) -> Comparison:
    """Quoted figures stand in the order of the variants, and are means over `paper_sets`."""
    places = {variant: place for place, variant in enumerate(PARTS)}
    figures = {**table, EVERY: means}
    # The paper has "Degrad." as a negative number, of the methods' mean alone.
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


def cells(comparison: Comparison) -> Callable[[Scope], list[Grid]]:
    return lambda scope: [{"data": scope.data, "method": scope.methods} | cell for cell in comparison.variants.values()]


def shown(comparison: Comparison) -> Callable[[CellResults], list[Output]]:
    return lambda results: [comparison.table(results)]


def designs(results: CellResults) -> list[Output]:
    """On the biased sets, as in the paper, and on the unbiased ones of streams that have some."""
    have = tuple(data for data in results.scope.data if any(name == STANDS_FOR.get(data, data) for name, _ in UNBIASED))
    of_these = CellResults(results.recipe, replace(results.scope, data=have), results.out)
    return [DESIGN.table(results), *([DESIGN_UNBIASED.table(of_these)] if have else [])]


RECIPES = (
    Recipe(
        "ablation",
        "Table 3",
        "no fusion, random and fixed dropping against DropTop, biased sets",
        shown(ON_BIASED),
        cells(ON_BIASED),
        methods=REPLAY,
        data=("split-cifar100", "split-cifar10", "split-imagenet9"),
        takes="30 min on an H200 for CIFAR (estimate)",
    ),
    Recipe(
        "ablation-unbiased",
        "Table 6",
        "no fusion, random and fixed dropping against DropTop, unbiased sets",
        shown(ON_UNBIASED),
        cells(ON_UNBIASED),
        methods=REPLAY,
        data=("split-imagenet9",),
        takes="nothing in a folder in which ablation ran on ImageNet-9: the same cells",
    ),
    Recipe(
        "design",
        "Table 5",
        "a soft mask and one intensity for all classes against DropTop, ER",
        designs,
        cells(DESIGN),
        quick=DECIDES,
        takes="2 min on an H200 (estimate)",
    ),
)
