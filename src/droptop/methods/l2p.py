"""L2P: learning to prompt (Wang et al., 2022b). A pool of prompts, of which every sample takes the nearest five.

    loss = CE over all classes - 0.1 * mean over samples of the sum of cos(query, key) over the prompts they take

The code that the DropTop paper follows weighs the cosines by 1 (`--pull 1`); that of L2P alone by 0.1, as here.

As in the DropTop paper, prompts are prefixes in the first five blocks (5 prompts of length 5: 25 prefixes a block),
and a small replay memory is added.

Cost of a step: with F the FLOPs of a ViT forward of one image, stream and memory rows take F forward and F back (no
gradients of weights), and stream rows F for their query: 2.5 F per row at equal batches, against 3 F for training the
whole ViT. Prefixes begin in the first block, so that query and training pass share nothing. DropTop adds F per row for
its attention pass, and the probe.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from droptop.errors import require
from droptop.memory import Rows
from droptop.methods.prompt import Prompt, PromptConfig
from droptop.nets import ViT
from droptop.nets.prompts import choose, chosen_prefixes, cosines, new_keys, new_prompts, taken


@dataclass(frozen=True)
class L2PConfig(PromptConfig):
    """Hold the settings of L2P."""

    pool: int = 10
    """Number of prompts in the pool."""
    prompt_length: int = 5
    """Prefixes of a prompt in each of its blocks."""
    chosen: int = 5
    """Number of prompts that each sample takes."""
    prompt_blocks: int = 5
    """Number of blocks that have prompts, from the first on."""
    pull: float = 0.1
    """Weight in the loss of the distance between keys and queries."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pool", "prompt_length", "prompt_blocks"):
            require(getattr(self, name) >= 1, name, "a number from 1", getattr(self, name))
        require(1 <= self.chosen <= self.pool, "chosen", f"a number from 1 to --pool ({self.pool})", self.chosen)
        require(0 <= self.pull < float("inf"), "pull", "a number from 0", self.pull)


class PromptPool(nn.Module):
    """Hold the pool of prompts and their keys."""

    usage: Tensor  # how often each prompt was trained with

    def __init__(self, vit: ViT, config: L2PConfig) -> None:
        super().__init__()
        self.prompts = new_prompts(vit, config.pool, config.prompt_blocks, config.prompt_length)
        self.keys = new_keys(vit, config.pool)
        self.register_buffer("usage", torch.zeros(config.pool, dtype=torch.int64))


class L2P(Prompt):
    """A prompt learner with a pool that all tasks share."""

    config: L2PConfig
    config_type = L2PConfig
    named_presets = Prompt.named_presets | {"memory-by-method": {"memory": 200}}

    def prompts(self, vit: ViT, config: L2PConfig) -> PromptPool:
        """Make the pool; raise BadRequest if the ViT has too few blocks for it."""
        require(
            config.prompt_blocks <= len(vit.blocks),
            "prompt_blocks",
            f"at most the ViT's {len(vit.blocks)}",
            config.prompt_blocks,
        )
        return PromptPool(vit, config)

    def choose(self, similarity: Tensor) -> Tensor:
        """Return the prompts that each sample takes, by its similarity to their keys."""
        return choose(similarity, self.config.chosen, self.config.batch_choice)

    def prefixes(self, prompts: PromptPool, query: Tensor, rows: Rows) -> dict[int, Tensor]:
        """Return the prompts that each sample takes."""
        return chosen_prefixes(prompts.prompts, self.choose(cosines(query, prompts.keys)))

    def pull(self, prompts: PromptPool, rows: Rows) -> Tensor:
        """Return the sum of cosines with the keys of the prompts taken, weighted; count these prompts."""
        similarity = cosines(rows["query"], prompts.keys)
        chosen = taken(self.choose(similarity), len(prompts.keys))
        prompts.usage += chosen.sum(0)
        return self.config.pull * (similarity * chosen).sum(1).mean()
