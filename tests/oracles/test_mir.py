"""MIR (Aljundi et al., 2019): of some candidates, replay those whose loss a step on the stream would raise most.

The virtual step is plain SGD, on unmasked, unaugmented images; BatchNorm normalises by each batch and learns nothing.
"""

import pytest
import torch

from .slow import Row, SlowLearner, agree, batches, cross_entropy, fast, mean


class SlowMIR(SlowLearner):
    def retrieve(self, arrived: list[Row]) -> list[Row]:
        candidates = self.sample(self.config.candidates, arrived)
        net = self.nets[0]
        loss = mean(self.losses(net, arrived))
        gradients = torch.autograd.grad(loss, list(net.weights.values()))
        stepped = {
            name: weight.detach() - self.config.lr * gradient
            for (name, weight), gradient in zip(net.weights.items(), gradients)
        }
        before, after = self.losses(net, candidates), self.losses(net.with_weights(stepped), candidates)
        # Stream rows that stand in come last; which of them is taken, is left to torch's choice among equals.
        rise = [(b - a).item() if row["there"] else -torch.inf for row, a, b in zip(candidates, before, after)]
        return [candidates[place] for place in torch.tensor(rise).topk(self.config.memory_batch).indices]

    def losses(self, net, rows: list[Row]) -> list[torch.Tensor]:
        logits = net.logits(torch.stack([self.normalise(row["x"]) for row in rows]), "batch")
        return [cross_entropy(output, row["y"]) for output, row in zip(logits, rows)]


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"iterations": 2}])
def test_mir(options):
    learner = fast("mir", memory=12, candidates=8, memory_batch=3, **options)
    agree(learner, SlowMIR(learner), batches(12))


def test_mir_with_droptop():
    """The virtual step is not masked."""
    learner = fast("mir", {}, memory=12, candidates=8, memory_batch=3, augment="none")
    agree(learner, SlowMIR(learner), batches(8))
