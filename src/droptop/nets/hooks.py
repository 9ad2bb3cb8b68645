"""Two places in anybody's model, by the names of its submodules: where the first map comes out, and where the last.

    taps = MapHooks(model, first="maxpool", last="layer4")
    with taps.installed(), taps.changing(lambda first, last: first * mask(last())):
        logits = model(x)

While the model is in training mode, `model(x)` then runs twice: first the attention pass, which gives the last map and
leaves no trace (no gradient, no random number, no running statistics), then the real one, in which the first map is
changed. The attention pass goes to the end of the model: leaving it after the last map would take an exception through
code that may not expect one, and what follows is a head. Hooks that others put on submodules see both passes, the real
one last.
"""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from droptop.errors import BadRequest
from droptop.nets.backbone import AttentionNorm, Change, untracked
from droptop.nets.map_layout import MapLayout, tensor_of, with_tensor


def submodule(model: nn.Module, option: str, name: str) -> nn.Module:
    """A submodule by name; a name that is not there is answered with those that are like it."""
    modules = dict(model.named_modules())
    if name and name in modules:
        return modules[name]
    close = difflib.get_close_matches(name, modules, 3, 0.5) or [child for child, _ in model.named_children()]
    raise BadRequest(
        f"{option} takes the name of a submodule, not {name!r}: {type(model).__name__} has {', '.join(close[:8])}"
    )


@contextmanager
def attention_mode(model: nn.Module, norm: AttentionNorm) -> Iterator[None]:
    """The model as it predicts, so that nothing in it is drawn or counted; but BatchNorm goes by the batch, as in
    training, unless told."""
    busy = [
        module
        for module in model.modules()
        if module.training and (norm == "running" or not isinstance(module, _BatchNorm))
    ]
    for module in busy:
        module.training = False
    try:
        with torch.no_grad(), untracked(model):
            yield
    finally:
        for module in busy:
            module.training = True
        torch.clear_autocast_cache()  # weights that were cast without gradient must not serve the real pass


class Hook:
    """A hook that does nothing in a copy of its model: whoever changes maps here does not know of the copy."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return None if self.function is None else self.function(*args)

    def __reduce__(self) -> tuple[type["Hook"], tuple[()]]:
        return Hook, ()


class MapHooks:
    def __init__(self, model: nn.Module, first: str, last: str, layout: MapLayout = MapLayout()) -> None:
        self.model, self.layout, self.names = model, layout, {"first": first, "last": last}
        self.first, self.last = submodule(model, "first", first), submodule(model, "last", last)
        if self.first is self.last:
            raise BadRequest(f"last takes a later submodule than first, not {last!r} as well")
        self.on = False  # is there anything to change? This and the next are all that compiled code asks.
        self.watching = False  # is this an attention pass?
        self.change: Change | None = None
        self.attention_pass: AttentionNorm | None = None  # how the change sees the last map, if it does
        self.seen: dict[str, Tensor] = {}  # what `first` and `last` gave in it
        self.square: bool | None = None  # are the images?
        self.count: int | None = None  # calls of `first` so far, while the model is being called

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Hooks in the model, and out of it again; for models that are not compiled."""
        hooks = self.register()
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def install(self) -> list[RemovableHandle]:
        """Hooks in the model until they are removed, where a compiler finds them too."""
        quiet = map(torch.compiler.disable, (self.begin, self.changed, self.end))
        self.begin, self.changed, self.end = quiet  # type: ignore[method-assign]
        torch.compiler.reset()  # graphs that were compiled before know nothing of new hooks, nor ask
        return self.register()

    def register(self) -> list[RemovableHandle]:
        return [
            self.model.register_forward_pre_hook(Hook(self.entered), with_kwargs=True),
            self.first.register_forward_hook(Hook(self.at_first)),
            self.last.register_forward_hook(Hook(self.at_last)),
            self.model.register_forward_hook(Hook(self.left)),
        ]

    @contextmanager
    def changing(self, change: Change, attention_pass: AttentionNorm | None = "batch") -> Iterator[None]:
        """Changes the first map of whatever passes through the model meanwhile, if the model is training."""
        before = self.on, self.change, self.attention_pass
        self.on, self.change, self.attention_pass = True, change, attention_pass
        try:
            yield
        finally:
            self.on, self.change, self.attention_pass = before
            self.seen, self.count = {}, None  # an error may have come before `left`

    # -- Hooks: the part that is compiled into the model's graph, and only asks ------------------------------------

    def entered(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self.on and self.model.training:
            self.begin(module, args, kwargs)

    def at_first(self, module: nn.Module, args: Any, output: Any) -> Any:
        if self.watching:
            self.keep("first", output)
        return self.changed(output) if self.on and self.model.training else None

    def at_last(self, module: nn.Module, args: Any, output: Any) -> None:
        if self.watching:
            self.keep("last", output)

    def left(self, module: nn.Module, args: Any, output: Any) -> None:
        if self.on and self.model.training:
            self.end()

    # -- And the part that is not ----------------------------------------------------------------------------------

    def begin(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """The attention pass, on a copy of the images: a model may write into what it is given."""
        if module is not self.model:
            raise BadRequest(
                "a model in nn.DataParallel cannot be debiased, since its replicas would share one state: "
                "take DistributedDataParallel"
            )
        self.count, self.square = 0, squares(*args, *kwargs.values())
        if self.attention_pass:
            with attention_mode(self.model, self.attention_pass):
                self.watch(*map(_copied, args), **{name: _copied(value) for name, value in kwargs.items()})

    def watch(self, *args: Any, **kwargs: Any) -> None:
        """Runs the model to see what `first` and `last` give."""
        self.seen, self.watching, self.square = {}, True, squares(*args, *kwargs.values())
        try:
            self.model.forward(*args, **kwargs)
        finally:
            self.watching = False
        for option in self.names.keys() - self.seen.keys():
            raise BadRequest(f"{option}: model(x) does not run through {self.names[option]!r}")
        if next(iter(self.seen)) == "last":
            raise BadRequest(
                "last takes a later submodule than first: model(x) runs through "
                f"{self.names['last']!r} before {self.names['first']!r}"
            )

    def keep(self, option: str, output: Any) -> None:
        """A copy: what follows may write into its input."""
        self.seen[option] = tensor_of(output, self.names[option]).clone()

    def changed(self, output: Any) -> Any:
        """What `first` gave, with another map in it."""
        name = self.names["first"]
        if self.count is None:
            raise BadRequest("there are labels for a model that is not called: call model(x), not one of its methods")
        if self.count:
            raise BadRequest(f"first: model(x) runs through {name!r} more than once")
        assert self.change is not None
        self.count += 1
        first, back = self.layout.map_in(tensor_of(output, name), name, self.square)
        return with_tensor(output, back(self.change(first, self.last_map)))

    def last_map(self) -> Tensor:
        """The one that was seen, its tokens laid out as the first one's are."""
        first, _ = self.layout.map_in(self.seen["first"], self.names["first"], self.square)
        return self.layout.like(first).map_in(self.seen["last"], self.names["last"], self.square)[0]

    def end(self) -> None:
        count, self.seen, self.count = self.count, {}, None
        if count == 0:
            raise BadRequest(f"first: model(x) does not run through {self.names['first']!r}")


def squares(*args: Any) -> bool | None:
    """Are the images square that a model is called with? None where there are none to be seen."""
    shapes = [value.shape for value in args if isinstance(value, Tensor) and value.dim() == 4]
    return shapes[0][-2] == shapes[0][-1] if shapes else None


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
