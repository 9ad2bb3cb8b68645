"""`droptop bench`: milliseconds per step on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from droptop.cli import arguments
from droptop.errors import require
from droptop.methods import METHODS, find
from droptop.nets import Precision
from droptop.nets.resnet import Stem
from droptop.report import tables
from droptop.runs.config import configure
from droptop.runs.trust import named
from droptop.streams.augment import Augment
from droptop.system.devices import check_form, is_cuda, one
from droptop.system.terminal import Console, complain

# Options that are also options of the runs that are timed.
NET_AND_MEMORY = ("root", "width", "stem", "weights", "memory", "augment", "probe")
MACHINE = ("device", "precision", "compile", "threads")


@dataclass(frozen=True)
class BenchOptions:
    """Hold the options of `droptop bench`."""

    data: str = "fashion-sticker"
    """Stream to learn from."""
    root: Path | None = None
    """Folder of the data sets that are not built in; by default the one that DROPTOP_DATA names, else ./data."""
    methods: str = ",".join(METHODS)
    """Methods to time, separated by commas."""
    debias: str = "droptop"
    """Debiasing to time, beside none."""
    seeds: str = "1"
    """Numbers of seeds that train at once on a GPU, separated by commas."""
    engines: str = ""
    """How steps run: graphs, eager, or both separated by a comma; by default all that the device has."""
    steps: int = 30
    """Number of steps to time."""
    baseline: bool = True
    """Also time ER as a plain training loop."""
    width: int | None = None
    """Channels of the net's first stage; by default as the stream's preset says."""
    stem: Stem | None = None
    """First layer: size of the kernel / stride, with or without pooling; by default as the stream's preset says."""
    weights: str | None = None
    """Weights of the ViT, for methods on a ViT: a safetensors file or hf:OWNER/NAME; by default random."""
    memory: int | None = None
    """Samples that the replay memory holds; by default as the stream's preset says."""
    augment: Augment | None = None
    """How training images are changed at random before the net sees them; by default as the stream's preset says."""
    probe: int | None = None
    """Memory samples on which DropTop measures the loss; by default the whole memory."""
    device: str = "cpu"
    """Device to measure on: cpu, cuda, cuda:1 or mps."""
    precision: Precision = "tf32"
    """Precision of the net."""
    compile: bool = False
    """Compile the net."""
    threads: int = 1
    """Threads per process."""
    out: Path | None = None
    """JSON file to write the results to; by default they are only printed."""

    def __post_init__(self) -> None:
        require(self.steps >= 2, "steps", "a number of steps from 2", self.steps)
        require(self.threads >= 1, "threads", "a number of threads from 1", self.threads)
        require(self.debias != "none", "debias", "something to compare with none", self.debias)
        require(
            all(count.strip().isdigit() and int(count) for count in self.seeds.split(",")),
            "seeds",
            "numbers of seeds such as 1,5,10",
            self.seeds,
        )
        check_form(one(self.device))
        require(is_cuda(self.device) or self.seeds == "1", "seeds", f"1 with --device {self.device}", self.seeds)
        known = ("graphs", "eager") if is_cuda(self.device) else ("eager",)
        require(
            all(engine in known for engine in self.engines.split(",") if engine),
            "engines",
            f"some of {', '.join(known)} on this device",
            self.engines,
        )


def bench(args: list[str], console: Console) -> int:
    """Time the steps of methods with and without debiasing, and print a table; return the exit code."""
    import torch

    from droptop.bench.runner import Engine
    from droptop.bench.step_times import baseline, measure
    from droptop.runs.environment import environment
    from droptop.system.files import write_json

    options = arguments.read(
        BenchOptions, args, "droptop bench", "measures milliseconds per step, with and without debiasing"
    )
    methods = [name.strip() for name in options.methods.split(",")]
    available: Sequence[Engine] = ("graphs", "eager") if is_cuda(options.device) else ("eager",)
    engines = [engine for engine in available if engine in (options.engines or ",".join(available)).split(",")]
    named(vars(options))
    for method in methods:
        find(method, "methods")
    if options.out is not None:
        require(options.out.parent.is_dir(), "out", "a file in an existing folder", options.out)
    torch.set_num_threads(options.threads)
    chosen = {name: value for name in NET_AND_MEMORY + MACHINE if (value := getattr(options, name)) is not None}
    configure(options.data, "er", options.debias, **chosen)  # refuses options that no run can have
    given = {name: str(value) for name, value in vars(options).items() if value is not None and name != "out"}
    about = {"options": given, "environment": environment(options.device, options.threads)}
    rows: list[dict[str, Any]] = []

    def save() -> None:
        if options.out is not None:
            write_json(options.out, about | {"rows": rows})

    def add(row: dict[str, Any]) -> None:
        """Print a row and save it: whoever stops a long measurement has what was measured."""
        rows.append(row)
        complain(tables.bench_line(row))
        save()

    if options.baseline:
        add(baseline(options.data, options.steps, chosen))
    counts = [int(count) for count in options.seeds.split(",")]
    measure(options.data, methods, options.debias, counts, engines, options.steps, chosen, add)
    save()  # again: the last rows have their shares now
    console.print(tables.bench_table(rows, options.data, options.steps))
    return 0
