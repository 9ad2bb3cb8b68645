"""ER-ACE: asymmetric cross-entropy (Caccia et al., 2022). Keeps new classes from displacing old ones.

The cross-entropy of stream samples is over the classes of their batch only, that of memory samples over all classes;
the two means are added.

Cost of a step beyond ER's: nothing.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.learner import Joined, Learner


class ERACE(Learner):
    """ER with another loss."""

    def loss(self, logits: Tensor, batch: Joined) -> Tensor:
        """Compute the asymmetric cross-entropy."""
        arrived, replayed = logits.split([batch.stream, len(logits) - batch.stream])
        labels = batch.y[: batch.stream]
        present = torch.zeros_like(self.seen).index_fill(0, labels, True)
        return F.cross_entropy(arrived.masked_fill(~present, -1e9), labels) + F.cross_entropy(
            replayed, batch.replayed["y"]
        )
