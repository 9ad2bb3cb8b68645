"""Build a stream and a learner from names and options."""

import copy
import dataclasses
import hashlib
import inspect
from typing import Any, Unpack

import torch
from torch import nn

from droptop import methods, nets
from droptop.errors import BadBatch, BadRequest, a_kind, meant
from droptop.learner import Learner
from droptop.nets.map_layout import MapLayout
from droptop.options import ending_in, flatten
from droptop.rng import seeded
from droptop.runs.config import Config, configure, resolve
from droptop.runs.run_options import RunOptions
from droptop.streams import Stream, StreamConfig, StreamKind, find
from droptop.system import handed, user_files
from droptop.system.devices import one
from droptop.typed_options import LearnerOptions, StreamOptions
from droptop.types import Spec


def build_stream(config: Config, seed: int) -> Stream:
    """Return the stream of a configuration for one seed; raise BadRequest if this machine cannot run it."""
    options = config.options
    options.check_machine()
    return find(options.data).build(config.stream, seed, options.limit, options.root)


def build_model(options: RunOptions, spec: Spec, seed: int) -> nets.Backbone:
    """Return the user's own model of one seed: a copy of the model, or a new one with weights that the seed draws."""
    assert options.model is not None
    model = copy.deepcopy(made_of(own_model(options.model), options.model, seed))
    return nets.adapt(model, options.first, options.last, MapLayout(), spec.shape, len(spec.classes))


def made_of(given: Any, name: str, seed: int) -> nn.Module:
    """Return a model that was given, or the one that a function or class makes with weights that the seed draws."""
    with seeded(seed, "init"):
        model = given if isinstance(given, nn.Module) else user_files.call(given, name, "model")
    if not isinstance(model, nn.Module):
        raise BadRequest(f"--model {name} gives {a_kind(type(model))}, not a torch.nn.Module")
    return model


def own_model(name: str) -> Any:
    """Return the model of a Python file or an object that was handed over, or the function or class that makes it."""
    if handed.is_object(name):
        return handed.find("model", name)

    def is_class(value: Any) -> bool:
        return isinstance(value, type) and issubclass(value, nn.Module)

    def is_any(value: Any) -> bool:
        return isinstance(value, nn.Module) or is_class(value) or inspect.isfunction(value)

    return user_files.load_one(name, "model", [is_any], "model, nor a function or class that makes one")


def model_sha256(name: str | None) -> str | None:
    """Return the SHA-256 of a user's own model, that of seed 0: its layers and its weights; None where it is not here.

    What a layer computes is not part of it.
    """
    if name is None or not user_files.is_there(name, "model"):
        return None
    model = made_of(own_model(name), name, 0)
    digest = hashlib.sha256(repr(model).encode())
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def build_learner(
    config: Config, stream: Stream | Spec, seed: int, model: nets.Backbone | None = None, device: str | None = None
) -> Learner:
    """Return a learner for a stream or, without tasks, for images of a spec; raise BadRequest if it cannot be had here.

    It has the configuration's net unless it is given a `model`, and lives on the configuration's device unless it is
    given another `device`.
    """
    spec, options = stream.spec if isinstance(stream, Stream) else stream, config.options
    options.check_machine(with_data=False)
    method = methods.find(options.method)
    if model is None and options.model is not None:
        model = build_model(options, spec, seed)
    elif model is None and nets.is_library_net(config.net.net):
        model = nets.build_library_net(
            *(config.net, spec.shape, len(spec.classes), seed, options.weights, options.pretrained),
            maps=(options.first, options.last),
            as_vit=method.takes_prompts,
        )
    elif model is None:
        model = nets.build(config.net, spec.shape[0], len(spec.classes), seed, options.weights)
    if model.pixels is not None:  # pretrained weights expect the pixels they were trained on
        mean, std = model.pixels.of(spec.shape[0])
        spec = dataclasses.replace(spec, mean=mean, std=std)
    elif isinstance(config.net, nets.ViTConfig):
        spec = dataclasses.replace(spec, mean=config.net.pixel_mean, std=config.net.pixel_std)
    learner = method(model, spec, config.learner, config.chosen, seed=seed, device=one(device or options.device))
    if isinstance(stream, Stream):
        learner.check_tasks(len(stream.tasks))
        check_last_batches(learner, stream)
    for each in learner.every_model:
        nets.compute_in(each, spec.shape, options.precision, options.compile and method.compiles)
    return learner


