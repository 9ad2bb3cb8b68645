"""What a step costs beyond ER's, as each file's header states it: counted forward passes, with and without gradient."""

import pytest
import torch

from droptop.methods import METHODS

from toys import feed, toy_batches, toy_learner

JOINT = (8 + 6, True)  # stream and memory batch
COSTS = {
    "er": [JOINT],
    "er-ace": [JOINT],
    "derpp": [(8 + 6 + 6, True)],
    "mir": [(8, True), (50, False), (50, False), JOINT],  # the virtual step, candidates before and after it
    "gss": [JOINT, (10 * 10 + 8, True)],  # memory batches and stream batch
    "aser": [(6 + 8 + 6, False), JOINT, (6 + 8 + 6, False)],  # judges, stream batch, candidates
    "l2p": [(8, False), JOINT],  # the stream's queries
    "dualprompt": [(8, False), JOINT],
    "finetune": [(8, True)],
    "joint": [(8, True)],
    "scr": [(2 * (8 + 6), True)],
    "pcr": [(2 * (8 + 6), True)],
    "mkd": [(8 + 6, False), (2 * (8 + 6), True)],  # the teacher sees second views
    "ncm": [(8, False)],
    "slda": [(8, False)],
    "ranpac": [(8, False)],
}
PROBES = {"scr": 2, "ncm": 0, "slda": 0, "ranpac": 0}  # passes over the memory: one for class means; there is none


def passes(learner):
    """Rows and gradient of every forward pass of the stem from now on, and how often `backward` ran."""
    seen = []
    for model in learner.every_model:
        model.stem = lambda x, stem=model.stem: seen.append((len(x), torch.is_grad_enabled())) or stem(x)
    return seen


@pytest.mark.parametrize("method", METHODS)
def test_a_step_takes_the_forward_passes_that_its_file_states(method):
    learner = feed(toy_learner(method, debias="none", memory=60), toy_batches(10))
    seen = passes(learner)
    learner.step(*toy_batches(1, seed=2)[0][:2])
    assert seen == COSTS[method]


@pytest.mark.parametrize("method", METHODS)
def test_debiasing_adds_one_trunk_and_the_probe(method):
    learner = feed(toy_learner(method, memory=60, period=3), toy_batches(9))
    seen, trunks = passes(learner), []
    for model in learner.every_model:
        model.trunk = lambda *given, trunk=model.trunk: trunks.append(torch.is_grad_enabled()) or trunk(*given)
    x, y, _ = toy_batches(1, seed=2)[0]
    learner.observe(x, y)
    assert seen == COSTS[method]  # the stem runs no more often
    assert len(trunks) == len(COSTS[method]) + 1
    for _ in range(2):
        seen.clear()
        learner.observe(x, y)
    assert seen == [*COSTS[method], *[(60, False)] * PROBES.get(method, 1)]  # the third step probes the whole memory
