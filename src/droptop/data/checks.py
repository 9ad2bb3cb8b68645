"""Looking at every file of a set: does each image decode, does each mask fit? One bad file does not hide the others."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from droptop.data.image_cache import in_parallel, read_image
from droptop.data.image_folders import ImageFolder
from droptop.data.root import FileProgress
from droptop.data.scenes import Scenes
from droptop.errors import BadRequest, all_refusals, refuse

R = TypeVar("R")


def check_images(part: ImageFolder, what: str, progress: FileProgress) -> str:
    """How many images there are, all of which decode."""
    check_rows(lambda row: read_image(part.path(row)).size, range(len(part)), what, progress)
    counts = ", ".join(f"{name} {len(rows)}" for name, rows in zip(part.classes, part.rows_of))
    return f"{what}: {len(part)} images decode ({counts})"


def check_scenes(scenes: Scenes, what: str, progress: FileProgress) -> str:
    """How many masks there are, all of which fit their images."""
    there = [row for row in range(len(scenes.part)) if scenes.mask_path(row).is_file()]
    with all_refusals() as trying:
        with trying():
            scenes.complete()
        with trying():
            empty = check_rows(lambda row: not scenes.read(row)[1].any(), there, what, progress)
    return f"{what}: {len(empty)} masks fit their images" + (f", {sum(empty)} of them are empty" if any(empty) else "")


def check_rows(work: Callable[[int], R], rows: Sequence[int], what: str, progress: FileProgress) -> list[R]:
    """What `work` says of each row; or what those are refused for that it refuses."""

    def told(row: int) -> R | BadRequest:
        try:
            return work(row)
        except BadRequest as error:
            return error

    answers = [answer for some in in_parallel(told, rows, progress, what) for answer in some]
    refuse([answer for answer in answers if isinstance(answer, BadRequest)])
    return [answer for answer in answers if not isinstance(answer, BadRequest)]
