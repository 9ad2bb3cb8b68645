"""PCR (Lin et al., 2023): every view is compared with the proxy of every view's class, its own among them.

    loss = mean over views i of  - mean over p of log( exp(cos(f_i, w_p) / t) / sum over j of exp(cos(f_i, w_j) / t) )

p are the views of i's class, j all of them; w_j is the weight vector of j's class.
"""

import pytest
import torch
from torch import Tensor

from .slow import Row, agree, batches, fast, mean
from .slow_nets import SlowNet
from .slow_views import SlowInner, SlowViews, cosine


class SlowCosine(SlowInner):
    def head(self, pooled: Tensor) -> Tensor:
        proxies = self["net.linear.weight"]
        return (
            torch.stack([torch.stack([cosine(one, proxy) for proxy in proxies]) for one in pooled]) / self.temperature
        )


class SlowPCR(SlowViews):
    def slow_net(self, model: torch.nn.Module) -> SlowNet:
        net = SlowCosine(model)
        net.temperature = self.config.temperature
        return net

    def loss(self, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        rows, losses = arrived + replayed, []
        there = self.counting(rows)
        for i in there:
            likeness = {j: logits[i, rows[j]["y"]].exp() for j in there}
            same = [j for j in there if rows[j]["y"] == rows[i]["y"]]
            losses.append(-mean([(likeness[p] / sum(likeness.values())).log() for p in same]))
        return mean(losses)


SMALL = {"jitter": 0.0, "augment": "crop-flip"}
SETTINGS = {
    "default": {},
    "temperature": {"temperature": 0.5, "average": True},
    "separate": {"replay_forward": "separate"},
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_pcr(settings):
    learner = fast("pcr", **SMALL | SETTINGS[settings])
    agree(learner, SlowPCR(learner), batches(6))


def test_pcr_with_droptop():
    learner = fast("pcr", {}, **SMALL | {"augment": "none"})
    agree(learner, SlowPCR(learner), batches(6))
