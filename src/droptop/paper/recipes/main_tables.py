"""Table 1, Table 2 and that of appendix F (Table 8): every method with and without DropTop.

The unbiased test sets (OnlyFG, Stylized) are the paper's "unbiased setup": tested "after being trained on Split
ImageNet-9". So they are test sets of that stream and cost no run of their own.
"""

from collections.abc import Callable

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults
from droptop.paper.claims import BIASED, UNBIASED, claims_table
from droptop.paper.recipe import Grid, Recipe, Scope
from droptop.paper.tables import Output

REPLAY = ("er", "derpp", "mir", "gss", "aser")
PROMPTS = ("l2p", "dualprompt")


def both_arms(scope: Scope) -> list[Grid]:
    """Return the study of every method with and without DropTop."""
    return [{"data": scope.data, "method": scope.methods, "debias": ["none", "droptop"]}]


def show_claims(
    title: str, sets: tuple[tuple[str, str], ...], figures: tuple[str, ...] = ("A_avg", "F_last")
) -> Callable[[CellResults], list[Output]]:
    """Return the `show` of a recipe that is one table of claims."""
    return lambda results: [claims_table(results, title, sets, figures)]


RECIPES = (
    Recipe(
        "table1",
        "Table 1",
        "five replay methods with and without DropTop, on biased and unbiased test sets",
        show_claims("Average accuracy and forgetting of replay methods", (*BIASED, *UNBIASED)),
        both_arms,
        methods=REPLAY,
        data=("split-cifar100", "split-cifar10", "split-imagenet9"),
        takes="15 min on an H200 for CIFAR (estimate)",
    ),
    Recipe(
        "table2",
        "Table 2",
        "prompt learners on a pretrained ViT with and without DropTop, ImageNet-9",
        show_claims("Prompt learners on ImageNet-9", (quoted.IMAGENET_9, *quoted.UNBIASED)),
        both_arms,
        methods=PROMPTS,
        data=("split-imagenet9",),
        takes="3 min on an H200 for Tiny-ImageNet-9 and a ViT-tiny/8 (estimate)",
    ),
    Recipe(
        "table-f",
        "Table 8",
        "prompt learners on a pretrained ViT with and without DropTop, CIFAR",
        show_claims("Prompt learners on CIFAR", (quoted.CIFAR_100, quoted.CIFAR_10), ("A_last", "A_avg", "F_last")),
        both_arms,
        methods=PROMPTS,
        data=("split-cifar100", "split-cifar10"),
        quick_data=("fashion",),
        takes="4 min on an H200 for CIFAR-10 and a ViT-tiny/8 (estimate)",
    ),
)
