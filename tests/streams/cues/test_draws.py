"""Numbers that belong to an image: SplitMix64 in Python's own integers, chances, and no dependence on the order."""

import pytest
import torch

from droptop.streams.cues.draws import content_numbers, cues_of, draws, whole

MASK = 2**64 - 1


def mixed(bits):
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def slow_draw(seed, number, column):
    step = 0x9E3779B97F4A7C15
    of_image = mixed((number * step + seed) & MASK)
    return (mixed((of_image + (column + 1) * step) & MASK) >> 40) / 2**24


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
def test_draws_are_split_mix_in_slow_integers(seed):
    numbers = [0, 1, 2, 12_345, 2**40, 2**62, -3]
    drawn = draws(seed, torch.tensor(numbers), 4)
    assert drawn.tolist() == [[slow_draw(seed, number % 2**64, column) for column in range(4)] for number in numbers]


def test_draws_are_uniform_and_of_no_order():
    numbers = torch.arange(20_000)
    drawn = draws(3, numbers, 3)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts = torch.stack([torch.histc(column, 20, 0, 1) for column in drawn.T])
    assert (counts - 1000).abs().max() < 5 * 1000**0.5
    assert torch.corrcoef(drawn.T).fill_diagonal_(0).abs().max() < 0.03
    order = torch.randperm(20_000)
    assert torch.equal(draws(3, numbers[order], 3), drawn[order])
    assert (draws(4, numbers, 3) == drawn).float().mean() < 0.01


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.95, 1.0])
def test_a_cue_is_that_of_its_class_as_often_as_asked_and_else_any_other(correlation):
    labels = torch.arange(30_000) % 5
    cues = cues_of(labels, correlation, 5, draws(0, torch.arange(30_000), 2))
    assert (cues == labels).float().mean().item() == pytest.approx(correlation, abs=0.015)
    wrong = ((cues - labels) % 5)[cues != labels].bincount(minlength=5)
    assert wrong[0] == 0
    if correlation < 1:
        assert (wrong[1:] / wrong.sum() - 0.25).abs().max() < 0.05
    assert torch.equal(cues_of(torch.zeros(9, dtype=torch.long), 0.5, 1, draws(0, torch.arange(9), 2)), torch.zeros(9))


def test_whole_numbers_stay_below_their_count():
    highest = torch.tensor([0.0, 0.5, 1 - 2**-24])
    assert whole(highest, 450).tolist() == [0, 225, 449]


@pytest.mark.parametrize("kind", [torch.uint8, torch.float32, torch.bfloat16])
def test_numbers_of_images_go_by_their_pixels(kind):
    x = torch.randint(0, 256, (50, 3, 6, 5), generator=torch.Generator().manual_seed(0))
    x = x.to(kind) if kind == torch.uint8 else (x / 255).to(kind)
    numbers = content_numbers(x)
    assert len(set(numbers.tolist())) == 50
    assert torch.equal(content_numbers(x[7:9]), numbers[7:9])
    swapped = x.clone()
    swapped[0, 0, 0, :2] = x[0, 0, 0, :2].flip(0)
    assert content_numbers(swapped)[0] != numbers[0]
