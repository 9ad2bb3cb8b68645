"""Spectral decoupling against a loop."""

import pytest
import torch

from droptop import BadRequest
from droptop.debias import Decouple
from droptop.debias.decouple import DecoupleConfig
from droptop.rng import generator

LOGITS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)) * 4
LABELS = torch.tensor([0, 1, 2, 0, 1])


def member(weight):
    return Decouple(DecoupleConfig(weight), 3, generator(0, "debias"))


@pytest.mark.parametrize("weight", [0.5, 0.01])
def test_the_penalty_is_the_mean_squared_logit(weight):
    squares = [value**2 for row in LOGITS.tolist() for value in row]
    assert member(weight).penalty(LOGITS, LABELS).item() == pytest.approx(weight * sum(squares) / 15)


def test_its_gradient_shrinks_every_logit():
    logits = LOGITS.clone().requires_grad_()
    member(0.3).penalty(logits, LABELS).backward()
    torch.testing.assert_close(logits.grad, 2 * 0.3 * LOGITS / 15)


def test_no_weight_is_no_penalty():
    assert member(0.0).penalty(LOGITS, LABELS) == 0


@pytest.mark.parametrize("weight", [-0.1, float("inf"), float("nan")])
def test_bad_settings_are_refused(weight):
    with pytest.raises(BadRequest) as error:
        DecoupleConfig(weight)
    assert str(error.value) == f"--decouple.weight takes a number from 0, not {weight}"
