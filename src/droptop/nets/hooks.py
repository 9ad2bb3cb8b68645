"""Hooks in any model, at two submodules given by name: one gives the first map, the other the last.

    map_hooks = MapHooks(model, first="maxpool", last="layer4")
    with map_hooks.installed(), map_hooks.changing(lambda first, last: first * mask(last())):
        logits = model(x)

While the model is in training mode, `model(x)` then runs twice: first the attention pass, which gives the last map and
leaves no trace (no gradient, no random number, no running statistics), then the real pass, in which the first map is
changed. The attention pass runs to the end of the model: to stop it after the last map, an exception would have to pass
through code that may not expect one, and only a head follows. Hooks that others put on submodules see both passes, the
real one last.

What a hook calls only while maps are seen or changed must not be compiled. `install` therefore hands the hooks these
functions through `torch.compiler.disable`; as a decorator it would import all of torch.compile (two seconds) with this
file.
"""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from droptop.errors import BadRequest
from droptop.nets.backbone import AttentionNorm, Change, untracked
from droptop.nets.map_layout import MapLayout, tensor_of, with_tensor


def submodule(model: nn.Module, option: str, name: str) -> nn.Module:
    """Return a submodule by name; raise BadRequest with similar names if there is none."""
    modules = dict(model.named_modules())
    if name and name in modules:
        return modules[name]
    close = difflib.get_close_matches(name, modules, 3, 0.5) or [child for child, _ in model.named_children()]
    raise BadRequest(
        f"{option} takes the name of a submodule, not {name!r}: {type(model).__name__} has {', '.join(close[:8])}"
    )


@contextmanager
def attention_mode(model: nn.Module, norm: AttentionNorm) -> Iterator[None]:
    """Put the model in eval mode, so that it draws and counts nothing; with "batch", BatchNorm uses the batch still."""
    switched = [
        module
        for module in model.modules()
        if module.training and (norm == "running" or not isinstance(module, _BatchNorm))
    ]
    for module in switched:
        module.training = False
    try:
        with torch.no_grad(), untracked(model):
            yield
    finally:
        for module in switched:
            module.training = True
        torch.clear_autocast_cache()  # weights that were cast without gradient must not serve the real pass


