"""Checks of every file of a data set: each image decodes, each mask fits; one bad file does not hide the others."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from droptop.data.image_cache import in_parallel
from droptop.data.image_decoding import read_image
from droptop.data.image_folders import ImageFolder
from droptop.data.root import FileProgress
from droptop.data.scenes import Scenes
from droptop.errors import BadRequest, all_refusals, refuse
from droptop.escapes import visible

R = TypeVar("R")
AT_LEAST = 1024  # pixels per side at which a larger JPEG may be decoded: all of it is read nevertheless


def check_images(part: ImageFolder, what: str, progress: FileProgress) -> str:
    """Decode all images and return a line with their number; refuse them with every file that does not decode."""
    check_rows(lambda row: read_image(part.path(row), AT_LEAST).size, range(len(part)), what, progress)
    counts = ", ".join(f"{name} {len(rows)}" for name, rows in zip(part.classes, part.rows_of))
    return visible(f"{what}: {len(part)} images decode ({counts})")


def check_scenes(scenes: Scenes, what: str, progress: FileProgress) -> str:
    """Read all masks and return a line with their number; refuse those that are missing or do not fit their images."""
    rows = [row for row in range(len(scenes.part)) if scenes.mask_path(row).is_file()]
    with all_refusals() as trying:
        with trying():
            scenes.complete()
        with trying():
            empty = check_rows(lambda row: not scenes.read(row)[1].any(), rows, what, progress)
    return f"{what}: {len(empty)} masks fit their images" + (f", {sum(empty)} of them are empty" if any(empty) else "")


def check_rows(work: Callable[[int], R], rows: Sequence[int], what: str, progress: FileProgress) -> list[R]:
    """Return what `work` returns for each row; raise all of its refusals together."""

    def attempt(row: int) -> R | BadRequest:
        try:
            return work(row)
        except BadRequest as error:
            return error

    answers = [answer for block in in_parallel(attempt, rows, progress, what) for answer in block]
    refuse([answer for answer in answers if isinstance(answer, BadRequest)])
    return [answer for answer in answers if not isinstance(answer, BadRequest)]
