"""Draw the pictures of how-it-works.md from a real run: `python docs/pictures.py` (half a minute on one core)."""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import droptop
from droptop.nets import last_map, untracked

HERE = Path(__file__).parent / "images"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.dpi": 110,
    "savefig.bbox": "tight",
}


def attention(learner: droptop.Learner, stream: droptop.Stream) -> None:
    """Draw images, both maps, their product and the mask, side by side."""
    test = stream.tests["biased"]
    rows = torch.cat([(test.y == label).nonzero()[:16, 0] for label in (1, 7, 8)])
    samples = test[rows]
    with torch.no_grad(), untracked(learner.model):
        first = learner.model.stem(learner.normalise(samples.x))
        last = last_map(learner.model, first)
        learner.debias.droptop(first, lambda: last, samples.y)
    fused, mask = learner.debias.droptop.last
    chosen = (0, 16, 32)
    figure, axes = plt.subplots(len(chosen), 5, figsize=(8, 4.9))
    titles = ("image", "first map", "last map", "attention", "dropped")
    for line, sample in zip(axes, chosen):
        image = samples.x[sample].permute(1, 2, 0)
        cells = F.interpolate(mask[sample][None, None], image.shape[:2])[0, 0, :, :, None]
        red = torch.tensor([230, 60, 60], dtype=torch.uint8)
        without = torch.where(cells == 0, red, image)
        for axis, picture, title in zip(
            line, (image, first[sample].mean(0), last[sample].mean(0), fused[sample], without), titles
        ):
            axis.imshow(picture, cmap="magma")
            axis.set_axis_off()
            if sample == chosen[0]:
                axis.set_title(title)
    figure.savefig(HERE / "attention.png")
    plt.close(figure)


def intensity(steps: list[list[float]], stream: droptop.Stream) -> None:
    """Draw kappa of every class over the stream."""
    figure, axis = plt.subplots(figsize=(8, 3))
    for label, line in enumerate(zip(*steps)):
        axis.step(
            range(len(line)), line, where="post", color=plt.cm.viridis(label / 9), label=stream.spec.classes[label]
        )
    edges = torch.tensor([stream.steps(task) for task in range(len(stream.tasks))]).cumsum(0).tolist()
    for edge in edges[:-1]:
        axis.axvline(edge, color="0.8", linewidth=0.8, zorder=0)
    axis.set(xlabel="step (lines: a new task begins)", ylabel="kappa, percent of the map")
    axis.legend(fontsize=8, ncols=2, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(HERE / "intensity.png")
    plt.close(figure)


def main() -> None:
    """Train two learners and draw both pictures."""
    torch.set_num_threads(1)
    stream = droptop.make_stream("fashion-sticker", seed=0)
    learner = droptop.make_learner("er", stream, debias="droptop", seed=0)
    for x, y, task, _ in stream:
        learner.observe(x, y, task)
    frequent = droptop.make_learner("er", stream, debias="droptop", seed=0, kappa_0=2.5, period=1)
    kappas = []
    for x, y, task, _ in stream:
        frequent.observe(x, y, task)
        kappas.append(frequent.debias.droptop.intensity.kappa.tolist())
    with plt.rc_context(STYLE):
        attention(learner, stream)
        intensity(kappas, stream)


if __name__ == "__main__":
    main()
