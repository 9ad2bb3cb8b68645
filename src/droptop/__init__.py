"""droptop: online continual learning that resists shortcut bias.

Names are fetched when they are first used: importing torch takes seconds, and `droptop --help` need not.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from droptop.api import compare, resume, run
    from droptop.attached import Attached, attach
    from droptop.config import configure
    from droptop.debias import DropTop, DropTopConfig, drop_mask, fuse
    from droptop.engine.build import make_learner, make_stream
    from droptop.engine.evaluate import evaluate
    from droptop.engine.export import export
    from droptop.engine.free import History, learn
    from droptop.engine.trained import load_learner
    from droptop.errors import BadBatch, BadCheckpoint, BadRequest, Diverged, DroptopError
    from droptop.learner import Learner, LearnerConfig
    from droptop.methods import METHODS
    from droptop.results.metrics import accuracy
    from droptop.streams import STREAMS, Batch, Samples, Source, Spec, Stream, StreamConfig
    from droptop.trackers import Tracker

__version__ = "0.1.0"

_HOMES = {  # names by the module that has them
    "api": ("compare", "resume", "run"),
    "attached": ("Attached", "attach"),
    "config": ("configure",),
    "debias": ("DropTop", "DropTopConfig", "drop_mask", "fuse"),
    "engine.build": ("make_learner", "make_stream"),
    "engine.evaluate": ("evaluate",),
    "engine.export": ("export",),
    "engine.free": ("History", "learn"),
    "engine.trained": ("load_learner",),
    "errors": ("BadBatch", "BadCheckpoint", "BadRequest", "Diverged", "DroptopError"),
    "learner": ("Learner", "LearnerConfig"),
    "methods": ("METHODS",),
    "results.metrics": ("accuracy",),
    "streams": ("STREAMS", "Batch", "Samples", "Source", "Spec", "Stream", "StreamConfig"),
    "trackers": ("Tracker",),
}
__all__ = [
    "METHODS",
    "STREAMS",
    "Attached",
    "BadBatch",
    "BadCheckpoint",
    "BadRequest",
    "Batch",
    "Diverged",
    "DropTop",
    "DropTopConfig",
    "DroptopError",
    "History",
    "Learner",
    "LearnerConfig",
    "Samples",
    "Source",
    "Spec",
    "Stream",
    "StreamConfig",
    "Tracker",
    "accuracy",
    "attach",
    "compare",
    "configure",
    "drop_mask",
    "evaluate",
    "export",
    "fuse",
    "learn",
    "load_learner",
    "make_learner",
    "make_stream",
    "resume",
    "run",
]


if not TYPE_CHECKING:  # which would otherwise take any name for one that is there

    def __getattr__(name):
        for home, names in _HOMES.items():
            if name in names:
                globals()[name] = value = getattr(import_module(f"droptop.{home}"), name)
                return value
        raise AttributeError(f"module 'droptop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
