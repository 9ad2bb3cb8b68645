"""The attention of a learner to images: the scores of Eq. 4, computed without changing the learner."""

import torch
from torch import Tensor

from droptop.debias import fuse
from droptop.learner import Learner
from droptop.nets import evaluating, last_map, untracked


@torch.no_grad()
def attention_of(learner: Learner, images: Tensor, predicting: bool = False) -> Tensor:
    """Return the attention (N, h, w) to images: the scores that the learner's debiasing layer gives their cells.

    BatchNorm normalises by these images, as in training; where `predicting`, by its running statistics, so that the
    attention to an image does not depend on the others. A learner without scores of its own is given those of Eq. 4.
    """
    model = learner.predictor if predicting else learner.model
    layer = learner.debias.droptop if learner.debias.attention_pass is not None else None
    with evaluating(model) if predicting else untracked(model):
        x = learner.normalise(images.to(learner.device))
        norm = "running" if predicting else (layer.attention_pass if layer is not None else None) or "batch"
        if model.hooked:
            first, last = model.maps(x, norm)
        else:
            first = model.stem(x)
            last = last_map(model, first, *learner.given(model, first, {}), norm=norm)
    return fuse(first, last) if layer is None else layer.score(first, last)
