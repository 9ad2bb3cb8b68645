"""What the README says first: on a stream with a small bright cue, debiasing helps where the cue cannot be trusted.

Two thirds of the stream, so that it takes a minute. The effects are large beside what another version of torch does to
the bits: 11 and 15 points up, 16 down.
"""

import droptop

SEEDS = (0, 1)


def accuracies(debias, seed):
    """Train ER on the whole stream; return its accuracy at the end by test set, in percent."""
    stream = droptop.make_stream("fashion-sticker", seed=seed, limit=1600)
    learner = droptop.make_learner("er", stream, debias=debias, seed=seed)
    for x, y, task, _ in stream:
        learner.observe(x, y, task)
    return {name: droptop.accuracy(droptop.evaluate(learner, test)) for name, test in stream.tests.items()}


def test_droptop_helps_er_where_the_sticker_is_removed_or_random_and_hurts_where_it_holds():
    plain, debiased = ([accuracies(debias, seed) for seed in SEEDS] for debias in ("none", "droptop"))
    gain = {
        test: sum(after[test] - before[test] for before, after in zip(plain, debiased)) / len(SEEDS)
        for test in ("biased", "removed", "random")
    }
    assert gain["removed"] > 3, gain
    assert gain["random"] > 3, gain
    assert gain["biased"] < -3, gain
