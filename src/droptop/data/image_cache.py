"""Folders of images, decoded once: a file of pixels in $DROPTOP_CACHE, else $XDG_CACHE_HOME/droptop, else
~/.cache/droptop.

A file's name is a hash of everything its pixels depend on: how they are made, and each image's relative path, inode,
length and time of change (to the nanosecond). Hashing the bytes would cost as much as decoding them; so an image that
is overwritten in place, with the same length and its old time put back, is the one change that goes unnoticed.

Whoever makes a file holds the folder's lock, and a second process waits and then finds it made. What a process leaves
half-made when it is killed ends in `.part`, is never read, and is removed by the next one that holds the lock.

Images are decoded by threads, since Pillow's decoders work without the interpreter's lock. On two cores, 500 x 375
JPEG to 224 px: 480 a second with one thread, 780 with two, 870 with four, 670 with two processes.
"""

import hashlib
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import PIL
import torch
from PIL import Image, ImageOps
from torch import Tensor

from droptop.data import image_store as stored
from droptop.data.image_store import BadCache, Pixels, Stored
from droptop.data.root import FileProgress
from droptop.errors import BadRequest
from droptop.system.cache_folder import cache_folder
from droptop.system.locks import locked
from droptop.types import Samples, Source

T = TypeVar("T")
R = TypeVar("R")
THREADS = min(32, 2 * (os.cpu_count() or 1))
BLOCK = 128  # images between two reports


def silent(done: int, total: int, what: str) -> None:
    """For those who need no progress."""


progress: ContextVar[FileProgress] = ContextVar("progress", default=silent)  # who hears how decoding goes


# What folders held when they were last looked at, by whoever looks at them for many seeds.
_reads: ContextVar[dict[Hashable, Any] | None] = ContextVar("looked", default=None)


@contextmanager
def sharing_reads() -> Iterator[None]:
    """Within it, the files of one data set after another are looked at once, however many streams are made of them."""
    token = _reads.set({})
    try:
        yield
    finally:
        _reads.reset(token)


def forget_reads() -> None:
    """What was looked at may have changed."""
    known = _reads.get()
    if known is not None:
        known.clear()


def read_once(key: Hashable, look: Callable[[], T]) -> T:
    """What `look` gives, or gave when it was last asked for under the same key."""
    known = _reads.get()
    if known is None:
        return look()
    if key not in known:
        known.clear()  # the images of one set at a time
        known[key] = look()
    found: T = known[key]
    return found


# Images that are in memory, while somebody uses them: seeds of one process share them.
_IN_MEMORY: WeakValueDictionary[tuple[Path, bytes], Samples] = WeakValueDictionary()


@dataclass(frozen=True)
class ImageSet:
    """How the images of a set are made, and from what."""

    what: str  # for people
    how: str  # whatever the pixels depend on besides the files and the size
    size: int  # pixels a side
    home: Path  # what the files' paths are relative to
    files: Sequence[str]
    rows: Sequence[int]  # the wanted ones, in order
    make: Callable[[int], Image.Image]  # a row's image, at any size

    @property
    def key(self) -> str:
        digest = hashlib.sha256(f"{stored.FORMAT}\n{PIL.__version__}\n{self.size}\n{self.how}\n".encode())
        digest.update(np.array(self.rows, "<i8").tobytes())
        for name in self.files:
            path = f"{self.home}/{name}"
            try:
                status = os.stat(path)
            except OSError as error:
                raise BadRequest(f"{path}: {error.strerror}") from None
            # The inode, since another folder's images may have the same names, sizes and times; a move keeps it.
            digest.update(f"{name}\n{status.st_size} {status.st_mtime_ns} {status.st_ino}\n".encode())
        return digest.hexdigest()[:32]


@dataclass
class Room:
    """What is left of the memory that decoded images may take."""

    left: int  # bytes

    def take(self, amount: int) -> bool:
        fits = amount <= self.left
        self.left -= amount if fits else 0
        return fits


