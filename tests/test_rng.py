"""A seed per purpose, and torch's own generator left alone."""

import hashlib

import pytest
import torch

from droptop.rng import PURPOSES, derive, generator, seeded


def test_seeds_are_the_first_bits_of_a_sha256():
    """Written out, so that runs of today go on tomorrow."""
    digest = hashlib.sha256(b"3/augment").digest()
    assert derive(3, "augment") == int.from_bytes(digest[:8], "little") // 2
    assert derive(0, "look", 1) == int.from_bytes(hashlib.sha256(b"0/look/1").digest()[:8], "little") // 2


def test_every_seed_and_purpose_has_a_seed_of_its_own():
    derived = [derive(seed, purpose) for seed in range(50) for purpose in (*PURPOSES, "init", "order")]
    assert len(set(derived)) == len(derived)
    assert all(0 <= seed < 2**63 for seed in derived)


def test_a_generator_starts_at_its_seed():
    a, b, other = generator(1, "memory"), generator(1, "memory"), generator(1, "debias")
    drawn = torch.rand(5, generator=a)
    assert torch.equal(drawn, torch.rand(5, generator=b))
    assert not torch.equal(drawn, torch.rand(5, generator=other))
    assert torch.equal(drawn, torch.rand(5, generator=torch.Generator().manual_seed(derive(1, "memory"))))


def test_seeded_draws_by_its_purpose_and_leaves_torchs_generator_where_it_was():
    before = torch.get_rng_state()
    with seeded(1, "init"):
        drawn = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    with seeded(1, "init"):
        assert torch.equal(torch.rand(3), drawn)
    assert torch.equal(drawn, torch.rand(3, generator=generator(1, "init")))


def test_an_error_inside_leaves_torchs_generator_where_it_was():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), seeded(1, "init"):
        raise ZeroDivisionError(torch.rand(3))
    assert torch.equal(torch.get_rng_state(), before)
