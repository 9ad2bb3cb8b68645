"""Debiasing: what keeps a learner from leaning on shortcuts. One short file per member of the family.

debiaser.py     the places in which a debiaser may act: images, first map, logits, loss; and a look before
family.py       several debiasers together
droptop.py      drop what the model attends to most; its parts:
    fusion.py       Eq. 4: attention from the first and the last map
    mask.py         Eq. 5-6: the mask that drops the cells of highest attention
    intensity.py    Eq. 7-8, Algorithm 2: how many cells, by class, adapted while training
mixstyle.py     mix the style of first maps
decouple.py     punish large logits
colour.py       jitter of colours
randconv.py     random filters
poe.py          leave to a weak net what it can tell
rsc.py          mute what the gradient points at
attach.py       members in any model and any training loop; attach_options.py, their options there

`MEMBERS` has them by name, `recipes.py` has names that stand for members with options; `members_of` reads both.
"""

from droptop.debias.colour import Colour
from droptop.debias.debiaser import Debiaser, View, name_of, of_rows
from droptop.debias.decouple import Decouple
from droptop.debias.droptop import DropTop, DropTopConfig, Trace, check_last_map
from droptop.debias.family import Chosen, Family
from droptop.debias.fusion import fuse, last_only
from droptop.debias.intensity import Intensity, IntensityConfig, group_losses, pooled_t
from droptop.debias.mask import apply_mask, cell_counts, drop_mask
from droptop.debias.mixstyle import MixStyle
from droptop.debias.poe import PoE
from droptop.debias.randconv import RandConv
from droptop.debias.rsc import RSC
from droptop.errors import BadRequest, meant, require
from droptop.options import NO_DEBIAS
from droptop.recipes import RECIPES, recipe_of
from droptop.system import user_files

MEMBERS: dict[str, type[Debiaser]] = {
    name_of(kind): kind for kind in (DropTop, MixStyle, Decouple, Colour, RandConv, RSC, PoE)
}
KNOWN = (*MEMBERS, *RECIPES)


def members_of(debias: str) -> dict[str, type[Debiaser]]:
    """Return the members, by name, of what `--debias` names; refuse what is unknown, and a member that comes twice."""
    members: dict[str, type[Debiaser]] = {}
    for kind in map(find, recipe_of(debias).members):
        name = name_of(kind)
        require(name not in members, "debias", f"{name} once", debias)
        members[name] = kind
    return members


def find(name: str) -> type[Debiaser]:
    """Return a debiaser by its name, or by the file that defines it; raise BadRequest if there is none."""
    if not user_files.is_file(name):
        known = f"none, {', '.join(KNOWN)}, a file such as my_debias.py, or several of these joined by +"
        require(name in MEMBERS, "debias", known, name + meant(name, KNOWN))
        return MEMBERS[name]
    kind = user_files.load(name, Debiaser, "debias")
    if name_of(kind) in (*KNOWN, NO_DEBIAS, "stream", "net", "learner", "options"):
        raise BadRequest(f"--debias {name}: a debiaser named {kind.__name__} is there already: rename the class")
    return kind


__all__ = [
    "KNOWN",
    "MEMBERS",
    "RSC",
    "Chosen",
    "Colour",
    "Debiaser",
    "Decouple",
    "DropTop",
    "DropTopConfig",
    "Family",
    "Intensity",
    "IntensityConfig",
    "MixStyle",
    "PoE",
    "RandConv",
    "Trace",
    "View",
    "apply_mask",
    "cell_counts",
    "check_last_map",
    "drop_mask",
    "find",
    "fuse",
    "group_losses",
    "last_only",
    "members_of",
    "name_of",
    "of_rows",
    "pooled_t",
]
