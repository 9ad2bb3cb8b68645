"""Background variants written as folders of images, in the layout of the backgrounds challenge."""

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from droptop.data.image_cache import in_parallel, silent
from droptop.data.image_folders import read_part
from droptop.data.root import FileProgress
from droptop.data.scenes import Scenes, read_boxes
from droptop.data.variants import VARIANTS
from droptop.errors import BadRequest


def write_variants(source: Path, out: Path, names: Sequence[str] = VARIANTS, progress: FileProgress = silent) -> int:
    """Write OUT/VARIANT/{train,val}/CLASS/NAME.png for each image of `source` that has a mask; return their number.

    Either all files are written or none, and the same images give the same pixels. `scenes` describes the layout of
    `source`; refuses one without images or masks, an unknown variant, and an `out` that is not empty.
    """
    for name in names:
        if name not in VARIANTS:
            raise BadRequest(f"{name or 'an empty name'} is no variant that is made from masks: {', '.join(VARIANTS)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadRequest(f"{out} holds something already: choose a new or empty folder")
    if not source.is_dir():
        raise BadRequest(f"{source} is not {'a' if source.exists() else 'an existing'} folder")
    originals = source / "original" if (source / "original").is_dir() else source
    names_of_parts = [name for name in ("train", "test", "val") if (originals / name).is_dir()]
    if not names_of_parts:
        raise BadRequest(f"{source} holds no images: they belong in {source}/original/{{train,val}}/CLASS/")
    masked = [name for name in names_of_parts if (source / "masks" / name).is_dir()]
    if not masked:
        raise BadRequest(f"{source} holds no masks: they belong in {source}/masks/{names_of_parts[-1]}/CLASS/")
    boxes = read_boxes(source)
    everything = [Scenes(read_part(originals / name), source, boxes).complete() for name in masked]
    place = out.absolute()
    beside = place.with_name(f".{place.name}-{uuid.uuid4().hex[:8]}")
    try:
        beside.mkdir(parents=True)
        count = sum(_write(scenes, name, beside, progress) for scenes in everything for name in names)
        beside.replace(place)
        return count
    except OSError as error:
        raise BadRequest(f"{out}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write(scenes: Scenes, variant: str, out: Path, progress: FileProgress) -> int:
    """Write a variant of a part and return the number of images."""

    def write(row: int) -> None:
        scenes.make(variant, row).save(out / variant / f"{scenes.part.stem(row)}.png", "PNG")

    rows = range(len(scenes.part))
    for folder in {(out / variant / scenes.part.stem(row)).parent for row in rows}:
        folder.mkdir(parents=True, exist_ok=True)
    return sum(len(written) for written in in_parallel(write, rows, progress, f"{variant}/{folder.parent.name}"))
