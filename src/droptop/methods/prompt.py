"""The base of prompt learners: a frozen ViT, a trained head, and prompts chosen by the frozen features of an image.

The query of a sample is the class token that the frozen model gives for its unaugmented, unmasked image, without
prompts. It never changes, so it is computed once, when the sample arrives, and the memory keeps it. A checkpoint holds
the SHA-256 of the frozen weights instead of the weights. Gradients are clipped, the optimiser is Adam.

The code that the paper follows for both learners (JH-LEE-KR/dualprompt-pytorch) does more that the paper does not
mention: `--preset as-published` has all of it but for two things. It leaves the classes of other tasks out of the loss,
which cannot be where samples of other tasks are replayed; and it augments by `--augment crop-resize --crop-area 0.08`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from droptop.debias import Chosen
from droptop.errors import require
from droptop.learner import Joined, Learner, LearnerConfig
from droptop.memory import Rows
from droptop.nets import Backbone, ViT, ViTConfig
from droptop.nets.prompts import Prompted
from droptop.optim import Adam
from droptop.rng import seeded
from droptop.types import Spec


@dataclass(frozen=True)
class PromptConfig(LearnerConfig):
    """Hold the settings of every prompt learner."""

    preset: Literal["paper", "as-published", "memory-by-method", "tuned"] = "paper"  # type: ignore[assignment]
    """Several options together: those of the paper (paper), those of the code that it follows (as-published), the
    paper's with a memory of 200 for L2P and 500 for DualPrompt on every stream (memory-by-method), or those that
    `droptop tune` found (tuned). Options that you set win over it."""
    lr: float = 0.05
    """Learning rate of Adam."""
    lr_scale: Literal["none", "batch/256"] = "none"
    """Multiply the learning rate by --batch / 256, as the code that the paper took it from does, or not (none)."""
    beta_1: float = 0.9
    """Share of the mean gradient that Adam keeps at each step."""
    beta_2: float = 0.999
    """Share of the mean squared gradient that Adam keeps at each step."""
    renew_optimizer: bool = False
    """Start Adam anew in each task, without what it has gathered."""
    clip: float = 1.0
    """Largest length of the gradient; a longer one is cut to it."""
    memory: int = 200
    """Samples that the replay memory holds."""
    query_image: Literal["plain", "augmented"] = "plain"
    """Image that the query is computed from: plain (as it arrived, once) or augmented (anew at every step)."""
    batch_choice: bool = False
    """Give all samples of a batch the prompts that most of them choose, also when predicting: test samples then help
    each other."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.momentum == 0, "momentum", "0 with Adam, which has --beta-1", self.momentum)
        for name in ("beta_1", "beta_2"):
            require(0 <= getattr(self, name) < 1, name, "a number from 0 and below 1", getattr(self, name))
        require(0 < self.clip < float("inf"), "clip", "a length above 0", self.clip)


class Prompt(Learner):
    """The base of methods that learn prompts.

    A method defines `prompts` (what is learned), `prefixes` (how it reaches the trunk) and `pull` (what draws keys to
    queries).
    """

    config: PromptConfig
    config_type = PromptConfig
    net_type = ViTConfig
    takes_prompts = True
    preset = {"gamma": 2.0, "kappa_0": 1.0, "lr": 0.05}
    named_presets = {
        "paper": {},
        "as-published": {
            "pull": 1.0,
            "lr_scale": "batch/256",
            "renew_optimizer": True,
            "batch_choice": True,
            "query_image": "augmented",
        },
    }
    model: Prompted

    def __init__(
        self,
        model: ViT,
        spec: Spec,
        config: PromptConfig,
        debias: Sequence[Chosen] = (),
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        with seeded(seed, "init", "prompts"):
            prompted = Prompted(model, self.prompts(model, config))
        self.width = model.width
        super().__init__(prompted, spec, config, debias, seed=seed, device=device)

    @classmethod
    def presets(cls, stream: dict[str, Any]) -> dict[str, Any]:
        """Give the default options: the stream's, without those for a ResNet, and with the paper's smaller memories.

        A memory of 500 becomes 200, one of 2,000 becomes 500.
        """
        kept = {name: value for name, value in stream.items() if name not in ("width", "stem")}
        return kept | cls.preset | {"memory": 500 if stream.get("memory", 500) >= 2000 else 200}

    def prompts(self, vit: ViT, config: Any) -> nn.Module:
        """Make a module of prompts, keys and the counter `usage`, with initial values from torch's global generator."""
        raise NotImplementedError

    def prefixes(self, prompts: Any, query: Tensor, rows: Rows) -> dict[int, Tensor]:
        """Return every sample's prefixes, by block."""
        raise NotImplementedError

    def pull(self, prompts: Any, rows: Rows) -> Tensor:
        """Return the similarity of queries and keys, which training increases; also count which prompts are chosen."""
        raise NotImplementedError

    # -- Queries -------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def query(self, model: Backbone, first: Tensor) -> Tensor:
        """Return the queries (B, width) of samples by their first map."""
        return model.trunk(first).pooled

    def arrive(self, x: Tensor, y: Tensor) -> Rows:
        """Add the query of each sample, if it is that of the plain image."""
        rows = super().arrive(x, y)
        if self.config.query_image == "plain":
            with torch.no_grad():
                rows["query"] = self.query(self.model, self.model.stem(self.normalise(x)))
        return rows

    def columns(self) -> Rows:
        """Keep the query of a sample, too, if it is that of the plain image."""
        kept = {"query": torch.zeros(self.width)} if self.config.query_image == "plain" else {}
        return super().columns() | kept

    def given(self, model: Backbone, first: Tensor, rows: Rows) -> tuple[Any, ...]:
        """Give the trunk the prefixes of each sample."""
        query = rows["query"] if "query" in rows else self.query(model, first)
        return (self.prefixes(model.prompts, query, rows),)

    @property
    def independent(self) -> bool:
        return not self.config.batch_choice

    def forward(self, model: Backbone, images: Tensor, batch: Joined, direction: int) -> Tensor:
        """Run the forward pass, with the queries of the augmented images where the plain ones are not used."""
        if "query" not in batch.rows:
            with torch.no_grad():
                batch.rows["query"] = self.query(model, model.stem(images))
        return super().forward(model, images, batch, direction)

    # -- Learning ------------------------------------------------------------------------------------------------

    def enter(self, task: int) -> None:
        """Make Adam anew where a task begins, if so configured; it stays so if the step then diverges."""
        if self.config.renew_optimizer and task != self.clock["task"]:
            self.optimizer.renew()

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Learn from a batch, at a learning rate that may depend on its size."""
        if self.config.lr_scale == "batch/256":
            self.optimizer.param_groups[0]["lr"] = self.config.lr * len(x) / 256
        return super().step(x, y)

    def objective(self, model: Backbone, logits: Tensor, batch: Joined) -> Tensor:
        """Subtract the pull of keys to queries from the loss."""
        return super().objective(model, logits, batch) - self.pull(model.prompts, batch.rows)

    def clip(self, weights: list[nn.Parameter], norm: Tensor) -> None:
        nn.utils.clip_grads_with_norm_(weights, self.config.clip, norm)

    def make_optimizer(self, weights: list[nn.Parameter]) -> Adam:
        config = self.config
        return Adam(weights, config.lr, (config.beta_1, config.beta_2), config.weight_decay)

    def report(self) -> dict[str, Any]:
        usage = self.model.prompts.usage
        assert isinstance(usage, Tensor)
        return {"prompts": usage.tolist()}
