"""Slow learners, written from the papers: what every method must come to, step by step, to the last memory slot.

    slow.py          ER: Algorithm 1 with samples in Python lists; the base of all others
    slow_nets.py     two nets as formulas of their weights: convolutions with BatchNorm, and a ViT with prefixes
    slow_droptop.py  Eq. 4 to 8: fusion, mask, intensities, by loops and scipy
    slow_prompt.py   what L2P and DualPrompt share
    test_*.py        a method: where it differs from ER, and whole streams beside droptop's own

Nothing here calls droptop's learner, memory, debiasers or optimisers. A slow learner takes three things from the one
that it is compared with: the settings, the initial weights, and a clone of each generator. It draws from these the same
numbers in the same order; what they mean is written here anew. All is in double precision, so that a difference is a
difference of meaning.
"""
