"""NCM: the nearest class mean of frozen features (Mensink et al., 2013), over a whole stream. The least one can do.

    cosine       logit of c = cos(f, m_c)
    euclidean    logit of c = f m_c - |m_c|^2 / 2, the largest where |f - m_c| is least

f are the features of an image, m_c the mean of those of all images of class c so far. A frozen, pretrained ViT needs no
more for 83% on Split CIFAR-100 (Janson et al., 2022; McDonnell et al., 2023, whose code takes cosines).

Cost of a step: one forward of the stream's rows. State: a mean per class.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch.nn.functional as F

from droptop.learner import LearnerConfig
from droptop.methods.frozen import Frozen
from droptop.nets import Backbone
from droptop.nets.heads import Computed
from droptop.types import Spec


@dataclass(frozen=True)
class NCMConfig(LearnerConfig):
    """Hold the settings of NCM."""

    distance: Literal["cosine", "euclidean"] = "cosine"
    """How near a mean is: by the angle to it (cosine) or by the distance (euclidean)."""


class NCM(Frozen):
    """The nearest class mean."""

    config: NCMConfig
    config_type = NCMConfig

    def computed(self, net: Backbone, spec: Spec, config: Any, seed: int) -> Computed:
        return Computed(net, spec.shape, len(spec.classes), unit=config.distance == "cosine")

    def refresh(self) -> None:
        """Compute the classifier of the means so far."""
        means = self.means()
        if self.config.distance == "cosine":
            self.model.weight.copy_(F.normalize(means, dim=1))
        else:
            self.model.weight.copy_(means)
            self.model.bias.copy_(-means.square().sum(1) / 2)
