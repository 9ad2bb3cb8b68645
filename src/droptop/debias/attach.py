"""Debiasers in any model, by the names of two of its submodules; the loop stays yours.

    layer = droptop.attach(model, first="maxpool", last="layer4", classes=10, gamma=5.0)
    for x, y in batches:                         # stream and memory samples, joined
        with layer.labels(y):
            loss = F.cross_entropy(model(x), y)  # debiased; without labels or in eval mode the model is as it was
        loss.backward(); ...
        layer.adjust(memory_x, memory_y)         # every p-th call: is it better to drop more, or less?

DropTop is the default; `debias="droptop+mixstyle"` takes others beside it or in its place. Members that act elsewhere
take more calls: `layer.see(x, y)` before x is augmented and `logits = layer.logits(logits)` before the loss (`poe`),
`x = layer.images(x)` before x is normalised, and `loss = layer.penalised(loss, logits, y)`.

`first` is the submodule whose output is the first map: the end of the stem, after its norm and activation (`maxpool` of
a ResNet, `stem` of timm's ConvNeXt, `patch_embed` of its ViT). `last` gives the last map: the last block or stage.
`nets/map_layout.py` says what a map may look like, `nets/hooks.py` what a pass costs and leaves behind.

compile     before or after: `torch.compile(model)` breaks its graph at the model's entry and end and at `first`, and
            only while there are labels; the attention pass runs eagerly. `fullgraph=True` is an error then.
copies      of the model (deepcopy, pickle) are plain models; a copy of the layer comes with a copy of the model.
recomputing (activation checkpointing) only after `first`: in the backward pass there are no labels.
parallel    in DistributedDataParallel every process has its own layer, labels, memory and intensities (give each its
            own seed). nn.DataParallel is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from droptop import array_checks
from droptop.debias import DropTop, Family, Trace, View, check_last_map, of_rows
from droptop.debias.attach_options import chosen
from droptop.errors import BadBatch, BadRequest, require
from droptop.nets.backbone import evaluating
from droptop.nets.hooks import Hook, MapHooks
from droptop.nets.map_layout import MapLayout
from droptop.rng import generator
from droptop.system import user_files
from droptop.typed_options import DebiasOptions

CHUNK = 250  # memory samples per forward pass of the probe


def attach(
    model: nn.Module,
    first: str,
    last: str,
    classes: int,
    debias: str = "droptop",
    *,
    seed: int = 0,
    classify: Callable[[Tensor], Tensor] | None = None,
    grid: tuple[int, int] | None = None,
    channels_last: bool | None = None,
    **options: Unpack[DebiasOptions],
) -> "Attached":
    """Put debiasers behind the submodule `first`.

    Args:
        model: Any model, compiled or not.
        first: Name of the submodule that gives the first map.
        last: Name of the submodule that gives the last map.
        classes: Number of classes.
        debias: The debiasers, as `--debias` names them; all but `rsc`, which looks at logits ahead of the model.
        seed: Decides the random draws of the layer.
        classify: Gives the logits of memory samples, where `model(x)` gives something else.
        grid: Rows and columns of the tokens, where these are not a square.
        channels_last: Whether maps are (B, h, w, c), where their shape does not tell.
        **options: Settings of the debiasers, such as gamma=5.0 or period=3; `**{"mixstyle.share": 0.5}` where two have
            one of that name.

    Returns:
        The layer, which works inside of `with layer.labels(y)`.

    Raises:
        BadRequest: If there is no such submodule, debiaser or option, or the model has a layer already.
    """
    return Attached(model, first, last, classes, seed, classify, MapLayout(grid, channels_last), debias, dict(options))


class Attached:
    """Debiasers in a model of the user's: what `attach` returns."""

    def __init__(
        self,
        model: nn.Module,
        first: str,
        last: str,
        classes: int,
        seed: int,
        classify: Callable[[Tensor], Tensor] | None,
        layout: MapLayout,
        debias: str,
        options: dict[str, Any],
    ) -> None:
        if not isinstance(model, nn.Module):
            raise BadRequest(f"attach takes an nn.Module, not {type(model).__name__}")
        require(classes >= 1, "classes", "a number from 1", classes)
        self.model, self.classes, self.seed, self.classify = model, classes, seed, classify
        self.name, self.options = debias, options
        inner = unwrapped(model)
        if any(isinstance(hook, Hook) and hook.function is not None for hook in inner._forward_hooks.values()):
            raise BadRequest(f"this {type(inner).__name__} has a debiasing layer already: remove() it first")
        self.map_hooks = MapHooks(inner, first, last, layout)
        self.device = device_of(inner)
        user_files.named(debias)
        self.debias = Family(chosen(debias, options), classes, generator(seed, "debias", device=self.device))
        self.steps = 0  # counted by `tick`
        self.waiting: Tensor | None = None  # a generator state for a device that the model has not been moved to yet
        self.checked = False  # was the size of the last map checked?
        self.shown: int | None = None  # samples of the batch that `see` was shown and `logits` has not taken yet
        self.hooks = self.map_hooks.install()

    def __repr__(self) -> str:
        where = " and ".join(map(repr, self.map_hooks.names.values()))
        settings = "".join(f", {name}={value}" for name, value in self.options.items())
        model = f"{where} of {type(self.map_hooks.model).__name__}"
        return f"Attached({model}, {self.name}{settings}, {self.classes} classes, seed {self.seed})"

    def remove(self) -> None:
        """Take the layer out of the model, which is then as it was before `attach`."""
        for hook in self.hooks:
            hook.remove()
        self.hooks = []

    # -- The places ----------------------------------------------------------------------------------------------

    def see(self, x: Tensor, y: Tensor) -> None:
        """Show a training batch to the debiasers that look at it before augmentation, as `poe` does.

        Args:
            x: Images (B, channels, h, w), floating point from 0 to 1: neither augmented nor normalised.
            y: The classes of the samples (B), integers; `logits` then takes the same samples in this order.

        Raises:
            BadBatch: If these are no such images or labels, or not one label per image.
        """
        array_checks.check_augmented(x)
        self.check(y)
        if len(x) != len(y):
            raise BadBatch(f"there are {len(x)} images and {len(y)} labels")
        self.follow()
        self.debias.see(x.to(self.device), y.to(self.device, torch.int64))
        self.shown = len(y)

    def images(self, x: Tensor) -> Tensor:
        """Change training images as the debiasers that act on images do; as they are where none does.

        Args:
            x: Images (B, channels, h, w), floating point from 0 to 1: augmented, not yet normalised.

        Returns:
            The changed images.

        Raises:
            BadBatch: If these are no such images.
        """
        array_checks.check_augmented(x)
        self.follow()
        return self.debias.images(x.to(self.device))

    def logits(self, logits: Tensor) -> Tensor:
        """Return the logits of which your loop takes its loss, as the debiasers that act on logits change them.

        Args:
            logits: What the model gave in training (B, classes), of the samples that `see` was shown just before.

        Returns:
            The changed logits; the same ones where no debiaser acts on them.

        Raises:
            BadBatch: If these are no such logits, or `see` was not called since the last time.
        """
        array_checks.check_tensor(logits, "logits")
        if not self.debias.act_on("logits"):
            return logits
        if self.shown is None:
            raise BadBatch(f"{self.name} looks at every batch before augmentation: call layer.see(x, y) first")
        if logits.shape != (self.shown, self.classes):
            given = array_checks.shape_of(logits)
            raise BadBatch(
                f"logits must have shape ({self.shown}, {self.classes}), as layer.see was shown, not {given}"
            )
        self.shown = None
        return self.debias.logits(logits)

    def penalised(self, loss: Tensor, logits: Tensor, y: Tensor) -> Tensor:
        """Return the loss with what the debiasers add to it; as it is where none does.

        Args:
            loss: What your loop minimises.
            logits: What the model gave in training (B, classes).
            y: The classes of the samples (B), integers.

        Returns:
            The loss to minimise.

        Raises:
            BadBatch: If the loss is not one number, or there is not one row of logits per label.
        """
        self.check(y)
        array_checks.check_losses(loss, logits, len(y), self.classes)
        return self.debias.penalised(loss, logits, y.to(logits.device, torch.int64))

    @contextmanager
    def labels(self, y: Tensor) -> Iterator[None]:
        """Debias what the model is called with inside of the `with` block, while it is in training mode.

        Args:
            y: The classes of the samples (B), integers.

        Raises:
            BadBatch: If these are no labels, or not as many as the model is given samples.
        """
        if not self.hooks:
            raise BadRequest("this debiasing layer was removed from its model")
        self.check(y)
        self.follow()
        y = y.to(self.device, torch.int64)
        with self.map_hooks.changing(lambda first, last: self.changed(first, last, y), self.debias.attention_pass):
            yield

    def check(self, y: Tensor) -> None:
        """Raise BadBatch for what are no labels; on a GPU their values are not read, since that would wait for it."""
        array_checks.check_labels(y, classes=self.classes, any_integer=True)

    def changed(self, first: Tensor, last: Callable[[], Tensor], y: Tensor) -> Tensor:
        """Return the first map as the debiasers change it; raise BadBatch if it has not one sample per label."""
        if len(first) != len(y):
            raise BadBatch(
                f"{self.map_hooks.names['first']!r} gives maps of {len(first)} samples, but there are {len(y)} labels"
            )
        droptop = self.debias.droptop
        if droptop is not None and droptop.attention_pass and not self.checked:
            check_last_map(droptop.config, last().shape[2:].numel(), "let last name an earlier submodule")
            self.checked = True
        return self.debias.first_map(first, View(of_rows(last), None), y)

    @property
    def droptop(self) -> DropTop:
        """Return DropTop; raise BadRequest where it is not among the debiasers."""
        if self.debias.droptop is None:
            raise BadRequest(f"this layer debiases by {self.name}, which has no intensities and no masks")
        return self.debias.droptop

    @property
    def trace(self) -> Trace:
        """Return attention and mask (B, h, w) of the last batch that was debiased."""
        return self.droptop.last

    # -- Adapting ------------------------------------------------------------------------------------------------

    @property
    def kappa(self) -> Tensor:
        """Return the intensity of every class, in percent of the first map."""
        return self.droptop.intensity.kappa

    def adjust(self, x: Tensor, y: Tensor) -> bool:
        """Count a step and, if it is the last of a period, adapt the intensities by the loss on the memory.

        Args:
            x: All images of the memory, unaugmented, as the model takes them.
            y: Their labels.

        Returns:
            Whether the intensities were adapted: every p-th call.

        Raises:
            BadBatch: If these are no labels, or not one per image; the step is not counted.
        """
        self.check_memory(x, y)  # at every step, so that a mistake is not first seen at the end of a period
        if due := self.tick():
            self.probe(x, y)
        return due

    def tick(self) -> bool:
        """Count a step.

        Returns:
            Whether `probe` is due now.
        """
        self.steps += 1
        return self.debias.adapts and self.steps % self.droptop.config.intensity.period == 0

    def probe(self, x: Tensor, y: Tensor) -> None:
        """End a period: record the loss of every class on memory samples, unmasked, in eval mode.

        Args:
            x: All images of the memory, unaugmented, as the model takes them.
            y: Their labels.
        """
        self.check_memory(x, y)
        array_checks.check_finite(x, "images of the memory")
        self.follow()
        intensity, classify = self.droptop.intensity, self.classify or self.map_hooks.model
        if intensity.config.probe:
            held = torch.ones(len(y), dtype=torch.bool, device=self.device)
            rows = intensity.probed(held, self.debias.generator)
            x, y = x[rows.to(x.device)], y[rows.to(y.device)]
        y = y.to(self.device, torch.int64)
        with evaluating(self.map_hooks.model):
            parts = x.split(CHUNK) if len(x) else ()  # an empty memory has nothing to classify
            logits = (classify(images.to(self.device)) for images in parts)
            losses = intensity.mean_losses(logits, y.split(CHUNK), torch.ones_like(y, dtype=torch.bool))
        intensity.record(losses)

    def check_memory(self, x: Tensor, y: Tensor) -> None:
        """Raise BadBatch if the memory's labels are none, or not one per image."""
        self.check(y)
        array_checks.check_tensor(x, "images of the memory")
        if len(x) != len(y):
            raise BadBatch(f"the memory has {len(x)} images and {len(y)} labels")

    # -- State ---------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Move to the device of the model. A generator cannot move: a new one of the same seed takes its place."""
        device = device_of(self.map_hooks.model)
        if device != self.device:
            self.device = device
            self.debias.move(generator(self.seed, "debias", device=device))
            self.draw_from(self.waiting)

    def state_dict(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on, besides the model.

        Returns:
            Intensities, histories, generator state and step count by name.
        """
        self.follow()
        return {
            **self.debias.state_dict(),
            "generator": self.debias.generator.get_state(),
            "steps": torch.tensor(self.steps),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Copy a state into the layer.

        Args:
            state: What `state_dict` gave, on any device.

        Raises:
            BadRequest: If the state is that of a layer with other settings.
        """
        current = self.state_dict()
        state = {of_this_version(name): value for name, value in state.items()}
        names = current.keys() - {"generator"}  # the length of whose state differs from device to device
        shapes = [name for name in names if name in state and current[name].shape != state[name].shape]
        if wrong := sorted(current.keys() ^ state.keys()) or shapes:
            raise BadRequest(f"this state is of another layer: {', '.join(wrong[:5])}")
        with torch.no_grad():
            for name, value in self.debias.state_dict().items():
                value.copy_(state[name])
        self.draw_from(state["generator"])
        self.steps = int(state["steps"])

    def draw_from(self, state: Tensor | None) -> None:
        """Set the generator; a state from another kind of device waits until the model is moved there."""
        fits = state is not None and len(state) == len(self.debias.generator.get_state())
        if fits and state is not None:
            self.debias.generator.set_state(state.cpu())
        self.waiting = None if fits else state

    def __reduce__(self) -> Any:
        """Copy or pickle the layer as one in a copy of the model."""
        names = self.map_hooks.names
        return _rebuilt, (
            self.model,
            names["first"],
            names["last"],
            self.classes,
            self.seed,
            self.classify,
            self.map_hooks.layout,
            self.name,
            self.options,
            bool(self.hooks),
            dict(self.state_dict()),
        )


def _rebuilt(*args: Any) -> Attached:
    *arguments, installed, state = args
    layer = Attached(*arguments)
    layer.load_state_dict(state)
    if not installed:
        layer.remove()
    return layer


def of_this_version(name: str) -> str:
    """Return the name that a tensor has now: before 0.3, DropTop was the only debiaser and had none of its own."""
    return f"droptop.{name}" if name.startswith("intensity.") else name


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model itself, without what `torch.compile` and DistributedDataParallel put around it."""
    if isinstance(model, nn.DataParallel):
        raise BadRequest("a model in nn.DataParallel cannot be debiased: take DistributedDataParallel")
    if isinstance(model, nn.parallel.DistributedDataParallel):
        return unwrapped(model.module)
    inner = getattr(model, "_orig_mod", None)
    return unwrapped(inner) if isinstance(inner, nn.Module) else model


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the first weight; the CPU where there is none."""
    return next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
