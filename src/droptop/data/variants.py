"""Background variants of one image with a foreground mask, as in the backgrounds challenge.

They are defined by Xiao et al., "Noise or Signal: The Role of Image Backgrounds in Object Recognition".

    only_fg      the foreground on black                   no_fg        the rest, the foreground's shape black
    only_bg_b    the box around the foreground is black    only_bg_t    the box is filled with background
    mixed_same   the foreground on the only_bg_t of another image of its class
    mixed_rand   ... of a class drawn at random, which may be its own
    mixed_next   ... of the next class; after the last comes the first

The box of `only_bg_t` is filled by tiling the whole image with the widest strip beside the box; where there is no such
strip, the box is black. An empty mask has an empty box: no foreground, all background.

Each function takes one image (height, width, 3); `scenes` applies them to folders and chooses donors.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VARIANTS = ("only_fg", "only_bg_t", "only_bg_b", "no_fg", "mixed_same", "mixed_rand", "mixed_next")
# Whether the background, where there is one at all, tells the class as it does in the original images.
BACKGROUND_TELLS = {"original": True, "mixed_same": True, "mixed_rand": False, "mixed_next": False, "only_fg": False}
Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]


class Box(NamedTuple):
    """A box of pixels, from left and top up to right and bottom, which are not part of it."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def pixels(self) -> tuple[slice, slice]:
        """Return the index of its pixels in an array (height, width, ...)."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    @property
    def area(self) -> int:
        """Return its number of pixels."""
        return (self.right - self.left) * (self.bottom - self.top)

    def within(self, height: int, width: int) -> "Box":
        """Return the part of it that lies in an image."""
        return Box(min(self.left, width), min(self.top, height), min(self.right, width), min(self.bottom, height))


def box_of(mask: Mask) -> Box:
    """Return the smallest box around a mask; an empty box for an empty mask."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return Box(0, 0, 0, 0)
    return Box(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)


def only_fg(image: Pixels, mask: Mask) -> Pixels:
    """Return the foreground on black."""
    return np.where(mask[..., None], image, np.uint8(0))


def no_fg(image: Pixels, mask: Mask) -> Pixels:
    """Return the image with a black foreground."""
    return only_fg(image, ~mask)


def only_bg_b(image: Pixels, box: Box) -> Pixels:
    """Return the image with a black box."""
    black = image.copy()
    black[box.pixels] = 0
    return black


def only_bg_t(image: Pixels, box: Box) -> Pixels:
    """Return the image with its box filled by a tiling of the widest strip beside the box."""
    height, width, _ = image.shape
    left, top, right, bottom = box.left, box.top, width - box.right, height - box.bottom
    if max(left, top, right, bottom) == 0:
        return only_bg_b(image, box)
    if max(left, right) * height > max(top, bottom) * width:
        strip = image[:, :left] if left > right else image[:, box.right :]
    else:
        strip = image[:top] if top > bottom else image[box.bottom :]
    tiled = np.tile(strip, (-(-height // len(strip)), -(-width // strip.shape[1]), 1))
    filled = image.copy()
    filled[box.pixels] = tiled[:height, :width][box.pixels]
    return filled


def mixed(image: Pixels, mask: Mask, background: Pixels) -> Pixels:
    """Return the foreground of an image before the background of another one, which has the same size."""
    return np.where(mask[..., None], image, background)
