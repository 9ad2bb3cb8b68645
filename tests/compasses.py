"""A stream of a user's own, as an object and as the text of a file, and a model of theirs."""

import torch

from droptop import Samples, Spec, Stream, StreamConfig

SMALL = {"memory": 16, "memory_batch": 8, "seeds": 1, "maps": 4, "checkpoint_seconds": 0.0}
OWN = SMALL | {"first": "maxpool", "last": "layer4"}
FILE = """
    import torch
    from droptop import Samples, Spec, Stream, StreamConfig

    def beside(images):
        return images

    def compass(seed: int) -> Stream:
        images = torch.arange(96 * 3 * 16 * 16).remainder(251).to(torch.uint8).view(96, 3, 16, 16)
        labels = torch.arange(96) % 4
        tests = {"test": Samples(images[:24], labels[:24])}
        config = StreamConfig(tasks=2, batch=8)
        return Stream("compass", Spec((3, 16, 16), tuple("nesw")), Samples(images, labels), tests, config, seed)
"""


def compass(seed=0, shift=0, train=None, **options):
    """Return the stream of FILE, all of whose labels may be shifted."""
    images = torch.arange(96 * 3 * 16 * 16).remainder(251).to(torch.uint8).view(96, 3, 16, 16)
    labels = (torch.arange(96) + shift) % 4
    tests = {"test": Samples(images[:24], labels[:24])}
    config = StreamConfig(**{"tasks": 2, "batch": 8} | options)
    train = Samples(images, labels) if train is None else train(images, labels)
    return Stream("compass", Spec((3, 16, 16), tuple("nesw")), train, tests, config, seed)
