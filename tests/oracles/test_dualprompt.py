"""DualPrompt (Wang et al., 2022a): a general prompt in the first blocks, an expert per task in the blocks after them.

    loss = CE - pull * mean over samples of cos(query, key of the sample's task)

In training and in the probe a sample takes the expert of its task, in prediction the expert of the nearest key among
the tasks so far. Until its task comes, an expert is a copy of the present one, and so are its moments.
"""

import pytest
import torch
from torch import Tensor

from .slow import Row, agree, batches
from .slow_nets import Prefix, SlowNet
from .slow_prompt import SlowPrompt, by_vote, cosine, fast_prompt, nearest, prefix_of


class SlowDualPrompt(SlowPrompt):
    entered = 0  # tasks that have come

    def arrive(self, image: Tensor, label: int, task: int) -> Row:
        return super().arrive(image, label, task) | {"task": task}

    def choices(self, net: SlowNet, queries: list[Tensor]) -> list[list[int]]:
        keys = net["prompts.keys"].detach()
        choices = [nearest([cosine(query, key).item() for key in keys[: self.entered]], 1) for query in queries]
        return by_vote(choices, len(keys), 1) if self.config.batch_choice else choices

    def prefixes(self, net: SlowNet, queries: list[Tensor], rows: list[Row]) -> list[dict[int, Prefix]]:
        general, experts = net["prompts.general"], net["prompts.experts"]
        choices = [[row["task"]] for row in rows] if "task" in rows[0] else self.choices(net, queries)
        of_sample = []
        for choice in choices:
            prefixes = {block: prefix_of(general, [0], block) for block in range(self.config.general_blocks)}
            for block in range(self.config.expert_blocks):
                prefixes[self.config.general_blocks + block] = prefix_of(experts, choice, block)
            of_sample.append(prefixes)
        return of_sample

    def pulls(self, net: SlowNet, rows: list[Row]) -> list[Tensor]:
        if self.entered:
            for (nearest_key,) in self.choices(net, [row["asks"] for row in rows]):
                net["prompts.usage"][nearest_key] += 1
        return [cosine(row["asks"], net["prompts.keys"][row["task"]]) for row in rows]

    def train(self, arrived: list[Row], replayed: list[Row]) -> tuple[float, list[Tensor]]:
        result = super().train(arrived, replayed)
        self.present = arrived[0]["task"]
        return result

    def average(self) -> None:
        """After the last iteration, let the experts of tasks to come follow that of the present one."""
        super().average()
        self.entered = max(self.entered, self.present + 1)
        for net, first, second in zip(self.nets, self.moments, self.squares):
            net["prompts.entered"][: self.entered] = True
            for tensors in (net.weights, first, second):
                with torch.no_grad():
                    tensors["prompts.experts"][self.entered :] = tensors["prompts.experts"][self.present].clone()


SMALL = {"general_length": 2, "general_blocks": 1, "expert_length": 3, "expert_blocks": 2, "experts": 4}
SETTINGS = {
    "plain": {},
    "augmented queries": {"query_image": "augmented"},
    "choice of the batch": {"batch_choice": True},
    "iterations": {"iterations": 2, "pull": 0.3},
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_dualprompt(settings):
    learner = fast_prompt("dualprompt", **SMALL | SETTINGS[settings])
    agree(learner, SlowDualPrompt(learner), batches(8))


@pytest.mark.parametrize("debias", [{}, {"reference": True}])
def test_dualprompt_with_droptop(debias):
    """The attention pass sees the prompts, too."""
    learner = fast_prompt("dualprompt", debias, augment="none", **SMALL)
    slow = SlowDualPrompt(learner)
    agree(learner, slow, batches(8))
    assert sum(slow.droptop.decisions.values()) > 0