def check_last_batches(learner: Learner, stream: Stream) -> None:
    """Raise BadRequest if the last batch of a task, which may be smaller than the others, is too small to learn from.

    A run is thus refused before its first step, and does not end at the last one of a task.
    """
    for task in range(len(stream.tasks)):
        try:
            learner.check_rows(stream.last_batch(task))
        except BadBatch as error:
            raise BadRequest(
                f"task {task} of {stream.name} ends in a batch of {stream.last_batch(task)}, and {error}; leave out "
                "--no-drop-last or raise --batch"
            ) from None


def make_stream(data: str, seed: int = 0, **options: Unpack[StreamOptions]) -> Stream:
    """Return a stream by name: `make_stream("fashion-sticker", seed=1, correlation=0.9)`.

    Args:
        data: Name of the stream.
        seed: Seed of its order and of whatever else it draws.
        **options: Options of the stream, and `limit` and `root`.

    Returns:
        The stream, with its test sets.

    Raises:
        BadRequest: If the name or an option is not known, or the data are not on this machine.
    """
    known = [path for path in flatten(configure(data)) if path.startswith("stream.") or path in ("limit", "root")]
    for name in options:
        if not ending_in(name, known):  # options of the net or the learner would have no effect here
            short = [path.rpartition(".")[2] for path in known]
            raise BadRequest(f"stream {data} has no option {name}; it has {', '.join(short)}{meant(name, short)}")
    return build_stream(configure(data, **options), seed)


def make_learner(
    method: str,
    stream: Stream | Spec,
    debias: str | None = "droptop",
    seed: int = 0,
    *,
    model: nn.Module | None = None,
    first: str | None = None,
    last: str | None = None,
    grid: tuple[int, int] | None = None,
    channels_last: bool | None = None,
    **options: Unpack[LearnerOptions],
) -> Learner:
    """Return a learner by name: `make_learner("er", stream, debias="none", lr=0.1)`.

    On a GPU it leaves torch's switches for TF32 as they are, since they hold for all models of the process: by
    `torch.backends.cuda.matmul.allow_tf32` and `torch.backends.cudnn.allow_tf32` you choose between fp32 and tf32.

    Args:
        method: Name of the learner, or a Python file that defines one.
        stream: The stream it will learn, droptop's or your own; or a Spec, to learn without tasks.
        debias: What to debias with: names or Python files, joined by +, or "none", as is None.
        seed: Seed of its weights and of everything it draws.
        model: Your own model, trained from the weights it has; without one, the net that the options name is built.
        first: Name of the submodule that gives the first map of the model, or of a net of timm or torchvision, as
            `droptop.attach` takes it.
        last: Name of the submodule that gives the last map.
        grid: Height and width of the maps, where their shape does not say.
        channels_last: Whether the maps have their channels last, where their shape does not say.
        **options: Options of the net, the learner and the debiasing, by name or path.

    Returns:
        The learner, on the device that the options name.

    Raises:
        BadRequest: If a name, an option or the model does not fit.
    """
    if not isinstance(stream, Stream | Spec):
        raise BadRequest(f"a learner is made for a stream, as make_stream gives one, or for a Spec, not for {stream!r}")
    name = stream.name if isinstance(stream, Stream) else "your own"
    kind = stream_kind_of(stream)
    if model is None:
        if (first, last) != (None, None) and not nets.is_library_net(str(options.get("net"))):
            raise BadRequest(f"--model takes the model that first and last name the submodules of, not {model}")
        return build_learner(configure(name, method, debias, kind, first=first, last=last, **options), stream, seed)
    config = configure(name, method, debias, kind, **options)
    config.check_model_options((resolve(option, config) for option in options), given=True)
    spec = stream.spec if isinstance(stream, Stream) else stream
    backbone = nets.adapt(model, first, last, MapLayout(grid, channels_last), spec.shape, len(spec.classes))
    return build_learner(config, stream, seed, backbone)


def stream_kind_of(stream: Stream | Spec) -> StreamKind:
    """Return the kind of a stream, by its name; a kind with the defaults for a Spec or a name that is not known."""
    if isinstance(stream, Spec):
        return StreamKind(refuse_spec, StreamConfig, {}, "images of a spec")
    try:
        return find(stream.name)
    except BadRequest:
        return StreamKind(lambda *_: stream, type(stream.config), {}, "your own")


def refuse_spec(*_: Any) -> Stream:
    """Raise BadRequest: a spec has no images to make a stream of."""
    raise BadRequest("a spec alone is no stream")
