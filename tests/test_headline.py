"""What the README says first: on a stream with a small bright cue, debiasing helps where the cue cannot be trusted.

Two thirds of the stream, and one seed, so that it takes half a minute. The effects are large beside what another
version of torch does to the bits: 17 points up where the sticker is removed or random, 15 down where it holds.
"""

import droptop

SEED = 1


def accuracies(debias):
    """Train ER on the whole stream; return its accuracy at the end by test set, in percent."""
    stream = droptop.make_stream("fashion-sticker", seed=SEED, limit=1600)
    learner = droptop.make_learner("er", stream, debias=debias, seed=SEED)
    for x, y, task, _ in stream:
        learner.observe(x, y, task)
    return {name: droptop.accuracy(droptop.evaluate(learner, test)) for name, test in stream.tests.items()}


def test_droptop_helps_er_where_the_sticker_is_removed_or_random_and_hurts_where_it_holds():
    plain, debiased = accuracies("none"), accuracies("droptop")
    gain = {test: debiased[test] - plain[test] for test in ("biased", "removed", "random")}
    assert gain["removed"] > 3, gain
    assert gain["random"] > 3, gain
    assert gain["biased"] < -3, gain
