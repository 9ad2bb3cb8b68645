"""The bounds of every method's settings, by hand: those that all share, and its own."""

import pytest

from droptop.methods import METHODS

from bounds import ABOVE_0, COUNT, FROM_0, SHARE, SHARE_ABOVE_0, SHARE_BELOW_1, TINY, hold

SHARED = {
    "lr": ABOVE_0,
    "momentum": SHARE_BELOW_1,
    "weight_decay": FROM_0,
    "memory": COUNT,
    "memory_batch": COUNT,
    "iterations": COUNT,
    "crop_area": SHARE_ABOVE_0,
    "average_decay": SHARE_BELOW_1,
}
PROMPTS = {
    "momentum": ([0.0], [TINY, 0.9, -1.0]),  # Adam has none
    "beta_1": SHARE_BELOW_1,
    "beta_2": SHARE_BELOW_1,
    "clip": ABOVE_0,
    "pull": FROM_0,
}
POOL = {"pool": ([5], [0]), "chosen": ([1, 10], [0, 11]), "prompt_length": COUNT, "prompt_blocks": COUNT}
EXPERTS = dict.fromkeys(("general_length", "general_blocks", "expert_length", "expert_blocks", "experts"), COUNT)
VIEWS = {"jitter": SHARE}
OWN = {
    "derpp": {"distill_weight": FROM_0, "replay_weight": FROM_0},
    "mir": {"memory_batch": ([1, 50], [0, -1]), "candidates": ([32], [31])},  # 50 candidates for 32 rows by default
    "gss": {"gradient_batches": COUNT, "gradient_batch": COUNT},
    "aser": {"neighbours": COUNT, "per_class": ABOVE_0},
    "l2p": PROMPTS | POOL,  # 5 of 10 are chosen by default
    "dualprompt": PROMPTS | EXPERTS,
    "scr": VIEWS | {"temperature": ABOVE_0, "projection": COUNT},
    "pcr": VIEWS | {"temperature": ABOVE_0},
    "mkd": VIEWS | {"teacher_decay": SHARE_BELOW_1, "distill_weight": FROM_0, "temperature": ABOVE_0},
    "ranpac": {"projections": COUNT, "ridge": ABOVE_0, "held_out": ([2], [1])},
    "slda": {"shrinkage": SHARE_ABOVE_0},
}


@pytest.mark.parametrize("method", METHODS)
def test_every_number_of_a_method_has_its_bounds(method):
    hold(METHODS[method].config_type, SHARED | OWN.get(method, {}))
