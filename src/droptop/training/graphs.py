"""The same steps as CUDA graphs: captured once, replayed over a stream that lives on the device.

On a GPU a step of an online learner is some hundreds of kernels of a few microseconds: launched one by one from Python
they take ten times as long as they compute. A replay launches all of them at once, and finds its batch by itself, by a
cursor on the device. The learner does not know: what is captured is its own `step` and `probe`. Its generators are
registered with the graphs, so that a replay draws what an eager step would have drawn.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.streams import Stream
from droptop.training.evaluation import chunk
from droptop.training.stepping import Steps
from droptop.types import Batch, Position, Samples

WARM_UP = 3  # steps before a capture, in which libraries choose their algorithms and allocate what they keep


class Uncapturable(Exception):
    """Why a learner has to run eagerly. The one that was tried is spoiled."""


def cuda_stream(device: str) -> AbstractContextManager[object]:
    """A CUDA stream to queue a learner's kernels on; graphs cannot be captured on the default one."""
    return torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else nullcontext()


class GraphedSteps(Steps):
    """Replays; only a batch that is not full, as the last one of a task may be, runs eagerly."""

    def __init__(self, learner: Learner, stream: Stream, start: Position, block: int) -> None:
        super().__init__(learner, stream, start, block)
        size = stream.config.batch
        full = [rows[: len(rows) // size * size].view(-1, size) for rows in stream.order]
        self.first = [sum(map(len, full[:task])) for task in range(len(full))]  # schedule row a task starts at
        self.full = [len(rows) for rows in full]
        if sum(self.full) == 0:
            raise Uncapturable("no batch is full")
        device = learner.device
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.ahead = 0  # where the cursor will be once everything queued is done
        self.here = isinstance(stream.train, Samples)  # the images are on the device
        if self.here:
            self.schedule = torch.cat(full)
        else:
            blank = torch.zeros(size, *stream.spec.shape, dtype=stream.spec.dtype, device=device)
            self.incoming = Batch(blank, torch.zeros(size, dtype=torch.int64, device=device), 0, None)
        self.pool = torch.cuda.graph_pool_handle()  # none of the graphs runs beside another: they share their memory
        self.use_own_kernels(True)
        kept = {name: value.clone() for name, value in learner.state_dict().items()}
        try:
            self.step_graph = self.capture(self.captured_step, self.rewind)
            adapts = learner.debias is not None and learner.debias.adapts
            self.probe_graph = self.capture(super().probe, self.rewind) if adapts else None
            self.predict_graph = self.captured_prediction()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise Uncapturable(str(error).splitlines()[0]) from error
        torch.cuda.empty_cache()  # what libraries took while they were choosing their algorithms
        learner.load_state_dict(kept)
        learner.finite.fill_(True)
        self.rewind()

    def rewind(self) -> None:
        self.log.next.zero_()
        self.cursor.zero_()

    def captured_step(self) -> None:
        if self.here:
            rows = self.schedule.index_select(0, self.cursor)[0]
            samples = self.stream.train[rows]
            self.learn(Batch(samples.x, self.stream.labels[rows], 0, samples.shortcut))
            self.cursor += 1
        else:
            self.learn(self.incoming)

    def capture(self, body: Callable[[], None], first: Callable[[], None] = lambda: None) -> torch.cuda.CUDAGraph:
        """The body as a graph, after it ran a few times on the stream that it will be captured on, and something first
        every time."""
        stream, random = torch.cuda.current_stream(), self.learner.random
        before = {purpose: generator.get_state() for purpose, generator in random.items()}
        for _ in range(WARM_UP):
            first()
            body()
        stream.synchronize()
        first()
        graph = torch.cuda.CUDAGraph()
        for purpose, generator in random.items():
            if not torch.equal(before[purpose], generator.get_state()):  # a registered one costs two kernels a replay
                graph.register_generator_state(generator)
        # Not `with torch.cuda.graph(...)`, which waits for all that other seeds have queued before it begins.
        graph.capture_begin(self.pool, capture_error_mode="thread_local")
        try:
            body()
            graph.capture_end()
        except BaseException:
            with suppress(RuntimeError):  # there is nothing to end, and that is not the error to report
                graph.capture_end()
            default = torch.cuda.default_generators[stream.device_index]
            default.graphsafe_set_state(default.clone_state())  # else it takes itself to be captured for ever
            raise
        return graph

    def step(self, position: Position) -> None:
        if position.batch >= self.full[position.task]:
            self.learn(self.to_device(self.stream.batch(position) if self.here else next(self.batches)))
            return
        if self.here:
            row = self.first[position.task] + position.batch
            if row != self.ahead:
                self.cursor.fill_(row)
            self.ahead = row + 1
        else:
            batch = self.to_device(next(self.batches))
            self.incoming.x.copy_(batch.x)
            self.incoming.y.copy_(batch.y)
        self.step_graph.replay()

    def probe(self) -> None:
        assert self.probe_graph is not None
        self.probe_graph.replay()

    def predict(self, x: Tensor) -> Tensor:
        if self.predict_graph is None:
            return super().predict(x)
        self.asked.copy_(x)
        self.predict_graph.replay()
        return self.answered.clone()

    def captured_prediction(self) -> torch.cuda.CUDAGraph | None:
        """A pass of an evaluation; None where there is none, or passes help each other and are not all of one size."""
        learner = self.learner
        if not self.stream.tests or not learner.independent:
            return None
        size, device = chunk(learner), learner.device
        self.asked = torch.zeros(size, *learner.spec.shape, dtype=learner.spec.dtype, device=device)
        self.answered = torch.zeros(size, dtype=torch.int64, device=device)

        def body() -> None:
            self.answered.copy_(super(GraphedSteps, self).predict(self.asked))

        return self.capture(body)
