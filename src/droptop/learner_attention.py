"""Where a learner looks: Eq. 4 of its maps, without a trace in the learner."""

import torch
from torch import Tensor

from droptop.debias import fuse
from droptop.learner import Learner
from droptop.nets import evaluating, last_map, untracked


@torch.no_grad()
def attention_of(learner: Learner, images: Tensor, predicting: bool = False) -> Tensor:
    """Return attention (N, h, w): the scores that the learner's own debiasing layer gives the cells of images.

    BatchNorm goes by these images, as in training, or where `predicting` by its running statistics, which make an
    image's attention the same whatever it is shown beside. Where no layer scores cells, Eq. 4 does.
    """
    model, debias = learner.model, learner.debias
    layer = debias if debias is not None and debias.attention_pass is not None else None
    with evaluating(model) if predicting else untracked(model):
        first = model.stem(learner.normalise(images.to(learner.device)))
        given = learner.given(model, first, {})
        norm = "running" if predicting else layer.attention_pass if layer is not None else "batch"
        last = last_map(model, first, *given, norm=norm or "batch")
    return fuse(first, last) if layer is None else layer.score(first, last)
