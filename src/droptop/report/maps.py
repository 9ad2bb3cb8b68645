"""Where does a trained model look, and what would be dropped? Attention and masks of a few fixed images."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from droptop import checkpoint
from droptop.config import Config
from droptop.debias import fuse
from droptop.engine.build import build_learner, build_stream
from droptop.errors import BadCheckpoint
from droptop.nets import last_map, untracked
from droptop.results.folder import seed_folder

BATCH = 64  # images the statistics are taken over, as many as in a training step


class Maps(NamedTuple):
    images: np.ndarray  # N, height, width, 3
    names: list[str]
    attention: np.ndarray  # N, h, w
    dropped: np.ndarray | None  # N, h, w


def last_maps(config: Config, run: Path, count: int = 8) -> Maps | None:
    """The maps of the first seed's last checkpoint, on images of its first test set, a class each in turn; None where
    that checkpoint is gone."""
    seed = config.seeds[0]
    stream = build_stream(config, seed)
    learner = build_learner(config, stream, seed)
    try:
        tensors, _ = checkpoint.read(checkpoint.newest_first(seed_folder(run, seed) / "checkpoints")[0])
    except (IndexError, BadCheckpoint):
        return None
    learner.load_state_dict(tensors)
    test = next(iter(stream.tests.values()))
    by_class = [(test.y == label).nonzero()[:BATCH, 0] for label in learner.seen.nonzero()[:, 0].cpu()]
    in_turn = pad_sequence(by_class, padding_value=-1).flatten()  # -1 where a class has no more
    samples = test[in_turn[in_turn >= 0][:BATCH]]
    labels = samples.y.to(learner.device)
    with torch.no_grad(), untracked(learner.model):
        first = learner.model.stem(learner.normalise(samples.x.to(learner.device)))
        given = learner.given(learner.model, first, {})
        if learner.debias is not None:
            learner.debias(first, lambda: last_map(learner.model, first, *given), labels)
        attention = fuse(first, last_map(learner.model, first, *given))
    dropped = None
    if learner.debias is not None:
        dropped = learner.debias.last.mask[:count].cpu().numpy() < 1  # dropped, or weakened by a soft mask
        if learner.debias.config.drop != "random":
            attention = learner.debias.last.attention
    return Maps(samples.x[:count].permute(0, 2, 3, 1).numpy(), [stream.spec.classes[label] for label in
                samples.y[:count]], attention[:count].cpu().numpy(), dropped)
