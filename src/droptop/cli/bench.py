"""`droptop bench`: how fast it is, on this machine."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from droptop.cli import arguments
from droptop.errors import require
from droptop.methods import METHODS, find
from droptop.nets import Precision
from droptop.nets.resnet import Stem
from droptop.report import tables
from droptop.runs.config import configure
from droptop.streams.augment import Augment


@dataclass(frozen=True)
class BenchOptions:
    data: str = "fashion-sticker"
    """Stream by name."""
    root: Path | None = None
    """Folder in which data sets lie that are not built in."""
    methods: str = ",".join(METHODS)
    """Methods, separated by commas."""
    debias: str = "droptop"
    """What to debias with."""
    seeds: str = "1"
    """Seeds in flight at once on a GPU, separated by commas."""
    engines: str = ""
    """graphs, eager, or both separated by a comma; all that the device has unless told."""
    steps: int = 30
    """Steps to time."""
    baseline: bool = True
    """Time ER as a plain loop of the usual kind as well."""
    width: int | None = None
    """Channels of the net's first stage; the stream's own unless told."""
    stem: Stem | None = None
    """First layer; the stream's own unless told."""
    weights: str | None = None
    """Weights of the ViT, for methods that take one: a safetensors file or hf:OWNER/NAME; random unless told."""
    memory: int | None = None
    """Samples the replay memory holds; the stream's own unless told."""
    augment: Augment | None = None
    """Augmentation; the stream's own unless told."""
    probe: int | None = None
    """Memory samples of DropTop's probe; the whole memory unless told."""
    device: str = "cpu"
    """cpu or cuda."""
    precision: Precision = "tf32"
    """What the net is computed in."""
    compile: bool = False
    """Compile the net."""
    threads: int = 1
    """Threads of the process."""
    out: Path | None = None
    """JSON file for the figures."""

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
        require(self.device == "cuda" or self.seeds == "1", "seeds", "1 on a CPU", self.seeds)
        known = ("graphs", "eager") if self.device == "cuda" else ("eager",)
        require(
            all(engine in known for engine in self.engines.split(",") if engine),
            "engines",
            f"some of {', '.join(known)} on this device",
            self.engines,
        )


def bench(args: list[str], console: Console) -> int:
    import torch

    from droptop.bench.runner import Engine
    from droptop.bench.step_times import baseline, measure
    from droptop.runs.environment import environment
    from droptop.system.files import write_json

    options = arguments.read(BenchOptions, args, "droptop bench", "milliseconds a step, with and without debiasing")
    methods = [name.strip() for name in options.methods.split(",")]
    has: Sequence[Engine] = ("graphs", "eager") if options.device == "cuda" else ("eager",)
    engines = [engine for engine in has if engine in (options.engines or ",".join(has)).split(",")]
    for method in methods:
        find(method, "methods")
    if options.out is not None:
        require(options.out.parent.is_dir(), "out", "a file in an existing folder", options.out)
    torch.set_num_threads(options.threads)
    passed = (
        "root",
        "width",
        "stem",
        "weights",
        "memory",
        "augment",
        "probe",
        "device",
        "precision",
        "compile",
        "threads",
    )
    chosen = {name: value for name in passed if (value := getattr(options, name)) is not None}
    configure(options.data, "er", options.debias, **chosen)  # refuses what cannot be
    asked = {name: str(value) for name, value in vars(options).items() if value is not None and name != "out"}
    about = {"options": asked, "environment": environment(options.device, options.threads)}
    rows: list[dict[str, Any]] = []

    def keep() -> None:
        if options.out is not None:
            write_json(options.out, about | {"rows": rows})

    def tell(row: dict[str, Any]) -> None:
        """Says a figure and keeps it: whoever stops a long measurement has what was measured."""
        rows.append(row)
        print(tables.bench_line(row), file=sys.stderr)
        keep()

    if options.baseline:
        tell(baseline(options.data, options.steps, chosen))
    measure(
        options.data,
        methods,
        options.debias,
        [int(count) for count in options.seeds.split(",")],
        engines,
        options.steps,
        chosen,
        tell,
    )
    keep()  # again: the last rows have their shares now
    console.print(tables.bench_table(rows, options.data, options.steps))
    return 0
