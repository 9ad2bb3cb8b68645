import pytest
import torch

from droptop.training.shortcut_share import shortcut_share


def test_shortcut_share_by_hand():
    """A 4 x 4 image, 2 x 2 cells: the shortcut fills one cell and half of another."""
    shortcut = torch.zeros(1, 4, 4, dtype=torch.bool)
    shortcut[0, :2, :3] = True
    mask = torch.ones(1, 2, 2)
    mask[0, 0, 0] = 0
    assert shortcut_share(mask, shortcut).tolist() == [1.0, pytest.approx(6 / 16)]
    mask[0, 0, 1] = 0
    assert shortcut_share(mask, shortcut)[0] == pytest.approx(0.75)
    assert shortcut_share(torch.ones(1, 2, 2), shortcut).isnan().all()  # nothing was dropped
