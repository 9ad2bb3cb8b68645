"""The options that every stream and method share: what is run, where and how often."""

from dataclasses import dataclass
from pathlib import Path

from droptop import trackers
from droptop.data.hub import parts_of
from droptop.errors import is_text, require
from droptop.nets import Precision
from droptop.nets.weights import HUB, RANDOM, TAKES, sensible
from droptop.options import MOST_SEEDS
from droptop.system import devices, handed, user_files

PLACES = ("data", "method", "debias", "model", "root", "weights")  # options that may name a file or folder


@dataclass(frozen=True)
class RunOptions:
    """Hold these options."""

    data: str = "fashion-sticker"
    """Stream to learn from, or a Python file of yours that defines one."""
    method: str = "er"
    """Method to learn by, or a Python file of yours that defines one."""
    debias: str = "droptop"
    """What to debias with: none, a name, a Python file of yours, or several joined by + (droptop+mixstyle). `compare`
    also takes several separated by commas, an arm for each."""
    seeds: int = 5
    """Number of seeds, each a training of its own."""
    model: str | None = None
    """A Python file of yours that defines a model, or what makes one, in place of droptop's net; by default none."""
    first: str | None = None
    """Name of the submodule of --model, or of a library's net, that gives the first map; by default a model has none,
    being a backbone itself, and a library's net has that of its family."""
    last: str | None = None
    """Name of the submodule that gives the last map; by default as with `first`."""
    first_seed: int = 0
    """The first seed; the others are the numbers after it."""
    root: Path | None = None
    """Folder of the data sets that are not built in; by default the one that DROPTOP_DATA names, else ./data."""
    weights: str | None = None
    """Weights to start from: a safetensors file, hf:OWNER/NAME or random, a ResNet's default; a ViT must be told."""
    pretrained: bool = False
    """Start from the weights that timm or torchvision has for its net."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1, cuda:all or mps."""
    precision: Precision = "tf32"
    """Precision of the net: fp32, tf32 (on a GPU, matrix products rounded to 10 bits, as torch does for convolutions;
    on a CPU, fp32), or bf16 (autocast)."""
    graphs: bool = True
    """On a GPU, capture steps as CUDA graphs, which is faster."""
    compile: bool = False
    """Compile the net: the start takes half a minute longer, every step is faster."""
    parallel: int | None = None
    """Number of seeds that train at once on a GPU, at most; by default as many as are useful and fit in its memory."""
    deterministic: bool = False
    """Give the same bytes every time on a GPU, at some cost in speed."""
    threads: int = 1
    """Threads per process. Another number changes the last bits of the results, so it is part of what a run is."""
    limit: int | None = None
    """Training samples per task, at most; by default all."""
    eval_every: int | None = None
    """Steps between evaluations, besides those after each task; gives A_auc, the accuracy at any time. By default there
    are none between."""
    checkpoint_seconds: float = 5.0
    """Seconds between checkpoints, at least; more where writing one takes long."""
    maps: int = 64
    """Number of test images whose attention is recorded, twice per task; 0 records none."""
    maps_seeds: int = 1
    """Number of seeds that record attention, from the first on."""
    log: str | None = None
    """Trackers that every seed reports to, separated by commas: csv, tensorboard, wandb, or your own as MODULE:CLASS;
    by default none."""

    def __post_init__(self) -> None:
        require(1 <= self.seeds <= MOST_SEEDS, "seeds", f"a number of seeds from 1 to {MOST_SEEDS:,}", self.seeds)
        require(self.first_seed >= 0, "first_seed", "a number from 0", self.first_seed)
        require(self.threads >= 1, "threads", "a number of threads from 1", self.threads)
        require(self.parallel is None or self.parallel >= 1, "parallel", "a number of seeds from 1", self.parallel)
        require(self.limit is None or self.limit >= 1, "limit", "a number of samples from 1", self.limit)
        eval_every, seconds = self.eval_every, self.checkpoint_seconds
        require(eval_every is None or eval_every >= 1, "eval_every", "a number of steps from 1", eval_every)
        require(0 <= seconds < float("inf"), "checkpoint_seconds", "a number from 0", seconds)
        require(self.maps == 0 or self.maps >= 2, "maps", "a number of images from 2, or 0 for none", self.maps)
        require(self.maps_seeds >= 1, "maps_seeds", "a number of seeds from 1", self.maps_seeds)
        devices.check_form(self.device)
        narrow = devices.kind_of(self.device) == "mps" and self.precision == "bf16"
        require(not narrow, "precision", f"fp32 or tf32 with --device {self.device}", self.precision)
        trackers.names(self.log)  # raises if one is not a name
        model = self.model
        own = model is None or user_files.is_own(model)
        require(own, "model", "a Python file such as my_model.py or my_model.py:Net", model)
        for name in PLACES:
            if (value := getattr(self, name)) is not None:
                place = absolute(name, str(value))
                require(is_text(place), name, "a path in UTF-8", ascii(place))
                object.__setattr__(self, name, Path(place) if name == "root" else place)

    def user_files(self) -> dict[str, list[str]]:
        """Return the files and objects of the user's own that something is named by, by option."""
        named = {"data": [self.data], "method": [self.method], "debias": self.debias.split("+")}
        named |= {"model": [self.model]} if self.model is not None else {}
        own = {option: [name for name in names if user_files.is_own(name)] for option, names in named.items()}
        return {option: names for option, names in own.items() if names}

    @property
    def files_are_there(self) -> bool:
        """Return whether all of these exist."""
        return all(user_files.is_there(name, option) for option, names in self.user_files().items() for name in names)

    @property
    def has_objects(self) -> bool:
        """Return whether something is an object that no other process has."""
        return handed.is_object(self.data) or handed.is_object(self.model)

    def check_machine(self, with_data: bool = True) -> None:
        """Raise BadRequest if this machine lacks a user's file, the GPU, the weights or the root folder.

        No part of making a configuration: one can be read anywhere. Without data, a learner can still be loaded.
        """
        for option, names in self.user_files().items():
            for name in names if with_data or option != "data" else ():
                user_files.check_there(name, option)
        devices.check_here(self.device)
        shared = not (self.has_objects and devices.is_several(self.device))
        require(shared, "device", "one device with an object of your own, which other processes lack", self.device)
        require(self.weights is None or sensible(self.weights), "weights", TAKES, self.weights)
        require(self.root is None or self.root.is_dir(), "root", "an existing folder", self.root)


def absolute(name: str, value: str) -> str:
    """Return the value of an option in PLACES with its path made absolute, so that it holds in any working folder."""
    if name in ("data", "method", "model") and user_files.is_own(value):
        return user_files.absolute(value)
    if name == "method":
        return value
    if name == "debias":
        return "+".join(map(user_files.absolute, value.split("+")))
    if name == "weights" and (value == RANDOM or value.startswith(HUB)):
        return value
    if name == "data":
        kind, _, path = value.partition(":")
        if kind == "hf":
            place, config = parts_of(path)
            return f"hf:{place}" + (f":{config}" if config else "")
        return f"{kind}:{Path(path).expanduser().absolute()}" if kind in ("folder", "csv") and path else value
    return str(Path(value).expanduser().absolute())
