"""droptop: online continual learning that resists shortcut bias.

Names are imported when they are first used: importing torch takes seconds, which `droptop --help` does not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from droptop.api import compare, resume, run
    from droptop.api_tuning import tune
    from droptop.debias import Debiaser, DropTop, DropTopConfig, drop_mask, fuse
    from droptop.debias.attach import Attached, attach
    from droptop.errors import BadBatch, BadCheckpoint, BadRequest, Diverged, DroptopError
    from droptop.groups import Groups
    from droptop.learner import Learner, LearnerConfig
    from droptop.methods import METHODS
    from droptop.results.metrics import accuracy
    from droptop.results.paired import paired
    from droptop.runs.build import make_learner, make_stream
    from droptop.runs.config import configure
    from droptop.runs.export import export
    from droptop.runs.loading import load_learner
    from droptop.streams import STREAMS, Stream, StreamConfig
    from droptop.streams.from_dataset import stream_from
    from droptop.streams.painted import paint_batches
    from droptop.trackers import Tracker
    from droptop.training.evaluation import evaluate
    from droptop.training.task_free import History, learn
    from droptop.types import Batch, Samples, Source, Spec

__version__ = "0.2.0"

_HOMES = {  # the names that each module has
    "api": ("compare", "resume", "run"),
    "api_tuning": ("tune",),
    "debias": ("Debiaser", "DropTop", "DropTopConfig", "drop_mask", "fuse"),
    "debias.attach": ("Attached", "attach"),
    "errors": ("BadBatch", "BadCheckpoint", "BadRequest", "Diverged", "DroptopError"),
    "groups": ("Groups",),
    "learner": ("Learner", "LearnerConfig"),
    "methods": ("METHODS",),
    "results.metrics": ("accuracy",),
    "results.paired": ("paired",),
    "runs.build": ("make_learner", "make_stream"),
    "runs.config": ("configure",),
    "runs.export": ("export",),
    "runs.loading": ("load_learner",),
    "streams": ("STREAMS", "Stream", "StreamConfig"),
    "streams.from_dataset": ("stream_from",),
    "streams.painted": ("paint_batches",),
    "trackers": ("Tracker",),
    "training.evaluation": ("evaluate",),
    "training.task_free": ("History", "learn"),
    "types": ("Batch", "Samples", "Source", "Spec"),
}
__all__ = [
    "METHODS",
    "STREAMS",
    "Attached",
    "BadBatch",
    "BadCheckpoint",
    "BadRequest",
    "Batch",
    "Debiaser",
    "Diverged",
    "DropTop",
    "DropTopConfig",
    "DroptopError",
    "Groups",
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
    "paint_batches",
    "paired",
    "resume",
    "run",
    "stream_from",
    "tune",
]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` would accept any name

    def __getattr__(name):
        """Import a public name when it is first used."""
        for home, names in _HOMES.items():
            if name in names:
                globals()[name] = value = getattr(import_module(f"droptop.{home}"), name)
                return value
        raise AttributeError(f"module 'droptop' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return sorted([*__all__, "__version__"])
