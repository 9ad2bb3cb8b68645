"""One run, described: every option of stream, net, learner and debiasing layer; in Python, in TOML, as flags.

An option is named by its path, and any end of the path that is not ambiguous will do: `alpha`, `intensity.alpha` and
`droptop.intensity.alpha` are the same. A stream's preset wins over a method's, and whatever was asked for wins over
both.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from droptop import methods, trackers
from droptop.debias import DEBIAS, DropTopConfig
from droptop.errors import BadRequest, is_text, meant, require
from droptop.learner import LearnerConfig
from droptop.nets import NetConfig, Precision, ViTConfig
from droptop.nets.weights import HUB, RANDOM, TAKES, sensible
from droptop.options import NO_DEBIAS, WITHOUT_EFFECT, YOUNGER, ending_in, flatten, replaced
from droptop.streams import StreamConfig, StreamKind, find
from droptop.system.toml_files import toml_text

PLACES = ("data", "method", "root", "weights")  # options that may name a file or folder


@dataclass(frozen=True)
class RunOptions:
    """What is run, and how; the options every stream and method share."""

    data: str = "fashion-sticker"
    """Stream by name."""
    method: str = "er"
    """Learner by name, or a Python file that defines one."""
    debias: str = "droptop"
    """Debiasing: droptop, droptop-paper (its kappa_0), an ablation (no-fusion, fixed, random), or none."""
    seeds: int = 5
    """How many seeds."""
    first_seed: int = 0
    """The first of them."""
    root: Path | None = None
    """Folder in which data sets lie that are not built in."""
    weights: str | None = None
    """Initial weights of the net: a safetensors file, hf:OWNER/NAME (Hugging Face), or random (a small ViT)."""
    device: str = "cpu"
    """cpu or cuda."""
    precision: Precision = "tf32"
    """What the net is computed in: fp32, tf32 (matrix products rounded to 10 bits on a GPU, as torch does for
    convolutions; fp32 on a CPU), or bf16 (autocast)."""
    graphs: bool = True
    """Capture steps as CUDA graphs on a GPU."""
    compile: bool = False
    """Compile the net: a faster step for half a minute of waiting."""
    parallel: int | None = None
    """Seeds in flight on a GPU at once; as many as are useful and fit its memory unless told."""
    deterministic: bool = False
    """The same bytes every time on a GPU, at some cost in speed."""
    threads: int = 1
    """Threads a process; part of a run's identity, since other numbers give other bits."""
    limit: int | None = None
    """Samples a task, for a quick look."""
    eval_every: int | None = None
    """Evaluate every so many steps as well as after each task; gives A_auc, the anytime accuracy."""
    checkpoint_seconds: float = 5.0
    """Least time between checkpoints; they are rarer where writing one takes long."""
    maps: int = 64
    """Test images on which the first seed records, twice a task, where its model looks; 0: none."""
    maps_seeds: int = 1
    """How many seeds record that."""
    log: str | None = None
    """Trackers that follow every seed, separated by commas: csv, tensorboard, wandb, or your own as MODULE:CLASS."""

    def __post_init__(self) -> None:
        require(self.seeds >= 1, "seeds", "a number of seeds from 1", self.seeds)
        require(self.first_seed >= 0, "first_seed", "a number from 0", self.first_seed)
        require(self.threads >= 1, "threads", "a number of threads from 1", self.threads)
        require(self.parallel is None or self.parallel >= 1, "parallel", "a number of seeds from 1", self.parallel)
        require(self.limit is None or self.limit >= 1, "limit", "a number of samples from 1", self.limit)
        require(
            self.eval_every is None or self.eval_every >= 1, "eval_every", "a number of steps from 1", self.eval_every
        )
        require(
            0 <= self.checkpoint_seconds < float("inf"),
            "checkpoint_seconds",
            "a number from 0",
            self.checkpoint_seconds,
        )
        require(self.maps == 0 or self.maps >= 2, "maps", "a number of images from 2, or 0 for none", self.maps)
        require(self.maps_seeds >= 1, "maps_seeds", "a number of seeds from 1", self.maps_seeds)
        require(self.device in ("cpu", "cuda"), "device", "cpu or cuda", self.device)
        trackers.names(self.log)  # refuses what is no name
        for name in PLACES:
            if (value := getattr(self, name)) is not None:
                whole = absolute(name, str(value))
                require(is_text(whole), name, "a path in UTF-8", ascii(whole))
                object.__setattr__(self, name, Path(whole) if name == "root" else whole)

    @property
    def method_name(self) -> str:
        """The method as people are told of it: of a file, its name and not where it lies."""
        return Path(self.method).name

    def check_machine(self) -> None:
        """Refuses what cannot be run here. A configuration can be read anywhere."""
        methods.from_file.check_there(self.method)
        require(
            self.device == "cpu" or torch.cuda.is_available(), "device", "cpu where torch finds no GPU", self.device
        )
        require(self.weights is None or sensible(self.weights), "weights", TAKES, self.weights)
        require(self.root is None or self.root.is_dir(), "root", "an existing folder", self.root)


