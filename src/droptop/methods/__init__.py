"""The table of methods: an entry here joins the command line and all contract tests. Users' methods come as files."""

from droptop.errors import meant, require
from droptop.learner import Learner
from droptop.methods.aser import ASER
from droptop.methods.derpp import DERpp
from droptop.methods.dualprompt import DualPrompt
from droptop.methods.er import ER
from droptop.methods.er_ace import ERACE
from droptop.methods.finetune import Finetune, Joint
from droptop.methods.gss import GSS
from droptop.methods.l2p import L2P
from droptop.methods.mir import MIR
from droptop.methods.mkd import MKD
from droptop.methods.ncm import NCM
from droptop.methods.pcr import PCR
from droptop.methods.ranpac import RanPAC
from droptop.methods.scr import SCR
from droptop.methods.slda import SLDA
from droptop.system import user_files

# The paper's seven, then those that tables in this field usually show, those on frozen features last.
METHODS: dict[str, type[Learner]] = {
    "er": ER,
    "derpp": DERpp,
    "mir": MIR,
    "gss": GSS,
    "aser": ASER,
    "l2p": L2P,
    "dualprompt": DualPrompt,
    "er-ace": ERACE,
    "finetune": Finetune,
    "joint": Joint,
    "scr": SCR,
    "pcr": PCR,
    "mkd": MKD,
    "ncm": NCM,
    "slda": SLDA,
    "ranpac": RanPAC,
}


def find(name: str, option: str = "method") -> type[Learner]:
    """Return a method by its name, or by the file that defines it; raise BadRequest if there is none."""
    if user_files.is_file(name):
        return user_files.load(name, Learner, option)
    require(
        name in METHODS,
        option,
        f"one of {', '.join(METHODS)}, or a file such as my_method.py",
        name + meant(name, METHODS),
    )
    return METHODS[name]


__all__ = [
    "ASER",
    "ER",
    "ERACE",
    "GSS",
    "L2P",
    "METHODS",
    "MIR",
    "MKD",
    "NCM",
    "PCR",
    "SCR",
    "SLDA",
    "DERpp",
    "DualPrompt",
    "Finetune",
    "Joint",
    "RanPAC",
    "find",
]
