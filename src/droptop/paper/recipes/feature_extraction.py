"""The features of a trained learner, read back from its last checkpoint."""

from pathlib import Path

import numpy as np
import torch

from droptop.errors import BadRequest
from droptop.learner import Learner
from droptop.nets import Features, allow_tf32, evaluating
from droptop.paper.recipes.feature_definitions import FeatureStatistics, Head, Numbers, feature_statistics
from droptop.runs.build import build_stream
from droptop.runs.config import Config
from droptop.runs.loading import SeedPlace, restore
from droptop.streams import Stream
from droptop.system.devices import first_of
from droptop.training.evaluation import chunk
from droptop.types import Source

WITH, WITHOUT = "biased", "removed"  # test sets that show the same images with their shortcut and without


def load_seed_with_stream(config: Config, run: Path, seed: int) -> tuple[Stream, Learner]:
    """Return a seed's stream and its learner as of the last checkpoint; raise BadRequest if it has none."""
    allow_tf32(config.options.device, config.options.precision)
    return build_stream(config, seed), restore(SeedPlace(config, run, seed), first_of(config.options.device)).learner


def features(learner: Learner, source: Source, rows: torch.Tensor) -> Numbers:
    """Return what the head sees of some images when it predicts (N, D)."""
    parts = []
    with evaluating(learner.predictor):
        for part in rows.split(chunk(learner)):
            first = learner.predictor.stem(learner.normalise(source[part].x.to(learner.device)))
            given = learner.given(learner.predictor, first, {})
            parts.append(learner.predictor.trunk(first, *given).pooled.double().cpu())
    return torch.cat(parts).numpy()


def head(learner: Learner, width: int, classes: torch.Tensor) -> Head:
    """Return the learner's last layer for some classes, found by giving it one feature at a time.

    This works for every backbone, because the last layer of each is linear.
    """
    basis = torch.cat([torch.zeros(1, width), torch.eye(width)]).to(learner.device)
    with evaluating(learner.predictor):
        bias, *columns = learner.predictor.head(Features(basis, basis)).double().cpu()[:, classes].numpy()
    return Head(np.stack(columns, 1) - bias[:, None], bias)


def features_of(learner: Learner, stream: Stream) -> FeatureStatistics:
    """Return the statistics of the features on the first test set: classes the learner was taught, and all others.

    Raise BadRequest if its tasks leave no class out.
    """
    test = stream.tests.get(WITH) or next(iter(stream.tests.values()))
    classes = torch.tensor([label for task in stream.tasks for label in task])
    known = torch.isin(test.y, classes)
    if known.all():
        raise BadRequest("no class is unseen: --split takes tasks that leave classes out")
    rows = known.nonzero()[:, 0]
    seen, unseen = (features(learner, test, chosen) for chosen in (rows, (~known).nonzero()[:, 0]))
    plain = features(learner, stream.tests[WITHOUT], rows) if {WITH, WITHOUT} <= stream.tests.keys() else None
    labels = (test.y[rows][:, None] == classes).int().argmax(1).numpy()  # places among the classes taught
    current = torch.isin(classes, torch.tensor(stream.tasks[-1])).numpy()
    return feature_statistics(seen, labels, unseen, head(learner, seen.shape[1], classes), current, plain)
