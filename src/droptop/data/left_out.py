"""What a folder of images holds that is not taken, or lies elsewhere: said in a line per reason, with an example."""

import os
import warnings
from pathlib import Path

from PIL import Image

from droptop.escapes import visible

ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
ARCHIVER = "__MACOSX"  # the folder that a Mac's archives have besides
DEEPER = "left out, images in folders below those of classes"
BROKEN = "left out, links that lead nowhere"
LINKED = "taken through links that lead out of the folder"
HIDDEN = "left out, hidden files and folders"
OUTSIDE = "left out, images outside of the folders of classes"
OTHERS = f"left out, images that do not end in {', '.join(ENDINGS)}"
MAC = f"left out, folders {ARCHIVER}"


class LeftOut:
    """Count what is left out of a folder, by reason."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}

    def add(self, reason: str, example: str | Path, count: int = 1) -> None:
        """Count what is left out for a reason; an example is a name or, as most are, a path below the folder."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        shown = os.path.relpath(example, self.home) if isinstance(example, Path) else example
        self.examples.setdefault(reason, shown.encode(errors="replace").decode())

    def note(self) -> None:
        """Warn once per reason."""
        for reason, count in self.counts.items():
            warnings.warn(visible(f"{self.home}: {reason}: {count:,}, such as {self.examples[reason]}"), stacklevel=3)


def is_image(name: str) -> bool:
    """Return whether a name ends as those of images do that are taken."""
    return name.lower().endswith(ENDINGS)


def looks_like_image(name: str) -> bool:
    """Return whether a name ends as any image does that could be read."""
    kind = Image.registered_extensions().get(Path(name).suffix.lower())
    return kind in Image.OPEN


def is_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file or a link to one; a link that leads in a circle is none."""
    return entry.is_file(follow_symlinks=False) or (entry.is_symlink() and os.path.isfile(entry.path))


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; a link that leads in a circle is none."""
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and os.path.isdir(entry.path))


def leads_out(link: str | Path, home: Path) -> bool:
    """Return whether a link leads to what lies outside of a folder."""
    return not Path(os.path.realpath(link)).is_relative_to(os.path.realpath(home))


def images_below(folder: str) -> list[Path]:
    """Return the images in a folder and in all folders below it, but for hidden ones."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != ARCHIVER)
        found += [Path(place, name) for name in sorted(names) if not name.startswith(".") and is_image(name)]
    return found
