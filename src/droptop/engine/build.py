"""From names and options to a stream and a learner."""

from typing import Any

from droptop import nets
from droptop.config import Config, configure
from droptop.errors import BadRequest
from droptop.learner import Learner
from droptop.methods import METHODS
from droptop.streams import Stream, StreamKind, find


def build_stream(config: Config, seed: int) -> Stream:
    options = config.options
    return find(options.data).build(config.stream, seed, options.limit, options.root)


def build_learner(config: Config, stream: Stream, seed: int) -> Learner:
    model = nets.build(config.net, stream.spec.shape[0], len(stream.spec.classes), seed)
    if config.options.weights is not None:
        nets.load_weights(model, config.options.weights)
    method = METHODS[config.options.method]
    if method.tasks is not None and len(stream.tasks) != method.tasks:
        raise BadRequest(f"--tasks takes {method.tasks} with --method {config.options.method}, not {len(stream.tasks)}")
    return method(model, stream.spec, config.learner, config.droptop, seed=seed, device=config.options.device)


def make_stream(data: str, seed: int = 0, **options: Any) -> Stream:
    """A stream by name: `make_stream("fashion-sticker", seed=1, correlation=0.9)`."""
    return build_stream(configure(data, **options), seed)


def make_learner(method: str, stream: Stream, debias: str = "droptop", seed: int = 0, **options: Any) -> Learner:
    """A learner by name, for a stream, built in or your own: `make_learner("er", stream, debias="none", lr=0.1)`."""
    return build_learner(configure(stream.name, method, debias, stream_kind=kind_of(stream), **options), stream, seed)


def kind_of(stream: Stream) -> StreamKind:
    """How a stream is learned from: as the built-in of its name is or, with a name of its own, by the defaults."""
    try:
        return find(stream.name)
    except BadRequest:
        return StreamKind(lambda *_: stream, type(stream.config), {}, "your own")
