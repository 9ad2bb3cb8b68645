"""A contact sheet: the first images of a stream, to see them before anything is trained.

There is a block for the training images and one per test set; a block has a row per class, in order of arrival. Each
block shows the first images of its set. Where the test sets are variants of the same images, as in the ImageNet-9
family, the same place therefore shows the same image.
"""

import io

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from droptop.figures.style import shortened, write
from droptop.streams import Stream
from droptop.types import Source

IMAGES = 8  # per row of a block
ACROSS = 5  # blocks side by side
GAP = 2  # white pixels between two images, twice as many between two tasks
DPI = 100
LONGEST_NAME = 60  # letters of a class's name
LEAST = 32  # dots an image's side takes up on the sheet; a smaller image is enlarged by a whole number


def contact_sheet(stream: Stream) -> bytes:
    """Return the contact sheet of a stream as the bytes of a PNG file."""
    arrived = torch.cat(stream.order)
    labels = stream.labels[arrived]
    blocks = {"training images": block(stream, stream.train, arrived, labels)}
    for name, test in stream.tests.items():
        blocks[f"test set: {name}"] = block(stream, test, torch.arange(len(test)), test.y)
    return draw(stream, blocks)


def block(stream: Stream, source: Source, rows: Tensor, labels: Tensor) -> Tensor:
    """Return a block (height, width, 3): the first images of each class, white where there are none."""
    side = stream.spec.shape[1] + GAP
    tops = row_tops(stream)
    sheet = torch.full((tops[-1], IMAGES * side - GAP, 3), 255, dtype=torch.uint8)
    for top, label in zip(tops, (label for task in stream.tasks for label in task)):
        images = in_bytes(source[rows[labels == label][:IMAGES]].x).permute(0, 2, 3, 1)
        for column, image in enumerate(images):
            sheet[top : top + side - GAP, column * side : (column + 1) * side - GAP] = image
    return sheet


def in_bytes(x: Tensor) -> Tensor:
    """Return images (N, channels, height, width) as a picture has them: bytes, in three channels or in grey."""
    x = x[:, :3] if x.shape[1] > 2 else x[:, :1]
    return (255 * x.float()).round().clamp(0, 255).to(torch.uint8) if x.is_floating_point() else x


def row_tops(stream: Stream) -> list[int]:
    """Return where each class's row begins, in pixels, and where the last one ends."""
    side, tops, top = stream.spec.shape[1] + GAP, [], 0
    for task in stream.tasks:
        for _ in task:
            tops.append(top)
            top += side
        top += GAP
    return [*tops, top - 2 * GAP]


def draw(stream: Stream, blocks: dict[str, Tensor]) -> bytes:
    """Return a PNG file of blocks by title, with the names of the classes on the left."""
    height, width, _ = next(iter(blocks.values())).shape
    scale = -(-LEAST // stream.spec.shape[1])
    across = min(len(blocks), ACROSS)
    down = -(-len(blocks) // across)
    names = [
        f"{shortened(stream.spec.classes[label], LONGEST_NAME)}, task {task + 1}"
        for task, labels in enumerate(stream.tasks)
        for label in labels
    ]
    middles = [top + stream.spec.shape[1] / 2 for top in row_tops(stream)[:-1]]
    # The layout is in dots, so that a pixel is a whole number of dots.
    left, right, above, below, title = 14 + 7 * max(map(len, names)), 14, 26, 8, 30
    whole_width = left + across * (width * scale + right)
    whole_height = title + down * (height * scale + above + below)
    figure = plt.figure(figsize=(whole_width / DPI, whole_height / DPI), dpi=DPI)
    for number, (name, image) in enumerate(blocks.items()):
        row, column = divmod(number, across)
        x = left + column * (width * scale + right)
        y = whole_height - title - row * (height * scale + above + below) - above - height * scale
        shape = (width * scale / whole_width, height * scale / whole_height)
        ax = figure.add_axes((x / whole_width, y / whole_height, *shape))
        ax.imshow(image.numpy(), interpolation="nearest", aspect="auto", extent=(0, width, height, 0))
        ax.set_title(name, fontsize=9, pad=4)
        ax.set_xticks([])
        ax.set_yticks(middles if column == 0 else [], names if column == 0 else [], fontsize=8)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    figure.text(8 / whole_width, 1 - 10 / whole_height, f"{stream.name}, seed {stream.seed}", fontsize=10, va="top")
    file = io.BytesIO()
    write(figure, file, DPI)
    return file.getvalue()
