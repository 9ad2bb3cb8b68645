"""Methods by name; a new one joins the command line and every contract by its entry here."""

from droptop.learner import Learner
from droptop.methods.er import ER

METHODS: dict[str, type[Learner]] = {"er": ER}

__all__ = ["ER", "METHODS"]
