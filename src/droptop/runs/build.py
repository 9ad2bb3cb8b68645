"""From names and options to a stream and a learner."""

import dataclasses
from typing import Any

from torch import nn

from droptop import methods, nets
from droptop.errors import BadRequest, meant, require
from droptop.learner import Learner
from droptop.nets.map_layout import MapLayout
from droptop.options import ending_in, flatten
from droptop.runs.config import Config, configure, resolve
from droptop.streams import Stream, StreamConfig, StreamKind, find
from droptop.types import Spec


def build_stream(config: Config, seed: int) -> Stream:
    options = config.options
    options.check_machine()
    return find(options.data).build(config.stream, seed, options.limit, options.root)


def build_learner(
    config: Config, stream: Stream | Spec, seed: int, model: nets.Backbone | None = None, device: str | None = None
) -> Learner:
    """A learner for a stream or, where nobody knows of tasks, for images of some spec; elsewhere if told."""
    spec, options = stream.spec if isinstance(stream, Stream) else stream, config.options
    options.check_machine()
    if model is None:
        model = nets.build(config.net, spec.shape[0], len(spec.classes), seed, options.weights)
    if isinstance(config.net, nets.ViTConfig):  # pretrained weights know pixels as they were normalised for them
        spec = dataclasses.replace(spec, mean=config.net.pixel_mean, std=config.net.pixel_std)
    method = methods.find(options.method)
    learner = method(model, spec, config.learner, config.droptop, seed=seed, device=device or options.device)
    if isinstance(stream, Stream):
        learner.check_tasks(len(stream.tasks))
    for replica in learner.replicas:
        nets.compute_in(replica, spec.shape, options.precision, options.compile and method.compiles)
    return learner


def make_stream(data: str, seed: int = 0, **options: Any) -> Stream:
    """A stream by name: `make_stream("fashion-sticker", seed=1, correlation=0.9)`."""
    own = [path for path in flatten(configure(data)) if path.startswith("stream.") or path in ("limit", "root")]
    for name in options:
        if not ending_in(name, own):  # the net's and the learner's would say nothing here
            short = [path.rpartition(".")[2] for path in own]
            raise BadRequest(f"stream {data} has no option {name}; it has {', '.join(short)}{meant(name, short)}")
    return build_stream(configure(data, **options), seed)


def make_learner(
    method: str,
    stream: Stream | Spec,
    debias: str = "droptop",
    seed: int = 0,
    *,
    model: nn.Module | None = None,
    first: str | None = None,
    last: str | None = None,
    grid: tuple[int, int] | None = None,
    channels_last: bool | None = None,
    **options: Any,
) -> Learner:
    """A learner by name, for a stream, built in or your own, or for images of a spec alone: `make_learner("er", stream,
    debias="none", lr=0.1)`.

    It has a ResNet-18 unless it is given a `model`, which it then trains from the weights that the model has. `first`
    and `last` name the submodules that give the first map and the last one, `grid` and `channels_last` say how these
    lie, all as `droptop.attach` takes them.
    """
    if not isinstance(stream, Stream | Spec):
        raise BadRequest(f"a learner is made for a stream, as make_stream gives one, or for a Spec, not for {stream!r}")
    name = stream.name if isinstance(stream, Stream) else "your own"
    config = configure(name, method, debias, stream_kind=kind_of(stream), **options)
    if model is None:
        require(first is None and last is None, "model", "the model that first and last name the submodules of", model)
        return build_learner(config, stream, seed)
    check_own(config, options)
    spec = stream.spec if isinstance(stream, Stream) else stream
    own = nets.adapt(model, first, last, MapLayout(grid, channels_last), spec.shape, len(spec.classes))
    return build_learner(config, stream, seed, own)


def check_own(config: Config, options: dict[str, Any]) -> None:
    """Refuses what cannot be asked of a model of one's own."""
    if isinstance(config.net, nets.ViTConfig):
        raise BadRequest(f"--method {config.options.method} takes a ViT by --weights, not a model")
    paths = [resolve(name, config) for name in options]
    for path in paths:
        if path.startswith("net.") or path in ("weights", "compile", "precision"):
            raise BadRequest(
                f"--{path.rpartition('.')[2]} is for nets that droptop builds, not for a model that it is given"
            )


def kind_of(stream: Stream | Spec) -> StreamKind:
    """How a stream is learned from: as the built-in of its name is or, with a name of its own or none, by the
    defaults."""
    if isinstance(stream, Spec):
        return StreamKind(no_stream, StreamConfig, {}, "images of a spec")
    try:
        return find(stream.name)
    except BadRequest:
        return StreamKind(lambda *_: stream, type(stream.config), {}, "your own")


def no_stream(*_: Any) -> Stream:
    raise BadRequest("a spec alone is no stream")
