"""The plain loop that droptop is timed against learns, and keeps a memory of its own."""

import random

import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from droptop import make_stream
from droptop.bench.plain_loop import Transform, plain_er
from droptop.nets import NetConfig, build
from droptop.rng import seeded

from toys import SPEC


def test_its_images_are_normalised_as_droptops_are():
    pixels = torch.randint(0, 256, (3, 6, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    image = Image.fromarray(pixels.permute(1, 2, 0).numpy())
    torch.testing.assert_close(Transform(SPEC, augment=False)(image), (pixels.float() / 255 - 0.5) / 0.25)


def test_it_crops_and_mirrors():
    pixels = torch.arange(1, 49, dtype=torch.uint8).view(1, 6, 8).expand(3, 6, 8)
    picture, transform = Image.fromarray(pixels.permute(1, 2, 0).contiguous().numpy()), Transform(SPEC, augment=True)
    padded = F.pad(pixels, (4, 4, 4, 4))
    crops = [padded[:, i : i + 6, j : j + 8] for i in range(9) for j in range(9)]
    wanted = {crop.numpy().tobytes() for crop in crops} | {
        crop.flip(2).contiguous().numpy().tobytes() for crop in crops
    }
    random.seed(0)
    drawn = {((transform(picture) * 0.25 + 0.5) * 255).round().byte().numpy().tobytes() for _ in range(300)}
    assert drawn <= wanted
    assert len(drawn) > 100


@pytest.mark.parametrize("augment", [False, True])
def test_a_few_steps_learn_by_plain_sgd(augment):
    """The first one is a step of cross-entropy on a batch of the first task; later ones replay too."""
    stream = make_stream("fashion", limit=96, batch=16)
    model, sizes, random_state = build(NetConfig(width=4), 3, 10, seed=0), [], random.getstate()
    model.register_forward_pre_hook(lambda module, given: sizes.append(len(given[0])))
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    random.seed(0)
    try:
        with seeded(0, "loader"):
            losses = plain_er(model, stream, "cpu", lr=0.05, memory=20, memory_batch=12, augment=augment)
            found = [next(losses) for _ in range(8)]
    finally:
        random.setstate(random_state)
    assert sizes == [16] + [28] * 7  # 16 held after the first step, of which 12 are drawn, and 20 from the second on
    assert all(torch.tensor(found).isfinite())
    assert found[0] == pytest.approx(2.3, abs=0.7)  # nothing known of ten classes
    assert sum(found[-3:]) < 0.75 * 3 * found[0]
    assert all(not torch.equal(weight, before[name]) for name, weight in model.named_parameters())
