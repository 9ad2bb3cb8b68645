"""droptop: online continual learning that resists shortcut bias."""

from droptop.api import compare, resume, run
from droptop.attach import Attached, attach
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

__all__ = [
    "METHODS", "STREAMS", "Attached", "BadBatch", "BadCheckpoint", "BadRequest", "Batch", "Diverged", "DropTop",
    "DropTopConfig", "DroptopError", "History", "Learner", "LearnerConfig", "Samples", "Source", "Spec", "Stream",
    "StreamConfig", "Tracker", "accuracy", "attach", "compare", "configure", "drop_mask", "evaluate", "export", "fuse",
    "learn", "load_learner",
    "make_learner", "make_stream", "resume", "run",
]
