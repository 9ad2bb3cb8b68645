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
from droptop.debias import Chosen, DropTopConfig, members_of
from droptop.errors import BadRequest, a_kind, meant, require
from droptop.learner import LearnerConfig
from droptop.nets import NetConfig, ViTConfig, is_library_net
from droptop.options import NO_DEBIAS, ending_in, flag_of, flatten, replaced
from droptop.recipes import RECIPES, recipe_of
from droptop.runs.manifest import configuration_of, deciding
from droptop.runs.run_options import RunOptions
from droptop.runs.trust import named
from droptop.runs.tuned_presets import PAPER, TUNED, tuned_options
from droptop.streams import StreamConfig, StreamKind, find
from droptop.system import trusted_files, user_files
from droptop.system.trusted_files import OwnFile
from droptop.typed_options import Options

EXAMPLES = {"method": "er", "debias": "droptop"}
OF_NET = ("weights", "pretrained", "compile", "precision")  # options of nets that lie outside of their section
OF_LIBRARY_NET = ("net.net", "net.input_size", "weights", "pretrained", "precision")  # those that a library's net has


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
