"""Record the attention of a model and the cells it would drop, in the middle and at the end of every task.

The images stay the same, so that one can watch the attention change. Recording changes nothing in the learner: there
is no gradient, BatchNorm normalises by these images and keeps its running statistics, and random cells are drawn by a
generator of their own. Counts of dropped cells are those of kappa' itself, rounded to the nearest.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from droptop.learner import Learner
from droptop.learner_attention import attention_of
from droptop.rng import generator
from droptop.runs.records import IMAGES
from droptop.streams import Stream
from droptop.training.record_files import forget_others, write_moment, write_record
from droptop.types import Samples, Source, read

SHOWN = 8  # images that are kept; of the others, only labels and maps are


class AttentionRecorder:
    """Record attention on `count` images of the first test set, every class in turn, in order of arrival."""

    def __init__(self, folder: Path, stream: Stream, count: int) -> None:
        self.folder, self.classes, self.seed = folder, stream.spec.classes, stream.seed
        test = next(iter(stream.tests.values()))
        arrival = [label for task in stream.tasks for label in task]
        self.samples = read(test, in_turn(test, arrival, count))
        self.images_recorded = False

    def record(self, learner: Learner, step: int, task: int) -> None:
        """Record the attention of the learner after a step; the first time, the images too."""
        maps = maps_of(learner, self.samples, self.seed)
        if not self.images_recorded:
            self.record_images(*maps["attention"].shape[-2:])
            self.images_recorded = True
        write_moment(self.folder, step, task, maps)

    def record_images(self, height: int, width: int) -> None:
        """Write the images and, where it is known, the share of each cell of the maps that the shortcut covers."""
        samples = self.samples
        forget_others(self.folder, len(samples))
        tensors = {"images": samples.x[:SHOWN], "labels": samples.y}
        if samples.shortcut is not None:
            tensors["shortcut"] = F.adaptive_avg_pool2d(samples.shortcut[:, None].float(), (height, width))[:, 0]
        write_record(self.folder, IMAGES, tensors, {"names": [self.classes[label] for label in samples.y.tolist()]})


def in_turn(test: Source, classes: list[int], count: int) -> Tensor:
    """Return `count` rows of a test set: the first of every class, then the second of every class, and so on."""
    by_class = [(test.y == label).nonzero()[:count, 0] for label in classes]
    rows = pad_sequence(by_class, padding_value=-1).flatten()  # -1 where a class has no more
    return rows[rows >= 0][:count]


@torch.no_grad()
def maps_of(learner: Learner, samples: Samples, seed: int) -> dict[str, Tensor]:
    """Return attention (N, h, w) and, where something is debiased, the cells that would be dropped."""
    attention, debias = attention_of(learner, samples.x), learner.debias.droptop
    if debias is None:
        return {"attention": attention}
    noise = torch.rand(attention.shape, generator=generator(seed, "look")).to(learner.device)
    kappa = debias.intensity.kappa[debias.intensity.group(samples.y.to(learner.device))]
    mask = debias.mask(attention, kappa, torch.full_like(kappa, 0.5), noise)
    return {"attention": attention, "dropped": (mask < 1).to(torch.uint8)}
