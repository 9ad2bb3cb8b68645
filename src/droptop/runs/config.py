"""The configuration of a run: every option of stream, net, learner and debiasers; in Python, TOML, and as flags.

An option is named by its path, or by any end of the path that is not ambiguous: `alpha`, `intensity.alpha` and
`droptop.intensity.alpha` are the same. A stream's preset wins over a method's, and what the user sets wins over both.
"""

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from droptop import methods, trackers
from droptop.data.hub import parts_of
from droptop.debias import Chosen, DropTopConfig, members_of
from droptop.errors import BadRequest, a_kind, is_text, meant, require
from droptop.learner import LearnerConfig
from droptop.nets import NetConfig, Precision, ViTConfig, is_library_net
from droptop.nets.weights import HUB, RANDOM, TAKES, sensible
from droptop.options import MOST_SEEDS, NO_DEBIAS, ending_in, flag_of, flatten, replaced
from droptop.recipes import RECIPES, recipe_of
from droptop.runs.manifest import configuration_of, deciding
from droptop.runs.trust import named
from droptop.runs.tuned_presets import PAPER, TUNED, tuned_options
from droptop.streams import StreamConfig, StreamKind, find
from droptop.system import devices, handed, trusted_files, user_files
from droptop.system.trusted_files import OwnFile
from droptop.typed_options import Options

EXAMPLES = {"method": "er", "debias": "droptop"}
OF_NET = ("weights", "pretrained", "compile", "precision")  # options of nets that lie outside of their section
OF_LIBRARY_NET = ("net.net", "net.input_size", "weights", "pretrained", "precision")  # those that a library's net has
PLACES = ("data", "method", "debias", "model", "root", "weights")  # options that may name a file or folder


@dataclass(frozen=True)
class RunOptions:
    """Hold the options that every stream and method share: what is run, where and how often."""

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


@dataclass(frozen=True)
class Config:
    """Hold all options of a run, by section."""

    options: RunOptions
    stream: StreamConfig
    net: NetConfig | ViTConfig
    learner: LearnerConfig
    members: Any  # a dataclass with the settings of every debiaser, by its name

    def __post_init__(self) -> None:
        options, of_library = self.options, is_library_net(self.net.net)
        for name in ("first", "last"):
            value = getattr(options, name)
            met = value is None or options.model is not None or of_library
            require(met, name, "the name of a submodule of --model, or of a net of a library", value)
        example = "a net of a library, such as --net timm:resnet18, beside it"
        require(of_library or not options.pretrained, "pretrained", example, self.net.net)
        resizes = self.net.input_size is not None and isinstance(self.net, NetConfig)
        require(of_library or not resizes, "input_size", example, self.net.net)

    @property
    def builds_net(self) -> bool:
        """Return whether droptop builds the net: it is neither the user's own nor a library's."""
        return self.options.model is None and not is_library_net(self.net.net)

    @property
    def droptop(self) -> DropTopConfig | None:
        """Return the settings of DropTop, if it is among the debiasers."""
        return getattr(self.members, "droptop", None)

    @property
    def chosen(self) -> list[Chosen]:
        """Return the debiasers with their settings; without those of a recipe that the method cannot take."""
        kinds, method = members_of(self.options.debias), methods.find(self.options.method)
        parts = self.options.debias.split("+")
        by_recipe = {name for part in parts if part in RECIPES for name in RECIPES[part].members} - set(parts)
        taken = [name for name, kind in kinds.items() if name not in by_recipe or method.takes(kind)]
        return [Chosen(kinds[name], getattr(self.members, name)) for name in taken]

    @property
    def seeds(self) -> range:
        """Return the seeds of the run."""
        return range(self.options.first_seed, self.options.first_seed + self.options.seeds)

    def on(self, device: str) -> "Config":
        """Return the configuration on another device; on one of the same kind, the run is the same one."""
        if device == self.options.device:
            return self
        return dataclasses.replace(self, options=dataclasses.replace(self.options, device=device))

    def with_effective_kappa_0(self) -> "Config":
        """Return the configuration with the kappa_0 that is run, at most gamma; a new folder notes this one."""
        if self.droptop is None:
            return self
        members = dataclasses.replace(self.members, droptop=self.droptop.with_effective_kappa_0())
        return dataclasses.replace(self, members=members)

    def check_kappa_0(self, base: "Config") -> None:
        """Raise BadRequest if the user set kappa_0 above gamma; `base` is what the names alone stand for."""
        if self.droptop is not None and base.droptop is not None:
            self.droptop.check_kappa_0(base.droptop)

    def check_model(self, base: "Config") -> None:
        """Raise BadRequest if a model that droptop does not build goes not with the method, or an option set."""
        usual = flatten(base)
        self.check_model_options(path for path, value in flatten(self).items() if value != usual[path])

    def check_model_options(self, paths: Iterable[str], given: bool = False) -> None:
        """Raise BadRequest if one of the options that the user set, by path, does not go with the model.

        With `given`, the model is one that was given in Python.
        """
        own = given or self.options.model is not None
        if own and isinstance(self.net, ViTConfig):
            raise BadRequest(f"--method {self.options.method} takes a ViT by --weights, not a model")
        for path in paths:
            of_net = path.startswith("net.") or path in OF_NET
            if own and of_net:
                instead = "a model that it is given"
            elif is_library_net(self.net.net) and of_net and path not in OF_LIBRARY_NET:
                instead = self.net.net
            else:
                continue
            raise BadRequest(f"--{path.rpartition('.')[2]} is for nets that droptop builds, not for {instead}")

    def __reduce__(self) -> Any:
        """Pickle as names and options: other processes cannot import a class from a user's file."""
        names = [name for of_option in self.options.user_files().values() for name in of_option]
        paths = user_files.paths_in(",".join([*names, self.options.log or ""]))
        modules = [file.path for file in trackers.files(self.options.log)]
        return config_from_options, (flatten(self), trusted_files.admitted([*paths, *modules]))

    def noted(self) -> dict[str, Any]:
        """Return every option that is set, by path, as config.toml has them."""
        return {
            path: str(value) if isinstance(value, Path) else value
            for path, value in flatten(self).items()
            if value is not None
        }

    def fingerprint(self) -> str:
        """Return a hash by which configurations with different runs differ; the number of seeds is no part of it."""
        values = {path: str(value) for path, value in deciding(flatten(self)).items()}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def configuration(self) -> str:
        """Return the hash by which a seed's manifest says that it is of this configuration; readers know it too."""
        return configuration_of(self.noted())

    def matches_environment(self, environment: dict[str, Any]) -> bool:
        """Return whether a run with this environment.json began with this configuration.

        True where a user's file is gone: options that were None are not in TOML, so nobody can tell.
        """
        now = self.fingerprint()
        return not self.options.files_are_there or environment.get("asked", now) == now


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


