"""One image file: opened, decoded as a person sees it, and resized, within bounded memory whatever the file says.

A file of a few bytes may say that it has 60,000 pixels per side. How many there are is known before they are decoded:
more than MOST_PIXELS are refused, and images of more than LARGE are decoded one at a time. Only formats that Pillow
reads by itself are read: for EPS it would run another program.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from droptop.errors import BadRequest

MOST_BYTES = 1 << 29  # of a file
MOST_PIXELS = 1 << 26  # 8,192 x 8,192; a larger JPEG counts as it is decoded, at a part of its size
LARGE = 1 << 24
ONE_AT_A_TIME = threading.Lock()
FORMATS = ("AVIF", "BMP", "DIB", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
ADDRESS = re.compile(r" <_io.BytesIO[^>]*>")  # in Pillow's messages


def fit(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return an image at another size: scaled until it covers that size, then cropped to its centre."""
    return image if image.size == size else ImageOps.fit(image, size, Image.Resampling.BILINEAR)


def read_image(path: Path, at_least: int | None = None) -> Image.Image:
    """Return an image as a person sees it: turned as its camera noted, RGB, black where it is transparent.

    With `at_least`, a large JPEG may be decoded at a smaller size, no side shorter than so many pixels.
    """
    with opened(path) as image:
        return as_seen(image, at_least)


def as_seen(image: Image.Image, at_least: int | None = None) -> Image.Image:
    """Return an image that Pillow has opened as a person sees it, as `read_image` does."""
    if at_least is not None:
        image.draft(None, (2 * at_least, 2 * at_least))
    with room_for(image):
        turned = ImageOps.exif_transpose(image)
        if turned.mode.startswith("I"):  # 16 bits of grey, which `convert` would clip
            turned = Image.fromarray((np.asarray(turned) >> 8).clip(0, 255).astype(np.uint8))
        if "A" in turned.mode or "transparency" in turned.info:
            clear = turned.convert("RGBA")
            turned = Image.alpha_composite(Image.new("RGBA", clear.size, "black"), clear)
        return turned.convert("RGB")


@contextmanager
def room_for(image: Image.Image) -> Iterator[None]:
    """Decode an image inside of this: a large one alone; raise BadRequest for one that is too large."""
    pixels = image.width * image.height
    if pixels > MOST_PIXELS:
        raise BadRequest(f"it has {image.width:,} x {image.height:,} pixels, more than {MOST_PIXELS:,} in all")
    with ONE_AT_A_TIME if pixels > LARGE else nullcontext():
        yield


@cache
def formats() -> list[str]:
    """Return the formats that are read; an older Pillow has not all of them."""
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]


@contextmanager
def opened(file: Path | BytesIO, name: str | None = None) -> Iterator[Image.Image]:
    """Open an image file; any error that it causes inside becomes a BadRequest with its name, by default its path.

    Whoever decodes the image does so inside of `room_for`.
    """
    try:
        if isinstance(file, Path) and (size := file.stat().st_size) > MOST_BYTES:
            raise BadRequest(f"the file has {size:,} bytes")
        with Image.open(file, formats=formats()) as image:
            yield image
    except Exception as error:  # Pillow's decoders raise errors of many types
        reason = getattr(error, "strerror", None) or ADDRESS.sub("", str(error)).replace(f" '{file}'", "")
        reason = "there is not the memory for it" if isinstance(error, MemoryError) else reason
        raise BadRequest(f"{name or file} does not decode: {' '.join(reason.split())}") from None
