"""Background variants as folders of images, in the backgrounds challenge's layout: for any tree that has masks."""

from collections.abc import Sequence
from pathlib import Path

from droptop.errors import BadRequest
from droptop.streams.cache import Progress, in_parallel, silent
from droptop.streams.scenes import Scenes, read_boxes
from droptop.streams.tree import read_part
from droptop.streams.variants import VARIANTS


def write_variants(source: Path, out: Path, names: Sequence[str] = VARIANTS, progress: Progress = silent) -> int:
    """Writes OUT/VARIANT/{train,val}/CLASS/NAME.png for each image of `source` (its layout: see `scenes`); gives how
    many were written. Each is there whole or not at all, and the same images give the same pixels."""
    for name in names:
        if name not in VARIANTS:
            raise BadRequest(f"{name} is no variant that is made from masks: {', '.join(VARIANTS)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadRequest(f"{out} holds something already: choose a new or empty folder")
    originals = source / "original" if (source / "original").is_dir() else source
    parts = [read_part(originals / name) for name in ("train", "test", "val") if (originals / name).is_dir()]
    if not parts:
        raise BadRequest(f"{source} holds no images: they belong in {source}/original/{{train,val}}/CLASS/")
    boxes = read_boxes(source)
    everything = [Scenes(part, source, boxes).complete() for part in parts]
    try:
        return sum(_write(scenes, name, out, progress) for scenes in everything for name in names)
    except OSError as error:
        raise BadRequest(f"{error.filename or out}: {error.strerror}") from None


def _write(scenes: Scenes, variant: str, out: Path, progress: Progress) -> int:
    """One variant of one part."""
    def write(row: int) -> None:
        path = out / variant / f"{scenes.part.stem(row)}.png"
        beside = path.with_suffix(".part")
        try:
            scenes.make(variant, row).save(beside, "PNG")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    rows = range(len(scenes.part))
    for folder in {(out / variant / scenes.part.stem(row)).parent for row in rows}:
        folder.mkdir(parents=True, exist_ok=True)
    return sum(len(written) for written in in_parallel(write, rows, progress, f"{variant}/{folder.parent.name}"))
