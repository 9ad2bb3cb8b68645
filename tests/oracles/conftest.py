"""Double precision: what is left of a difference is one of meaning."""

import pytest
import torch


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