class Hook:
    """A hook that does nothing in a copy of its model: `MapHooks` knows only the model it was made for."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return None if self.function is None else self.function(*args)

    def __reduce__(self) -> tuple[type["Hook"], tuple[()]]:
        return Hook, ()


class MapHooks:
    """See the first and the last map of a model, and change the first one on its way."""

    def __init__(self, model: nn.Module, first: str, last: str, layout: MapLayout = MapLayout()) -> None:
        self.model, self.layout, self.names = model, layout, {"first": first, "last": last}
        self.first, self.last = submodule(model, "first", first), submodule(model, "last", last)
        if self.first is self.last:
            raise BadRequest(f"last takes a later submodule than first, not {last!r} as well")
        self.on = False  # is there anything to change? Compiled code asks only this and the next.
        self.watching = False  # is this an attention pass?
        self.change: Change | None = None
        self.attention_pass: AttentionNorm | None = None  # what BatchNorm uses in it; None without an attention pass
        self.seen: dict[str, Tensor] = {}  # what `first` and `last` gave in it
        self.square: bool | None = None  # are the images square?
        self.count: int | None = None  # calls of `first` so far, while the model is being called

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Put the hooks into a model that is not compiled, and take them out again at the end."""
        hooks = self.register()
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def install(self) -> list[RemovableHandle]:
        """Put the hooks into a model that may be compiled, before or after; return what removes them."""
        torch.compiler.reset()  # graphs that were compiled before do not know of the new hooks
        return self.register(torch.compiler.disable)

    def register(self, eager: Callable[..., Any] = lambda function: function) -> list[RemovableHandle]:
        """Register the hooks; `eager` wraps what they call that must not be compiled."""
        return [
            self.model.register_forward_pre_hook(Hook(partial(self.entered, eager(self.begin))), with_kwargs=True),
            self.first.register_forward_hook(Hook(partial(self.at_first, eager(self.changed)))),
            self.last.register_forward_hook(Hook(self.at_last)),
            self.model.register_forward_hook(Hook(partial(self.left, eager(self.end)))),
        ]

    @contextmanager
    def changing(self, change: Change, attention_pass: AttentionNorm | None = "batch") -> Iterator[None]:
        """Change the first map of whatever passes through the model meanwhile, if the model is in training mode."""
        before = self.on, self.change, self.attention_pass
        self.on, self.change, self.attention_pass = True, change, attention_pass
        try:
            yield
        finally:
            self.on, self.change, self.attention_pass = before
            self.seen, self.count = {}, None  # an error may have come before `left`

    # -- Hooks: compiled into the model's graph, where they only ask whether there is something to do ---------------

    def entered(self, begin: Callable[..., None], module: nn.Module, args: Any, kwargs: Any) -> None:
        if self.on and self.model.training:
            begin(module, args, kwargs)

    def at_first(self, changed: Callable[[Any], Any], module: nn.Module, args: Any, output: Any) -> Any:
        if self.watching:
            self.keep("first", output)
        return changed(output) if self.on and self.model.training else None

    def at_last(self, module: nn.Module, args: Any, output: Any) -> None:
        if self.watching:
            self.keep("last", output)

    def left(self, end: Callable[[], None], module: nn.Module, args: Any, output: Any) -> None:
        if self.on and self.model.training:
            end()

    # -- What they then do, which is not compiled --------------------------------------------------------------------

    def begin(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """Run the attention pass, on a copy of the images: a model may write into its input."""
        if module is not self.model:
            raise BadRequest(
                "a model in nn.DataParallel cannot be debiased, since its replicas would share one state: "
                "take DistributedDataParallel"
            )
        self.count, self.square = 0, squares(*args, *kwargs.values())
        if self.attention_pass:
            with attention_mode(self.model, self.attention_pass):
                self.watch(*map(_copied, args), **{name: _copied(value) for name, value in kwargs.items()})

    def watch(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the model gives, having seen `first` and `last`.

        Raise BadRequest if it reaches not both in this order.
        """
        self.seen, self.watching, self.square = {}, True, squares(*args, *kwargs.values())
        try:
            output = self.model.forward(*args, **kwargs)
        finally:
            self.watching = False
        for option in self.names.keys() - self.seen.keys():
            raise BadRequest(f"{option}: model(x) does not run through {self.names[option]!r}")
        if next(iter(self.seen)) == "last":
            raise BadRequest(
                "last takes a later submodule than first: model(x) runs through "
                f"{self.names['last']!r} before {self.names['first']!r}"
            )
        return output

    def keep(self, option: str, output: Any) -> None:
        """Keep a copy of a map: what follows may write into its input."""
        self.seen[option] = tensor_of(output, self.names[option]).clone()

    def changed(self, output: Any) -> Any:
        """Return the output of `first` with the changed map in it."""
        name = self.names["first"]
        if self.count is None:
            raise BadRequest("there are labels for a model that is not called: call model(x), not one of its methods")
        if self.count:
            raise BadRequest(f"first: model(x) runs through {name!r} more than once")
        assert self.change is not None
        self.count += 1
        first, put_back = self.layout.map_in(tensor_of(output, name), name, self.square)
        return with_tensor(output, put_back(self.change(first, self.last_map)))

    def last_map(self) -> Tensor:
        """Return the last map that was seen, its tokens laid out as those of the first map.

        Raise BadRequest if there was no attention pass.
        """
        if "last" not in self.seen:
            raise BadRequest("a debiaser that asks for the last map says so: needs_last = True")
        return self.layout.like(self.first_map()).map_in(self.seen["last"], self.names["last"], self.square)[0]

    def first_map(self) -> Tensor:
        """Return the first map that was seen in an attention pass."""
        return self.layout.map_in(self.seen["first"], self.names["first"], self.square)[0]

    def end(self) -> None:
        """Forget the maps; raise BadRequest if the model did not run through `first`."""
        count, self.seen, self.count = self.count, {}, None
        if count == 0:
            raise BadRequest(f"first: model(x) does not run through {self.names['first']!r}")


def squares(*args: Any) -> bool | None:
    """Return whether the images that a model is called with are square; None where its arguments show no images."""
    shapes = [value.shape for value in args if isinstance(value, Tensor) and value.dim() == 4]
    return shapes[0][-2] == shapes[0][-1] if shapes else None


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