def load_images(image_set: ImageSet, y: Tensor, room: Room) -> Source:
    """The decoded images: in memory where there is room, else on the disk."""
    kept = Stored(decoded(image_set), y)
    if not room.take(kept.nbytes):
        return kept
    key = (kept.path, y.numpy().tobytes())
    if (found := _IN_MEMORY.get(key)) is not None:
        return found
    rows = torch.arange(len(kept))
    try:
        samples = kept[rows]
    except BadCache:  # which has removed the file
        samples = Stored(decoded(image_set), y)[rows]
    _IN_MEMORY[key] = samples
    return samples


def decoded(image_set: ImageSet) -> Path:
    """The file that holds a image_set's images, made if need be."""
    key = image_set.key
    path = cache_folder() / f"{key}.images"
    if stored.whole(path, key):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with decoding_lock(path.parent, image_set.what):
            if not stored.whole(path, key):  # nobody made it while we waited
                for left_over in path.parent.glob("*.part"):
                    left_over.unlink()
                stored.write(path, key, len(image_set.rows), image_set.size, blocks(image_set))
    except OSError as error:
        need = stored.file_size(len(image_set.rows), image_set.size) / 2**20
        raise BadRequest(
            f"{path.parent}: {error.strerror}; the decoded images of {image_set.what} take {need:,.0f} MiB: "
            "make room, or name another folder with DROPTOP_CACHE"
        ) from None
    return path


@contextmanager
def decoding_lock(place: Path, what: str) -> Iterator[None]:
    """Let one process at a time decode into a folder; all its cores are busy with it anyway."""
    waited = False

    def waiting() -> None:
        nonlocal waited
        waited = True
        progress.get()(0, 1, f"{what}: waiting for another process that is decoding")

    with locked(place / "lock", wait=None, patience=0, waiting=waiting):
        if waited:
            progress.get()(1, 1, f"{what}: the other process is done")
        yield


def blocks(image_set: ImageSet) -> Iterator[Pixels]:
    """A image_set's images in order, some at a time."""

    def pixels(row: int) -> Pixels:
        return np.asarray(fit(image_set.make(row), (image_set.size, image_set.size))).transpose(2, 0, 1)

    return map(np.stack, in_parallel(pixels, image_set.rows, progress.get(), image_set.what))


def in_parallel(work: Callable[[T], R], jobs: Sequence[T], report: FileProgress, what: str) -> Iterator[list[R]]:
    """What `work` makes of each job, in order, some at a time."""
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(jobs), BLOCK):
            yield list(pool.map(work, jobs[start : start + BLOCK]))
            report(min(start + BLOCK, len(jobs)), len(jobs), what)


# -- One image --------------------------------------------------------------------------------------------------------


def fit(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """An image at another size: scaled until it covers it (the shorter side fits a square), then its centre."""
    return image if image.size == size else ImageOps.fit(image, size, Image.Resampling.BILINEAR)


def read_image(path: Path, at_least: int | None = None) -> Image.Image:
    """An image as a person sees it: turned as its camera says, RGB, black where it is transparent. A large JPEG need
    not be decoded in full where its sides are to be `at_least` some pixels."""
    with opened(path) as image:
        if at_least is not None:
            image.draft(None, (2 * at_least, 2 * at_least))
        turned = ImageOps.exif_transpose(image)
        if turned.mode.startswith("I"):  # 16 bits of grey, which `convert` would clip
            turned = Image.fromarray((np.asarray(turned) >> 8).clip(0, 255).astype(np.uint8))
        if "A" in turned.mode or "transparency" in turned.info:
            clear = turned.convert("RGBA")
            turned = Image.alpha_composite(Image.new("RGBA", clear.size, "black"), clear)
        return turned.convert("RGB")


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """An image file; whatever goes wrong with it names it."""
    try:
        with Image.open(path) as image:
            yield image
    except Exception as error:  # Pillow's decoders raise whatever they stumble over
        reason = getattr(error, "strerror", None) or str(error).replace(f" '{path}'", "").replace("\n", " ")
        raise BadRequest(f"{path} does not decode: {reason}") from None
