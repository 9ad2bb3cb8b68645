"""L2P (Wang et al., 2022b): a pool of prompts, of which every sample takes those whose keys are nearest to its query.

loss = CE - pull * mean over samples of the sum of cos(query, key) over the prompts they take
"""

import pytest
from torch import Tensor

from .slow import Row, agree, batches
from .slow_nets import Prefix, SlowNet
from .slow_prompt import SlowPrompt, by_vote, cosine, fast_prompt, nearest, prefix_of


class SlowL2P(SlowPrompt):
    def choices(self, net: SlowNet, queries: list[Tensor]) -> list[list[int]]:
        keys = net["prompts.keys"].detach()
        choices = [nearest([cosine(query, key).item() for key in keys], self.config.chosen) for query in queries]
        return by_vote(choices, len(keys), self.config.chosen) if self.config.batch_choice else choices

    def prefixes(self, net: SlowNet, queries: list[Tensor], rows: list[Row]) -> list[dict[int, Prefix]]:
        pool = net["prompts.prompts"]
        return [
            {block: prefix_of(pool, prompts, block) for block in range(self.config.prompt_blocks)}
            for prompts in self.choices(net, queries)
        ]

    def pulls(self, net: SlowNet, rows: list[Row]) -> list[Tensor]:
        pulls, keys = [], net["prompts.keys"]
        for row, prompts in zip(rows, self.choices(net, [row["asks"] for row in rows])):
            pulls.append(sum(cosine(row["asks"], keys[prompt]) for prompt in prompts))
            net["prompts.usage"][prompts] += 1
        return pulls


SMALL = {"pool": 5, "prompt_length": 2, "chosen": 2, "prompt_blocks": 2}
SETTINGS = {
    "plain": {},
    "augmented queries": {"query_image": "augmented"},
    "choice of the batch": {"batch_choice": True},
    "scaled rate": {"lr_scale": "batch/256", "lr": 1.0},
    "strong pull": {"pull": 2.0, "clip": 0.3, "weight_decay": 0.01, "beta_1": 0.5},
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_l2p(settings):
    learner = fast_prompt("l2p", **SMALL | SETTINGS[settings])
    agree(learner, SlowL2P(learner), batches(8))


@pytest.mark.parametrize("debias", [{}, {"reference": True}])
def test_l2p_with_droptop(debias):
    """The attention pass sees the prompts, too."""
    learner = fast_prompt("l2p", debias, augment="none", **SMALL)
    slow = SlowL2P(learner)
    agree(learner, slow, batches(8))
    assert sum(slow.droptop.decisions.values()) > 0