def check_name(option: str, value: Any) -> None:
    """Raise BadRequest if a name is no text, such as a class or settings: what they set are options of their own."""
    if not isinstance(value, str):
        kind = f"the class {value.__name__}" if isinstance(value, type) else a_kind(type(value))
        what = "; settings are options, such as gamma=5" if dataclasses.is_dataclass(value) else ""
        raise BadRequest(f"{option} takes a name, such as {EXAMPLES[option]}, not {kind}{what}")


def settings_of(members: dict[str, Any]) -> Any:
    """Return settings of debiasers, by name, as one dataclass."""
    return members_type(tuple((name, type(settings)) for name, settings in members.items()))(**members)


@cache
def members_type(fields: tuple[tuple[str, type], ...]) -> type[Any]:
    """Return the dataclass of such fields, the same one each time, so that equal configurations compare as equal."""
    return dataclasses.make_dataclass("Members", fields, frozen=True)


def defaults(
    data: str, method: str, debias: str, stream_kind: StreamKind | None = None, device: str = RunOptions.device
) -> Config:
    """Return the configuration that three names stand for on a device, with the method's and the stream's presets."""
    for option, value in (("method", method), ("debias", debias)):
        check_name(option, value)
    stream = stream_kind or find(data)
    learner = methods.find(method)
    recipe = recipe_of(debias)
    config = Config(
        RunOptions(data, method, debias, device=device),
        stream.config(),
        learner.net_type(),
        learner.config_type(),
        settings_of({name: kind.config_type() for name, kind in members_of(debias).items()}),
    )
    presets = learner.presets(stream.preset_on(device)) | recipe.options
    presets |= learner.paper if "droptop-paper" in debias.split("+") else {}
    config = override(config, had(config, presets))
    known = {resolve(name, config): factor for name, factor in had(config, recipe.factors).items()}
    return override(config, {path: factor * flatten(config)[path] for path, factor in known.items()})


