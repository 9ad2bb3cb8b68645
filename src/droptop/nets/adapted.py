"""Any model as a backbone for learners, by the names of two of its submodules.

    learner = droptop.make_learner("er", stream, model=resnet18(num_classes=10), first="maxpool", last="layer4")

The learner trains this very model, from the weights that it has, and from then on decides its mode (train or eval).
The model must give one logit per class and draw nothing at random: what dropout draws is not in the state of a learner,
which could not resume exactly.
"""

from typing import Any

import torch
from torch import Tensor, nn

from droptop.errors import BadRequest
from droptop.nets.backbone import AttentionNorm, Backbone, Change, Features, untracked
from droptop.nets.hooks import MapHooks, attention_mode
from droptop.nets.map_layout import MapLayout


class Adapted(Backbone):
    """A backbone made of a model that has no stem, trunk and head, but a first and a last map at named submodules."""

    finer = "let last name an earlier submodule"
    hooked = True

    def __init__(self, net: nn.Module, first: str, last: str, layout: MapLayout = MapLayout()) -> None:
        super().__init__()
        self.net, self.names, self.layout = net, (first, last), layout
        self.map_hooks()  # raises BadRequest for names that do not exist

    def map_hooks(self) -> MapHooks:
        """Return new hooks, for one use: hooks that stayed in the model would point to it from a copy of it, too."""
        return MapHooks(self.net, *self.names, self.layout)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def changed(self, x: Tensor, change: Change, attention_pass: AttentionNorm | None) -> Tensor:
        """Return the logits with the first map changed on its way; raise BadRequest if the model is in eval mode."""
        if not self.net.training:
            raise BadRequest(
                "the model is in eval mode, in which nothing is dropped: train() it before it learns on, "
                "and ask learner.predict"
            )
        map_hooks = self.map_hooks()
        with map_hooks.installed(), map_hooks.changing(change, attention_pass):
            return self.net(x)

    def features(self, x: Tensor) -> Features:
        """Return the last map and its mean over the cells, since what the head sees is not known."""
        map_hooks = self.map_hooks()
        with map_hooks.installed():
            map_hooks.watch(x)
        last = map_hooks.last_map()
        return Features(last, last.mean((2, 3)))

    def take_out_classifier(self) -> None:
        """Raise BadRequest: of a model of one's own nobody knows which layer that is."""
        raise BadRequest("this method takes a net that droptop builds: of a model of one's own no features are known")

    def maps(self, x: Tensor, norm: AttentionNorm) -> tuple[Tensor, Tensor]:
        """Return the first and the last map of an attention pass, which leaves no trace in the model."""
        map_hooks = self.map_hooks()
        with map_hooks.installed(), attention_mode(self.net, norm):
            map_hooks.watch(x)
        return map_hooks.first_map(), map_hooks.last_map()


def adapt(
    model: nn.Module, first: str | None, last: str | None, layout: MapLayout, shape: tuple[int, int, int], classes: int
) -> Backbone:
    """Return a model as a backbone for images of a shape; a `Backbone` is one already.

    Raises BadRequest if it does not give one logit per class, or draws at random while it trains.
    """
    if isinstance(model, Backbone):
        backbone = model
    elif first is None or last is None:
        raise BadRequest(
            "model takes first and last beside it: the names of the submodules that give the first map and the last one"
        )
    else:
        backbone = Adapted(model, first, last, layout)
    check_model(backbone, shape, classes)
    return backbone


def check_model(backbone: Backbone, shape: tuple[int, int, int], classes: int) -> None:
    """Raise BadRequest if a model does not give one logit per class of images, or draws at random in training."""
    logits, drew = _try_out(backbone, shape)
    if not isinstance(logits, Tensor) or logits.shape != (2, classes):
        given = tuple(logits.shape[1:]) if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
        raise BadRequest(f"model gives {given} per sample, not {classes} logits, one per class of the stream")
    if drew:
        raise BadRequest(
            "model draws at random while it trains (dropout, stochastic depth), which a learner cannot "
            "resume exactly: set their rates to 0, or take droptop.attach in a loop of your own"
        )


def _try_out(model: Backbone, shape: tuple[int, int, int]) -> tuple[Any, bool]:
    """Return what two black images give in training mode, and whether that drew anything at random."""
    x = torch.zeros(2, *shape, device=next((weight.device for weight in model.parameters()), None))
    on_gpu = [x.device] if x.is_cuda else []

    def states() -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in on_gpu)]

    with torch.random.fork_rng(on_gpu), torch.no_grad(), untracked(model):
        before = states()
        try:
            logits = model.train()(x)
        except (RuntimeError, AssertionError, ValueError) as error:
            raise BadRequest(f"model does not take images of {shape}: {str(error).splitlines()[0]}") from error
        return logits, not all(map(torch.equal, before, states()))
