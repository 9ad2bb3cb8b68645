"""A learner's steps as CUDA graphs: captured once, then replayed, also for the seeds that are filled in later.

On a GPU a step of an online learner is some hundreds of kernels of a few microseconds each: launched one by one from
Python they take ten times as long as they compute. A replay launches all of them at once, and finds its batch in
`incoming`, where the batches of a block lie in the order of the log's rows. So the graphs know nothing of a stream but
the shape of its batches. The learner does not know of them: its own `step` and `probe` are captured. Its generators are
registered with the graphs, so that a replay draws what an eager step would have drawn.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import takewhile

import torch
from torch import Tensor

from droptop.learner import Learner
from droptop.streams import Stream
from droptop.system.devices import is_cuda
from droptop.training.evaluation import chunk
from droptop.training.stepping import Steps
from droptop.types import Batch, Position, Rows, in_memory, read

WARM_UP = 3  # steps before a capture, in which libraries choose their algorithms and allocate their workspaces


class Uncapturable(Exception):
    """Say why a learner has to run eagerly. The learner whose capture failed must not be used any more."""


def cuda_stream(device: str) -> AbstractContextManager[object]:
    """Return a context in which kernels go to a new CUDA stream; graphs cannot be captured on the default one."""
    return torch.cuda.stream(torch.cuda.Stream(device)) if is_cuda(device) else nullcontext()


class GraphedSteps(Steps):
    """Run a learner's steps by replaying graphs; only a ragged batch, as a task may end with, runs eagerly."""

    def __init__(self, learner: Learner, stream: Stream, start: Position, block: int) -> None:
        super().__init__(learner, stream, start, block)
        if all(len(rows) < stream.config.batch for rows in stream.order):
            raise Uncapturable("no batch is full")
        rows, size = len(self.log.rows), stream.config.batch
        self.incoming: Rows = {  # one batch per row of the log
            name: column.new_zeros(rows, size, *column.shape[1:]) for name, column in self.example(stream).items()
        }
        self.pool = torch.cuda.graph_pool_handle()  # the graphs never run at the same time, so they share their memory
        self.use_own_kernels(True)
        state = {name: value.clone() for name, value in learner.state_dict().items()}
        try:
            self.step_graph = self.capture(self.captured_step, self.log.next.zero_)
            self.probe_graph = self.capture(super().probe, self.log.next.zero_) if learner.debias.adapts else None
            self.predict_graph = self.capture_prediction()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise Uncapturable(str(error).splitlines()[0]) from error
        torch.cuda.empty_cache()  # memory that libraries took while they were choosing their algorithms
        learner.load_state_dict(state)
        learner.finite.fill_(True)
        self.log.next.zero_()

    def follow(self, stream: Stream, start: Position) -> None:
        super().follow(stream, start)
        self.ahead: list[Position] = []  # positions of the batches that lie in `incoming`, from its first row on

    def fits(self, learner: Learner, stream: Stream) -> bool:
        shapes = {name: column.shape[1:] for name, column in self.example(stream).items()}
        ours = {name: column.shape[2:] for name, column in self.incoming.items()}
        same_size = self.incoming["y"].shape[1] == stream.config.batch
        return super().fits(learner, stream) and same_size and shapes == ours

    def example(self, stream: Stream) -> Rows:
        """Return the columns that a step takes of a stream, of one sample."""
        return self.columns(stream, next(rows[:1] for rows in stream.order if len(rows)))

    def columns(self, stream: Stream, rows: Tensor) -> Rows:
        """Return the columns that steps take of some rows of a stream, on the device."""
        samples, device = read(stream.train, rows), self.learner.device
        shortcut = samples.shortcut if self.shortcut_known else None
        return {"x": samples.x.to(device), "y": stream.labels[rows].to(device)} | (
            {} if shortcut is None else {"shortcut": shortcut.to(device)}
        )

    def captured_step(self) -> None:
        """Learn the batch of the log's next row; this is what the graph of a step captures."""
        batch = {name: column.index_select(0, self.log.next)[0] for name, column in self.incoming.items()}
        self.learn(Batch(batch["x"], batch["y"], 0, batch.get("shortcut")))

    def capture(self, body: Callable[[], None], prepare: Callable[[], object] = lambda: None) -> torch.cuda.CUDAGraph:
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

    def queue(self, positions: Sequence[Position]) -> None:
        """Queue the steps of a block; where the images are on the device, fetch all of its full batches at once."""
        if in_memory(self.stream.train) and (full := list(takewhile(self.is_full, positions))):
            fetched = self.columns(self.stream, torch.cat(list(map(self.rows_at, full))))
            for name, column in fetched.items():
                self.incoming[name][: len(full)].copy_(column.unflatten(0, (len(full), -1)))
            self.ahead = full
        super().queue(positions)
        self.ahead = []

    def rows_at(self, position: Position) -> Tensor:
        """Return the rows of the stream that the batch at a position has."""
        size = self.stream.config.batch
        return self.stream.order[position.task][position.batch * size : (position.batch + 1) * size]

    def is_full(self, position: Position) -> bool:
        """Return whether the batch at a position has as many rows as the graph takes."""
        return len(self.rows_at(position)) == self.stream.config.batch

    def step(self, position: Position) -> None:
        """Queue the step of the batch at a position, which is copied in unless it was fetched with its block."""
        row = self.queued - 1
        if self.ahead[row : row + 1] != [position]:
            in_turn = not in_memory(self.stream.train)  # those on a disk are read ahead, and come one after the other
            batch = self.to_device(next(self.batches) if in_turn else self.stream.batch(position))
            if not self.is_full(position):
                self.learn(batch)
                return
            for name, column in self.incoming.items():
                column[row].copy_(getattr(batch, name))
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
