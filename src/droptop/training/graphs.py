"""A learner's steps as CUDA graphs: captured once, then replayed over a stream that lives on the device.

On a GPU a step of an online learner is some hundreds of kernels of a few microseconds each: launched one by one from
Python they take ten times as long as they compute. A replay launches all of them at once, and finds its batch by a
cursor on the device. The learner does not know of it: its own `step` and `probe` are captured. Its generators are
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
from droptop.types import Batch, Position, in_memory

WARM_UP = 3  # steps before a capture, in which libraries choose their algorithms and allocate their workspaces


class Uncapturable(Exception):
    """Say why a learner has to run eagerly. The learner whose capture failed must not be used any more."""


def cuda_stream(device: str) -> AbstractContextManager[object]:
    """Return a context in which kernels go to a new CUDA stream; graphs cannot be captured on the default one."""
    return torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else nullcontext()


class GraphedSteps(Steps):
    """Run a learner's steps by replaying graphs; only a ragged batch, as a task may end with, runs eagerly."""

    def __init__(self, learner: Learner, stream: Stream, start: Position, block: int) -> None:
        super().__init__(learner, stream, start, block)
        size = stream.config.batch
        full = [rows[: len(rows) // size * size].view(-1, size) for rows in stream.order]
        self.task_rows = [sum(map(len, full[:task])) for task in range(len(full))]  # row of the schedule per task
        self.full_batches = [len(rows) for rows in full]
        if sum(self.full_batches) == 0:
            raise Uncapturable("no batch is full")
        device = learner.device
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.next_row = 0  # where the cursor will be once everything queued is done
        self.images_on_device = in_memory(stream.train)
        if self.images_on_device:
            self.schedule = torch.cat(full)
        else:
            blank = torch.zeros(size, *stream.spec.shape, dtype=stream.spec.dtype, device=device)
            self.incoming = Batch(blank, torch.zeros(size, dtype=torch.int64, device=device), 0, None)
        self.pool = torch.cuda.graph_pool_handle()  # the graphs never run at the same time, so they share their memory
        self.use_own_kernels(True)
        state = {name: value.clone() for name, value in learner.state_dict().items()}
        try:
            self.step_graph = self.capture(self.captured_step, self.rewind)
            self.probe_graph = self.capture(super().probe, self.rewind) if learner.debias.adapts else None
            self.predict_graph = self.capture_prediction()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise Uncapturable(str(error).splitlines()[0]) from error
        torch.cuda.empty_cache()  # memory that libraries took while they were choosing their algorithms
        learner.load_state_dict(state)
        learner.finite.fill_(True)
        self.rewind()

    def rewind(self) -> None:
        """Set the log and the cursor back to their beginnings."""
        self.log.next.zero_()
        self.cursor.zero_()

    def captured_step(self) -> None:
        """Learn the batch at the cursor, or the one that was copied in; this is what the graph of a step captures."""
        if self.images_on_device:
            rows = self.schedule.index_select(0, self.cursor)[0]
            samples = self.stream.train[rows]
            self.learn(Batch(samples.x, self.stream.labels[rows], 0, samples.shortcut))
            self.cursor += 1
        else:
            self.learn(self.incoming)

    def capture(self, body: Callable[[], None], prepare: Callable[[], None] = lambda: None) -> torch.cuda.CUDAGraph:
        """Return a graph of `body`, after a few runs on the same CUDA stream; call `prepare` before each."""
        stream, random = torch.cuda.current_stream(), self.learner.random
        before = {purpose: generator.get_state() for purpose, generator in random.items()}
        for _ in range(WARM_UP):
            prepare()
            body()
        stream.synchronize()
        prepare()
        graph = torch.cuda.CUDAGraph()
        for purpose, generator in random.items():
            if not torch.equal(before[purpose], generator.get_state()):  # a registered one costs two kernels per replay
                graph.register_generator_state(generator)
        # Not `with torch.cuda.graph(...)`, which first waits for everything that other seeds have queued.
        graph.capture_begin(self.pool, capture_error_mode="thread_local")
        try:
            body()
            graph.capture_end()
        except BaseException:
            with suppress(RuntimeError):  # there is nothing to end, and that is not the error to report
                graph.capture_end()
            default = torch.cuda.default_generators[stream.device_index]
            default.graphsafe_set_state(default.clone_state())  # otherwise it stays in its capturing state
            raise
        return graph

    def step(self, position: Position) -> None:
        """Queue the step of the batch at a position; set the cursor only where it is not there already."""
        if position.batch >= self.full_batches[position.task]:
            self.learn(self.to_device(self.stream.batch(position) if self.images_on_device else next(self.batches)))
            return
        if self.images_on_device:
            row = self.task_rows[position.task] + position.batch
            if row != self.next_row:
                self.cursor.fill_(row)
            self.next_row = row + 1
        else:
            batch = self.to_device(next(self.batches))
            self.incoming.x.copy_(batch.x)
            self.incoming.y.copy_(batch.y)
        self.step_graph.replay()

    def probe(self) -> None:
        """Queue the probe."""
        assert self.probe_graph is not None
        self.probe_graph.replay()

    def predict(self, x: Tensor) -> Tensor:
        """Return the class that each image is taken for; `x` is as large as a pass of an evaluation."""
        if self.predict_graph is None:
            return super().predict(x)
        self.learner.settle()
        self.predict_input.copy_(x)
        self.predict_graph.replay()
        return self.predict_output.clone()

    def capture_prediction(self) -> torch.cuda.CUDAGraph | None:
        """Return the graph of an evaluation's pass; None without test sets or if predictions depend on the batch."""
        learner = self.learner
        if not self.stream.tests or not learner.independent:
            return None
        size, device = chunk(learner), learner.device
        self.predict_input = torch.zeros(size, *learner.spec.shape, dtype=learner.spec.dtype, device=device)
        self.predict_output = torch.zeros(size, dtype=torch.int64, device=device)

        def body() -> None:
            self.predict_output.copy_(super(GraphedSteps, self).predict(self.predict_input))

        return self.capture(body)
