"""Prompt learners, the slow way: a frozen ViT whose blocks see prompts, chosen by the frozen features of an image.

The query of a sample is the class token that the frozen ViT gives for the image without prompts. Here it is computed
anew whenever it is needed; droptop keeps it in the memory. The optimiser is Adam, gradients are clipped.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from droptop import Learner
from droptop.debias import Chosen, DropTop
from droptop.methods import METHODS
from droptop.rng import seeded

from .slow import CLASSES, SPEC, Row, SlowLearner, droptop_config, mean
from .slow_nets import Prefix, SlowNet, SlowViT, tiny_vit


class SlowPrompt(SlowLearner):
    """The base of both; a method says which prompts the samples take, and what pulls keys to queries."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self.squares = copy.deepcopy(self.moments)  # moments of the squared gradient, beside those of the gradient

    def slow_net(self, model: nn.Module) -> SlowNet:
        return SlowViT(model)

    def query(self, net: SlowNet, image: Tensor) -> Tensor:
        """Return the class token of a normalised image."""
        with torch.no_grad():
            return net.trunk(net.stem(image[None], "running"), "running")[1][0]

    def arrive(self, image: Tensor, label: int, task: int) -> Row:
        row = super().arrive(image, label, task)
        return row | {"query": self.query(self.nets[0], self.normalise(image))}

    def prepared(self, rows: list[Row], images: list[Tensor]) -> list[Row]:
        """Let each sample ask with its plain image, or with the augmented one."""
        if self.config.query_image == "plain":
            return [row | {"asks": row["query"]} for row in rows]
        return [row | {"asks": self.query(self.nets[0], image)} for row, image in zip(rows, images)]

    def given(self, net: SlowNet, first: Tensor, rows: list[Row]) -> list[dict[int, Prefix]]:
        """Return the prefixes of each sample by block; in prediction and probe, the image itself is asked."""
        with torch.no_grad():
            queries = [
                row["asks"] if "asks" in row else net.trunk(one[None], "running")[1][0] for row, one in zip(rows, first)
            ]
        return self.prefixes(net, queries, rows)

    def prefixes(self, net: SlowNet, queries: list[Tensor], rows: list[Row]) -> list[dict[int, Prefix]]:
        raise NotImplementedError

    def pulls(self, net: SlowNet, rows: list[Row]) -> list[Tensor]:
        """Return the similarity of each sample's query and its keys, which training increases."""
        raise NotImplementedError

    def objective(self, net: SlowNet, logits: Tensor, arrived: list[Row], replayed: list[Row]) -> Tensor:
        rows = arrived + replayed
        return super().objective(net, logits, arrived, replayed) - self.config.pull * mean(self.pulls(net, rows))

    def observe(self, x: Tensor, y: Tensor, task: int) -> float:
        self.lr = self.config.lr * (len(x) / 256 if self.config.lr_scale == "batch/256" else 1)
        return super().observe(x, y, task)

    def update(self, place: int, gradients: dict[str, Tensor]) -> None:
        """Adam (Kingma and Ba, 2015), of gradients that together are no longer than `clip`."""
        config, weights = self.config, self.nets[place].weights
        length = sum((gradient**2).sum() for gradient in gradients.values()).sqrt()
        step = self.updates = getattr(self, "updates", 0) + (place == 0)
        for name, gradient in gradients.items():
            gradient = gradient * min(1.0, config.clip / (length + 1e-6)) + config.weight_decay * weights[name].detach()
            first, second = self.moments[place], self.squares[place]
            first[name] = config.beta_1 * first[name] + (1 - config.beta_1) * gradient
            second[name] = config.beta_2 * second[name] + (1 - config.beta_2) * gradient**2
            unbiased, square = first[name] / (1 - config.beta_1**step), second[name] / (1 - config.beta_2**step)
            weights[name] = (weights[name].detach() - self.lr * unbiased / (square.sqrt() + 1e-8)).requires_grad_()


def cosine(one: Tensor, other: Tensor) -> Tensor:
    return one @ other / (one.norm() * other.norm())


def nearest(similarities: list[float], count: int) -> list[int]:
    return sorted(range(len(similarities)), key=lambda prompt: -similarities[prompt])[:count]


def by_vote(choices: list[list[int]], prompts: int, count: int) -> list[list[int]]:
    """Give all samples of a batch the prompts that most of them choose; equals are left to torch's choice."""
    votes = [sum(prompt in choice for choice in choices) for prompt in range(prompts)]
    return [torch.tensor(votes).topk(count).indices.tolist()] * len(choices)


def prefix_of(pool: Tensor, prompts: list[int], block: int) -> Prefix:
    """Return the prompts that a sample takes as keys and values of a block, one prompt after another."""
    return tuple(torch.cat([pool[prompt, block, part] for prompt in prompts]) for part in (0, 1))


def fast_prompt(method: str, debias: dict[str, Any] | None = None, **options: Any) -> Learner:
    """Droptop's learner with a tiny ViT and few prompts."""
    kind = METHODS[method]
    config = kind.config_type(**{"lr": 0.02, "memory": 9, "memory_batch": 4} | options)
    chosen = [] if debias is None else [Chosen(DropTop, droptop_config(debias))]
    with seeded(0, "net of the oracles"):
        vit = tiny_vit(CLASSES)
    return kind(vit, SPEC, config, chosen, seed=0)
