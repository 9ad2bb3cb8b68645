"""ER-ACE: asymmetric cross-entropy (Caccia et al., 2022). New classes may not push old ones away.

Stream samples compete only among the classes of their own batch, memory samples among all; the two means are added.
Cost of a step beyond ER's: nothing.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.learner import Joined, Learner


class ERACE(Learner):
    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        arrived, replayed = logits.split([batch.stream, len(logits) - batch.stream])
        labels = batch.y[: batch.stream]
        present = torch.zeros_like(self.seen).index_fill(0, labels, True)
        return F.cross_entropy(arrived.masked_fill(~present, -1e9), labels) + F.cross_entropy(
            replayed, batch.replayed["y"]
        )
