"""DualPrompt (Wang et al., 2022a). General prompts for all samples, an expert prompt per task.

    loss = CE over all classes - mean over samples of cos(query, key of the sample's task)

General prompts of length 5 stand in blocks 1 and 2, experts of length 20 in blocks 3 to 5, all as prefixes. In training
a sample uses the expert of its own task, which the memory keeps; in prediction, the expert with the nearest key among
those of the tasks so far. The expert of a new task begins as a copy of that of the task before: until its task comes,
it follows the present one, and so do Adam's moments (were they zero while Adam's step count is not, its steps would be
up to six times too long). Keys begin at random.

Cost of a step: that of L2P. General prompts stand in the first block, so that query and training pass share nothing.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from droptop.errors import BadBatch, require
from droptop.memory import Rows
from droptop.methods.prompt import Prompt, PromptConfig
from droptop.nets import ViT
from droptop.nets.prompts import choose, chosen_prefixes, cosines, new_keys, new_prompts, shared_prefixes, taken


@dataclass(frozen=True)
class DualPromptConfig(PromptConfig):
    """Hold the settings of DualPrompt."""

    general_length: int = 5
    """Prefixes of the general prompt in each of its blocks."""
    general_blocks: int = 2
    """Number of blocks that have the general prompt, from the first on."""
    expert_length: int = 20
    """Prefixes of an expert prompt in each of its blocks."""
    expert_blocks: int = 3
    """Number of blocks that have expert prompts, after those with the general one."""
    experts: int = 10
    """Number of expert prompts; every task takes one."""
    pull: float = 1.0
    """Weight in the loss of the distance between keys and queries."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("general_length", "general_blocks", "expert_length", "expert_blocks", "experts"):
            require(getattr(self, name) >= 1, name, "a number from 1", getattr(self, name))
        require(0 <= self.pull < float("inf"), "pull", "a number from 0", self.pull)


class Prompts(nn.Module):
    """Hold the general prompt, the experts and their keys."""

    usage: Tensor  # how often the key of each expert was the nearest to a training sample
    entered: Tensor  # has the expert's task come?

    def __init__(self, vit: ViT, config: DualPromptConfig) -> None:
        super().__init__()
        self.general = new_prompts(vit, 1, config.general_blocks, config.general_length)
        self.experts = new_prompts(vit, config.experts, config.expert_blocks, config.expert_length)
        self.keys = new_keys(vit, config.experts)
        self.register_buffer("usage", torch.zeros(config.experts, dtype=torch.int64))
        self.register_buffer("entered", torch.zeros(config.experts, dtype=torch.bool))


class DualPrompt(Prompt):
    """A prompt learner with an expert per task."""

    config: DualPromptConfig
    config_type = DualPromptConfig
    named_presets = Prompt.named_presets | {"memory-by-method": {"memory": 500}}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # The task of the next step is an input, like its images, and no state: hence the underscore.
        self._task = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.current_task = 0  # what `_task` holds

    def prompts(self, vit: ViT, config: DualPromptConfig) -> Prompts:
        """Make the prompts; raise BadRequest if the ViT has too few blocks for them."""
        blocks = config.general_blocks + config.expert_blocks
        require(
            blocks <= len(vit.blocks),
            "expert_blocks",
            f"with the general ones at most the ViT's {len(vit.blocks)} blocks",
            f"{config.general_blocks} + {config.expert_blocks}",
        )
        return Prompts(vit, config)

    def check_tasks(self, count: int) -> None:
        """Raise BadRequest if there are fewer experts than tasks."""
        require(count <= self.config.experts, "experts", f"at least one for each of {count} tasks", self.config.experts)

    def enter(self, task: int) -> None:
        """Note the task of the next step; raise BadBatch if it has no expert."""
        if not 0 <= task < self.config.experts:
            raise BadBatch(
                f"there is no expert for task {task}: they are 0 to {self.config.experts - 1}; raise --experts"
            )
        super().enter(task)
        if task != self.current_task:
            self._task.fill_(task)
            self.current_task = task

    def arrive(self, x: Tensor, y: Tensor) -> Rows:
        return super().arrive(x, y) | {"task": self._task.expand(len(x))}

    def columns(self) -> Rows:
        """Keep the task of a sample, too."""
        return super().columns() | {"task": torch.zeros((), dtype=torch.int64)}

    def prefixes(self, prompts: Prompts, query: Tensor, rows: Rows) -> dict[int, Tensor]:
        """Return the general prompt and an expert: that of the sample's task or, in prediction, the nearest."""
        choice = rows["task"][:, None] if "task" in rows else self.match(prompts, query)
        return shared_prefixes(prompts.general, query.shape[0]) | chosen_prefixes(
            prompts.experts, choice, start=self.config.general_blocks
        )

    def match(self, prompts: Prompts, query: Tensor) -> Tensor:
        """Return the expert whose key is nearest (B, 1), among those whose task has come."""
        similarity = cosines(query, prompts.keys).masked_fill(~prompts.entered, -torch.inf)
        return choose(similarity, 1, self.config.batch_choice)

    def pull(self, prompts: Prompts, rows: Rows) -> Tensor:
        """Return the mean cosine of queries with the key of their task, weighted; count the nearest experts."""
        experts = len(prompts.keys)
        prompts.usage += taken(self.match(prompts, rows["query"]), experts).sum(0) * prompts.entered.any()
        of_task = taken(rows["task"][:, None], experts)
        return self.config.pull * (cosines(rows["query"], prompts.keys) * of_task).sum(1).mean()

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Learn from a batch, and let the experts of tasks to come follow."""
        loss = super().step(x, y)
        for model in self.replicas:
            self.follow(model.prompts)
        return loss

    @torch.no_grad()
    def follow(self, prompts: Prompts) -> None:
        """Copy the present task's expert and its moments to those of tasks to come."""
        prompts.entered |= (torch.arange(len(prompts.entered), device=self.device) == self._task) & self.finite
        unchanged = prompts.entered | ~self.finite
        moments = self.optimizer.state[prompts.experts]
        for rows in (prompts.experts, moments["exp_avg"], moments["exp_avg_sq"]):
            kept = unchanged.view(-1, *[1] * (rows.dim() - 1))
            rows.copy_(torch.where(kept, rows, rows.index_select(0, self._task)))
