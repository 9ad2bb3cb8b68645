"""GSS-greedy (Aljundi et al., 2019): keep samples whose gradients differ, by one backward pass per sample.

A sample's score is its largest cosine with the gradients of some memory batches (0.1 where the memory is empty). In a
full memory, if the gradient of the whole stream batch points away from all of these, each new sample draws a victim by
score, and takes its place with a probability of (victim's score + 1) / (victim's score + 1 + own score + 1).
Gradients are those of unmasked, unaugmented images, BatchNorm in eval mode.
"""

import pytest
import torch
from torch import Tensor

from .slow import Row, SlowLearner, agree, batches, cross_entropy, fast


class SlowGSS(SlowLearner):
    replaced = 0

    def remember(self, arrived: list[Row]) -> None:
        memory, capacity = self.memory, self.config.memory
        directions = self.memory_gradients()
        own = [self.gradient([row]) for row in arrived]
        scores = [largest_cosine(gradient, directions) for gradient in own]
        of_batch = largest_cosine(sum(own), directions)
        clocks = torch.empty(capacity).exponential_(generator=self.random["memory"]).tolist()
        uniform = torch.rand(len(arrived), generator=self.random["memory"]).tolist()
        full = len(memory) == capacity
        held = [row["score"] for row in memory]
        victims = victims_by(held, clocks)[: len(arrived)] if full else []
        for place, (row, score) in enumerate(zip(arrived, scores)):
            new = row | {"score": score}
            if not full:
                if len(memory) < capacity:
                    memory.append(new)  # the rest of a batch that fills the memory is lost
            elif of_batch < 0 and place < len(victims):
                old = held[victims[place]] + 1
                if uniform[place] < old / (old + score + 1):
                    memory[victims[place]] = new
                    self.replaced += 1

    def memory_gradients(self) -> list[Tensor]:
        """The gradients of disjoint random batches; incomplete ones do not count, unless there is no other."""
        count, size = self.config.gradient_batches, self.config.gradient_batch
        slots = self.draw(count * size)
        parts = [slots[start : start + size] for start in range(0, len(slots), size)]
        return [
            self.gradient([self.memory[slot] for slot in part])
            for place, part in enumerate(parts)
            if len(part) == size or place == 0
        ]

    def gradient(self, rows: list[Row]) -> Tensor:
        net = self.nets[0]
        logits = net.logits(torch.stack([self.normalise(row["x"]) for row in rows]), "running")
        loss = sum(cross_entropy(output, row["y"]) for output, row in zip(logits, rows))
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(net.weights.values()))])


def victims_by(scores: list[float], clocks: list[float]) -> list[int]:
    """Order slots as if drawn in proportion to score: first that whose exponential clock rings first, and so on."""
    low, high = min(scores), max(scores)
    rates = [(score - low) / (high - low + 0.01) + 1e-12 for score in scores]
    return sorted(range(len(rates)), key=lambda slot: clocks[slot] / rates[slot])


def largest_cosine(gradient: Tensor, directions: list[Tensor]) -> float:
    """Return 0.1 where the memory is empty."""
    cosines = [(gradient @ other / (gradient.norm() * other.norm())).item() for other in directions]
    return max(cosines, default=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_gss(seed):
    learner = fast("gss", seed=seed, gradient_batches=3, gradient_batch=2)
    slow = SlowGSS(learner)
    agree(learner, slow, batches(14))
    assert slow.replaced > 0


def test_gss_with_a_memory_smaller_than_a_gradient_batch():
    learner = fast("gss", memory=3, gradient_batches=2, gradient_batch=4)
    agree(learner, SlowGSS(learner), batches(10))


def test_gss_with_droptop():
    """Gradients are not masked."""
    learner = fast("gss", {}, gradient_batches=3, gradient_batch=2, augment="none")
    agree(learner, SlowGSS(learner), batches(8))
