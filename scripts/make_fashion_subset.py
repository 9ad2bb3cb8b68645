"""Make src/droptop/data/files/fashion.png, the Fashion-MNIST subset that ships with the package.

    apt-get install dataset-fashion-mnist
    python scripts/make_fashion_subset.py /usr/share/datasets/fashion-mnist

The sheet holds 100 images per row: for every class in turn 12 rows of training images, then for every class in turn
2 rows of test images, always the first of that class in the official files. So a row's position is its label.
"""

import gzip
import sys
from pathlib import Path

import numpy as np
from PIL import Image

TRAIN, TEST, CLASSES = 1200, 200, 10
OUT = Path(__file__).parents[1] / "src/droptop/data/files/fashion.png"


def read_idx(path: Path, header: int) -> np.ndarray:
    """Return the bytes of a gzipped IDX file after its header."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


def first_of_each_class(folder: Path, part: str, count: int) -> np.ndarray:
    """Return the first `count` images of every class, class by class."""
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz", 8)
    return np.concatenate([images[labels == label][:count] for label in range(CLASSES)])


def main(folder: Path) -> None:
    """Write the sheet from the folder of the official files."""
    images = np.concatenate([first_of_each_class(folder, "train", TRAIN), first_of_each_class(folder, "t10k", TEST)])
    rows = len(images) // 100
    sheet = images.reshape(rows, 100, 28, 28).swapaxes(1, 2).reshape(rows * 28, 2800)
    Image.fromarray(sheet).save(OUT, optimize=True)
    print(f"{OUT}: {len(images)} images, {OUT.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