@dataclass(frozen=True)
class Config:
    options: RunOptions
    stream: StreamConfig
    net: NetConfig | ViTConfig
    learner: LearnerConfig
    droptop: DropTopConfig | None  # None where nothing is debiased

    @property
    def seeds(self) -> range:
        return range(self.options.first_seed, self.options.first_seed + self.options.seeds)

    def arm(self, debias: str) -> "Config":
        """The same run with its own debiasing or, for "none", without."""
        if debias == self.options.debias:
            return self
        assert debias == NO_DEBIAS
        return dataclasses.replace(self, options=dataclasses.replace(self.options, debias=debias), droptop=None)

    def as_run(self) -> "Config":
        """What a new folder notes of it, so that this is what is run."""
        return self if self.droptop is None else dataclasses.replace(self, droptop=self.droptop.as_run())

    def check_asked(self, base: "Config") -> None:
        """Refuses what cannot be had, of what was asked for beyond what its names stand for."""
        if self.droptop is not None and base.droptop is not None:
            self.droptop.check_asked(base.droptop)

    def __reduce__(self) -> Any:
        """Travels between processes as names and options: a class from a user's file can be imported by nobody else."""
        return rebuilt, (flatten(self),)

    def noted(self) -> dict[str, Any]:
        """Return every option that is set, by path, as a folder's config.toml has them."""
        return {
            path: str(value) if isinstance(value, Path) else value
            for path, value in flatten(self).items()
            if value is not None
        }

    def fingerprint(self) -> str:
        """Tells apart configurations whose runs differ; how many seeds are run is no part of that."""
        values = {
            path: str(value)
            for path, value in flatten(self).items()
            if path not in WITHOUT_EFFECT and (path, value) not in YOUNGER.items()
        }
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def was_asked(self, environment: dict[str, Any]) -> bool:
        """Is it what a run began with, by its environment.json? Nobody can tell where the method's file is gone: what
        was None is not in TOML."""
        now = self.fingerprint()
        return not methods.from_file.is_there(self.options.method) or environment.get("asked", now) == now


def absolute(name: str, value: str) -> str:
    """A value of an option that may name a place, so that it does from whatever folder a run is gone on with."""
    if name == "method":
        return methods.from_file.absolute(value) if methods.from_file.is_file(value) else value
    if name == "weights" and (value == RANDOM or value.startswith(HUB)):
        return value
    kind = "folder:" if name == "data" else ""
    return kind + str(Path(value.removeprefix(kind)).expanduser().absolute()) if value.startswith(kind) else value


def named(kind: str, name: str, known: dict[str, Any]) -> Any:
    require(name in known, kind, f"one of {', '.join(known)}", name + meant(name, known))
    return known[name]


def defaults(data: str, method: str, debias: str, stream_kind: StreamKind | None = None) -> Config:
    """The configuration that these three names stand for, before anybody's own wishes."""
    stream = stream_kind or find(data)
    learner = methods.find(method)
    settings = named("debias", debias, {NO_DEBIAS: None, **DEBIAS})
    config = Config(
        RunOptions(data, method, debias),
        stream.config(),
        learner.net_type(),
        learner.config_type(),
        None if settings is None else DropTopConfig(),
    )
    paths = {path.rpartition(".")[2] for path in flatten(config)}
    presets = learner.presets(stream.preset) | (settings or {}) | (learner.paper if debias == "droptop-paper" else {})
    return override(config, {name: value for name, value in presets.items() if name in paths})


def configure(
    data: str = "fashion-sticker",
    method: str = "er",
    debias: str = "droptop",
    stream_kind: StreamKind | None = None,
    **options: Any,
) -> Config:
    """A configuration by names and options, as on the command line: `configure("fashion", gamma=2.5, seeds=10)`."""
    base = defaults(data, method, debias, stream_kind)
    config = override(base, options)
    config.check_asked(base)
    return config


def rebuilt(options: dict[str, Any]) -> Config:
    """The configuration whose options, all of them, these are."""
    names = [options[name] for name in ("data", "method", "debias")]
    return override(defaults(*names), options)


def resolve(name: str, config: Config, where: str = "") -> str:
    """The path of the option that `name` is an end of."""
    paths = list(flatten(config))
    found = ending_in(name, paths)
    if len(found) == 1:
        return found[0]
    short = [path.rpartition(".")[2].replace("_", "-") for path in paths]
    hint = meant(name.rpartition(".")[2].replace("_", "-"), short, "--")
    raise BadRequest(
        f"{where}unknown option {name} with --data {config.options.data} --method "
        f"{config.options.method} --debias {config.options.debias}{hint}"
    )


def override(config: Config, options: dict[str, Any]) -> Config:
    """The configuration with some options set; together they are checked by the dataclasses they belong to."""
    paths = {resolve(name, config): value for name, value in options.items()}
    return replaced(config, {path if "." in path else f"options.{path}": value for path, value in paths.items()})


def to_toml(config: Config, command: str) -> str:
    """Return the configuration as a file that runs again: `droptop COMMAND --config FILE`."""
    return toml_text({"command": command} | config.noted())
