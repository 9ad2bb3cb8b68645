"""Prompts as prefixes, and their choice, against loops."""

import torch
import torch.nn.functional as F

from droptop.nets.prompts import choose, chosen_prefixes, cosines, shared_prefixes, taken


def test_prefixes_are_laid_out_by_prompt_block_and_head():
    """Against loops: laid out by a reshape without a permute, keys would be values and samples would swap prompts."""
    pool = torch.randn(6, 3, 2, 4, 2, 5)  # prompts, blocks, keys and values, length, heads, numbers
    choice = torch.tensor([[1, 4], [0, 5], [3, 1]])
    prefixes = chosen_prefixes(pool, choice, start=2)
    assert sorted(prefixes) == [2, 3, 4]
    for block in range(3):
        assert prefixes[2 + block].shape == (2, 3, 2, 8, 5)
        for part in range(2):
            for sample in range(3):
                for head in range(2):
                    expected = torch.cat([pool[prompt, block, part, :, head] for prompt in choice[sample]])
                    assert torch.equal(prefixes[2 + block][part, sample, head], expected)
    alone = chosen_prefixes(pool[:1], torch.zeros(7, 1, dtype=torch.int64))
    shared = shared_prefixes(pool[:1], 7)
    assert all(torch.equal(alone[block], shared[block]) for block in range(3))


def test_prompts_are_chosen_by_cosine_or_by_vote():
    query, keys = torch.randn(9, 8), torch.randn(6, 8) * torch.arange(1, 7)[:, None]  # long keys win nothing
    similarity = cosines(query, keys)
    torch.testing.assert_close(similarity, F.cosine_similarity(query[:, None], keys[None], dim=-1))
    alone = torch.cat([choose(cosines(row[None], keys), 2) for row in query])
    assert torch.equal(choose(similarity, 2), alone)
    together = choose(similarity, 2, by_vote=True)
    votes = torch.bincount(alone.flatten(), minlength=6)
    assert (together == together[0]).all()
    assert sorted(votes[together[0]].tolist()) == sorted(votes.tolist())[-2:]
    assert torch.equal(taken(alone, 6).sum(0), votes)