def configure(
    data: str = "fashion-sticker",
    method: str = "er",
    debias: str | None = "droptop",
    stream_kind: StreamKind | None = None,
    *,
    model: str | None = None,
    first: str | None = None,
    last: str | None = None,
    **options: Unpack[Options],
) -> Config:
    """Return a configuration by names and options, as on the command line: `configure("fashion", gamma=2.5, seeds=10)`.

    Python files that are named here are yours: they are executed, here and by later commands.

    Args:
        data: Name of the stream.
        method: Name of the learner, or a Python file that defines one.
        debias: What to debias with: names or Python files, joined by +, or "none", as is None.
        stream_kind: How your own stream is learned from, where `data` is not a name that droptop knows.
        model: A Python file that defines a model, or what makes one.
        first: Name of the submodule that gives the first map of a model, or of a net of a library.
        last: Name of the submodule that gives the last map.
        **options: Options by name or path, such as `alpha` or `intensity.alpha`.

    Returns:
        The configuration, with presets where nothing was set.

    Raises:
        BadRequest: If a name, an option or a value is not known or does not fit.
    """
    chosen = NO_DEBIAS if debias is None else debias
    named({"data": data, "method": method, "debias": chosen, "model": model} | dict(options))
    base = defaults(data, method, chosen, stream_kind, device_of(options))
    own = {name: value for name, value in (("model", model), ("first", first), ("last", last)) if value is not None}
    config = override(base, own | dict(options))
    config.check_kappa_0(base)
    config.check_model(base)
    return config


def device_of(options: Mapping[str, Any]) -> str:
    """Return the device that options name, on which defaults depend."""
    return str(options.get("device", RunOptions.device))


def config_from_options(options: dict[str, Any], files: Iterable[OwnFile] = ()) -> Config:
    """Return the configuration that has these options, all of them given by path; `files` may be executed for it."""
    trusted_files.admit(files)
    names = [options[name] for name in ("data", "method", "debias")]
    return override(defaults(*names), options)


def has(config: Config, name: str) -> bool:
    """Return whether a name stands for an option of a configuration."""
    return len(ending_in(name, flatten(config))) == 1


def had(config: Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some options that a configuration has."""
    paths = flatten(config)
    return {name: value for name, value in options.items() if len(ending_in(name, paths)) == 1}


def resolve(name: str, config: Config, where: str = "", paths: Collection[str] = ()) -> str:
    """Return the path of the one option that `name` is an end of; `paths` are those of all, where they are known.

    Raise BadRequest, whose text begins with `where`, if no option or more than one ends so.
    """
    paths = paths or flatten(config)
    matches = ending_in(name, paths)
    if len(matches) == 1:
        return matches[0]
    if matches:
        flags = " or ".join(flag_of(path) for path in matches)
        raise BadRequest(f"{where}option {name} is that of several: say {flags}")
    short = [path.rpartition(".")[2].replace("_", "-") for path in paths]
    hint = meant(name.rpartition(".")[2].replace("_", "-"), short, "--")
    raise BadRequest(
        f"{where}unknown option {name} with --data {config.options.data} --method "
        f"{config.options.method} --debias {config.options.debias}{hint}"
    )


def override(config: Config, options: dict[str, Any]) -> Config:
    """Return the configuration with some options set; raise BadRequest if they are not known or do not go together.

    Where a named preset is among them, so are the options that it stands for, unless they are set too.
    """
    known = flatten(config)
    paths = {resolve(name, config, paths=known): value for name, value in options.items()}
    if "learner.preset" in paths and config.options.files_are_there:  # else what is noted has all of them
        usual: dict[str, dict[str, Any]] = {PAPER: {}}
        named, name = usual | methods.find(config.options.method).named_presets, paths["learner.preset"]
        require(name in (*named, TUNED), "preset", f"one of {', '.join((*named, TUNED))}", name)
        asked = tuned_options(config.options.method, config.options.data) if name == TUNED else named[name]
        paths = {resolve(option, config): value for option, value in asked.items()} | paths
    return replaced(config, {place_of(path, config): value for path, value in paths.items()})


def place_of(path: str, config: Config) -> str:
    """Return where an option lies in a `Config`, by its path: that of `RunOptions` and debiasers has no section."""
    head = path.partition(".")[0]
    return f"options.{path}" if head == path else f"members.{path}" if hasattr(config.members, head) else path
