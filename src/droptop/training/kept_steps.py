"""Steps that take one seed after another: what was captured for the first one serves the next one of the same kind.

A learner is tensors, and so are the batches of a block: a graph that was captured once computes whatever is filled into
them. So the steps of one learner are kept, captured or not, with their CUDA stream. The learner of the next seed is
built as ever, or restored from a checkpoint, and its state is copied into the tensors that the graphs hold. What is
not tensors (options, shapes, the code that runs) is part of the graphs: a run of another kind gets steps of its own.
"""

import math
import sys

from droptop.learner import Learner
from droptop.options import flatten
from droptop.runs.config import Config
from droptop.runs.manifest import deciding
from droptop.streams import Stream
from droptop.training.graphs import GraphedSteps, cuda_stream
from droptop.training.stepping import Steps
from droptop.types import Position

OF_STREAM = {"data", "limit", "eval_every"}  # options that decide which batches come, and what is asked between them
GPU_BLOCK = 60  # steps queued on a GPU before their results are read; on a CPU nothing is queued
BLOCK_BYTES = 2**25  # that the batches of a block take on a GPU, at most, unless a single one is larger


def steps_key(config: Config) -> str | None:
    """Return what steps depend on besides tensors: two runs with one key can share them.

    That is every option that decides what a run finds, but for those of which the stream is made. None where a file or
    an object of the user's own is part of it: nobody knows what it keeps besides tensors.
    """
    if config.options.user_files().keys() - {"data"}:
        return None
    of_stream = {path for path in flatten(config) if path.startswith("stream.")} - {"stream.batch"} | OF_STREAM
    parts = {path: value for path, value in deciding(flatten(config)).items() if path not in of_stream}
    return sys.intern(repr(sorted(parts.items())))  # compared with those of thousands of other runs


class KeptSteps:
    """Hold the steps that were made for a seed, for the seeds after it."""

    def __init__(self, device: str) -> None:
        self.stream_context = cuda_stream(device)
        self.key: str | None = None
        self.steps: Steps | None = None

    def take(self, config: Config, learner: Learner, stream: Stream, start: Position, eagerly: bool = False) -> Steps:
        """Return the steps of a learner from a position in its stream: those that are here where they fit, or new ones.

        On a GPU new ones are CUDA graphs, unless the options or `eagerly` say otherwise. Raise Uncapturable where a
        capture is impossible; the learner must not be used any more then.
        """
        key, steps = steps_key(config), self.steps
        if steps is not None and key is not None and key == self.key and steps.fits(learner, stream):
            steps.refill(learner, stream, start)
            return steps
        self.key, self.steps = key, None  # gives its memory back before the new steps take theirs
        del steps
        if learner.device.type != "cuda":
            self.steps = Steps(learner, stream, start, 1)
        else:
            make = GraphedSteps if config.options.graphs and not eagerly else Steps
            self.steps = make(learner, stream, start, block_of(stream))
        return self.steps


def block_of(stream: Stream) -> int:
    """Return how many steps are queued on a GPU before their results are read: fewer where images are large."""
    image = math.prod(stream.spec.shape) * stream.spec.dtype.itemsize
    return max(1, min(GPU_BLOCK, BLOCK_BYTES // (image * stream.config.batch)))
