"""Folders of images, decoded once into a file of pixels in the cache folder ($DROPTOP_CACHE, else the system's).

The name of a file is a hash of everything that its pixels depend on: how they are made, and each image's relative path,
inode, length and time of change (in nanoseconds). Hashing the bytes would cost as much as decoding them. So one change
goes unnoticed: an image that is overwritten in place, with the same length, and given its old time again.

The process that makes a file holds the folder's lock; a second process waits and then uses the file. What a killed
process leaves unfinished ends in `.part`, is never read, and is removed by the next process that holds the lock.

Images are decoded by threads, since Pillow's decoders release the interpreter's lock. On two cores, 500 x 375 JPEG to
224 px: 480 images per second with one thread, 780 with two, 870 with four, 670 with two processes.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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
from PIL import Image
from torch import Tensor

from droptop.data import image_store
from droptop.data.image_decoding import fit
from droptop.data.image_store import BadCache, Pixels, StoredImages
from droptop.data.root import FileProgress
from droptop.errors import BadRequest
from droptop.groups import Groups
from droptop.system.cache_folder import cache_folder
from droptop.system.locks import locked
from droptop.types import Samples, Source

T = TypeVar("T")
R = TypeVar("R")
THREADS = min(32, 2 * (os.cpu_count() or 1))
BLOCK = 128  # images between two reports
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a disk, a quota or a limit that is used up


def silent(done: int, total: int, what: str) -> None:
    """Ignore progress."""


progress: ContextVar[FileProgress] = ContextVar("progress", default=silent)  # is told how decoding goes


# What was read of folders inside of `sharing_reads`.
_reads: ContextVar[dict[Hashable, Any] | None] = ContextVar("reads", default=None)


@contextmanager
def sharing_reads() -> Iterator[None]:
    """Read the files of a data set once inside this context, however many streams are made of it in a row."""
    token = _reads.set({})
    try:
        yield
    finally:
        _reads.reset(token)


def forget_reads() -> None:
    """Forget what `read_once` keeps, since files may have changed."""
    known = _reads.get()
    if known is not None:
        known.clear()


def read_once(key: Hashable, read: Callable[[], T]) -> T:
    """Return what `read` returns; inside of `sharing_reads`, what it returned before for the same key."""
    known = _reads.get()
    if known is None:
        return read()
    if key not in known:
        known.clear()  # one data set at a time, to save memory
        known[key] = read()
    result: T = known[key]
    return result


# Images in memory, as long as one of the seeds of this process uses them.
_IN_MEMORY: WeakValueDictionary[Hashable, Samples] = WeakValueDictionary()


@dataclass(frozen=True)
class ImageSet:
    """Say how the images of a set are made, and from which files."""

    what: str  # for people
    how: str  # what else the pixels depend on, besides files and size
    size: int  # pixels per side
    home: Path  # what the files' paths are relative to
    files: Sequence[str]
    rows: Sequence[int]  # the rows to make, in order
    make: Callable[[int], Image.Image]  # from a row to its image, at any size

    @property
    def key(self) -> str:
        """Return a hash of everything that the pixels depend on; refuse files that cannot be read."""
        digest = hashlib.sha256(f"{image_store.FORMAT}\n{PIL.__version__}\n{self.size}\n{self.how}\n".encode())
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
    """Count the memory that is left for decoded images."""

    left: int  # bytes

    def take(self, amount: int) -> bool:
        """Take so many bytes if they are left; return whether they were."""
        fits = amount <= self.left
        self.left -= amount if fits else 0
        return fits


def load_images(image_set: ImageSet, y: Tensor, room: Room, groups: Mapping[str, Groups] | None = None) -> Source:
    """Return the decoded images with their labels and groups, in memory where there is room, else on the disk."""
    on_disk = StoredImages(decoded(image_set), y, groups)
    if not room.take(on_disk.nbytes):
        return on_disk
    named = tuple((name, of.names, of.codes.numpy().tobytes()) for name, of in on_disk.groups.items())
    rows = torch.arange(len(on_disk))

    def read() -> Samples:
        try:
            return on_disk[rows]
        except BadCache:  # the damaged file is removed by now
            return StoredImages(decoded(image_set), y, groups)[rows]

    return in_use((on_disk.path, y.numpy().tobytes(), named), read)


def in_use(key: Hashable, make: Callable[[], Samples]) -> Samples:
    """Return the samples that a seed of this process uses by the same key; if none does, what `make` returns."""
    if (samples := _IN_MEMORY.get(key)) is None:
        _IN_MEMORY[key] = samples = make()
    return samples


def decoded(image_set: ImageSet) -> Path:
    """Return the file with the decoded images, which is made if need be."""
    key = image_set.key
    path = cache_folder() / f"{key}.images"
    if image_store.whole(path, key):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with decoding_lock(path.parent, image_set.what):
            if not image_store.whole(path, key):  # no other process made it meanwhile
                for left_over in path.parent.glob("*.part"):
                    left_over.unlink()
                image_store.write(path, key, len(image_set.rows), image_set.size, blocks(image_set))
    except OSError as error:
        raise BadRequest(f"{path.parent}: {error.strerror}; {way_on(error, image_set)} with DROPTOP_CACHE") from None
    return path


def way_on(error: OSError, image_set: ImageSet) -> str:
    """Return what to do where decoded images cannot be kept: make room if that is what lacks, or name a folder."""
    if error.errno in FULL:
        need = image_store.file_size(len(image_set.rows), image_set.size) / 2**20
        return f"the decoded images of {image_set.what} take {need:,.0f} MiB: make room, or name another folder"
    return f"the decoded images of {image_set.what} are kept there: name a folder that can be written"


@contextmanager
def decoding_lock(place: Path, what: str) -> Iterator[None]:
    """Let one process at a time decode into a folder, as one keeps all cores busy."""
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
    """Yield the images of a set in order, some at a time."""

    def pixels(row: int) -> Pixels:
        return np.asarray(fit(image_set.make(row), (image_set.size, image_set.size))).transpose(2, 0, 1)

    return map(np.stack, in_parallel(pixels, image_set.rows, progress.get(), image_set.what))


def in_parallel(work: Callable[[T], R], jobs: Sequence[T], report: FileProgress, what: str) -> Iterator[list[R]]:
    """Yield what `work` returns for each job, in order, some at a time; report after each block."""
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(jobs), BLOCK):
            yield list(pool.map(work, jobs[start : start + BLOCK]))
            report(min(start + BLOCK, len(jobs)), len(jobs), what)
