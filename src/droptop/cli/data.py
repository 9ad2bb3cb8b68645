"""`droptop data list | check | download | variants | sheet`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from rich.table import Column, Table
from tyro.conf import Positional, arg

from droptop.cli import arguments, help
from droptop.data.columns import Columns
from droptop.data.download import PACKAGES
from droptop.data.download import download as fetch
from droptop.data.root import Missing, data_root
from droptop.data.variants import VARIANTS
from droptop.errors import BadRequest, Damaged, meant, require
from droptop.report import file_progress as bars
from droptop.runs.trust import named
from droptop.streams import FAMILIES, STREAMS, Data, find, known_names
from droptop.system.terminal import Console, folded, say

OF_TABLES = (
    *("image_column", "label_column", "split_column", "train_split", "test_splits", "group_columns"),
    *("image_folder", "revision"),
)
MOST = 20  # damaged files that are named

USAGE = """\
usage: droptop data COMMAND ...

  list      lists every stream, whether its data is on this disk, and how to get the rest
              droptop data list --root ~/data
  check     reads every file of a set, and names those that are damaged
              droptop data check split-cifar10 --root ~/data
  download  fetches cifar10, cifar100 or mnist
              droptop data download cifar10 --root ~/data
  variants  writes images with other backgrounds, made from images and masks
              droptop data variants my/images my/variants --names only_fg,mixed_rand
  sheet     draws some images of every class and test set
              droptop data sheet folder:my/images sheet.png
"""

Name = Annotated[Positional[str], arg(metavar="NAME", help="Stream by name, such as split-cifar10 or folder:PATH.")]


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """Hold the options of `droptop data list`."""

    root: Path | None = None
    """Folder of the data sets; by default the one that DROPTOP_DATA names, else ./data."""

    def __post_init__(self) -> None:
        require(self.root is None or self.root.is_dir(), "root", "an existing folder", self.root)


@dataclass(frozen=True, kw_only=True)
class CheckOptions(ListOptions):
    """Hold the options of `droptop data check`."""

    name: Name
    image_column: str | None = None
    """Column of the images in csv:FILE or hf:OWNER/NAME; by default as in a run."""
    label_column: str | None = None
    """Column of the labels; by default as in a run."""
    split_column: str | None = None
    """Column that says which rows of csv:FILE are for training and which for testing; by default as in a run."""
    train_split: str | None = None
    """Split to train on; by default as in a run."""
    test_splits: str | None = None
    """Splits to test on, separated by commas; by default as in a run."""
    group_columns: str | None = None
    """Columns of groups, separated by commas; by default as in a run."""
    image_folder: str | None = None
    """Folder that the paths in csv:FILE are relative to; by default as in a run."""
    revision: str | None = None
    """Commit, branch or tag of hf:OWNER/NAME; by default as in a run."""

    @property
    def of_table(self) -> dict[str, Any]:
        """Return the options of the stream that say what to take of a table, those that are set."""
        return {name: value for name in OF_TABLES if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, kw_only=True)
class SheetOptions(CheckOptions):
    """Hold the options of `droptop data sheet`."""

    out: Annotated[Positional[Path], arg(metavar="OUT.png", help="The picture to write.")]
    seed: int = 0
    """Seed of the stream: it decides which images come first, which have a shortcut, and where."""
    shortcut: str = "none"
    """A cue to paint: sticker, watermark, frame, colour, background or frequency; see `droptop compare --help`."""
    shortcut_correlation: float = 0.95
    """Share of training images whose painted cue points to their class."""
    shortcut_strength: float | None = None
    """Strength of the cue; by default as in a run."""
    shortcut_size: int | None = None
    """Pixels of the cue; by default as in a run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.seed >= 0, "seed", "a number from 0", self.seed)
        if self.out.suffix.lower() != ".png":
            raise BadRequest(f"data sheet writes a picture named OUT.png, not {self.out}")
        if self.out.exists():
            raise BadRequest(f"{self.out} exists already: choose another name")
        if not self.out.absolute().parent.is_dir():
            raise BadRequest(f"{self.out.parent} is not an existing folder")


@dataclass(frozen=True, kw_only=True)
class DownloadOptions:
    """Hold the options of `droptop data download`."""

    name: Annotated[Positional[str], arg(metavar="NAME", help=f"{', '.join(PACKAGES)}, or a stream that needs them.")]
    root: Path | None = None
    """Folder to download to; by default the one that DROPTOP_DATA names, else ./data."""

    def __post_init__(self) -> None:
        folder = data_root(self.root)
        require(folder.is_dir() or not folder.exists(), "root", "a folder", folder)


@dataclass(frozen=True, kw_only=True)
class VariantsOptions:
    """Hold the options of `droptop data variants`."""

    source: Annotated[Positional[Path], arg(metavar="IN", help="Folder of original/{train,val}/CLASS and masks/.")]
    out: Annotated[Positional[Path], arg(metavar="OUT", help="Folder for the variants, new or empty.")]
    names: str = ",".join(VARIANTS)
    """Variants to make, separated by commas."""


def data(args: list[str], console: Console) -> int:
    """Call the command after `data`; return the exit code."""
    commands: dict[str, Callable[[list[str], Console], None]] = {
        "list": list_streams,
        "check": check,
        "download": download,
        "variants": variants,
        "sheet": sheet,
    }
    if not args or args[0] in help.WORDS:
        say(*USAGE.splitlines())
        return 0 if args else 2
    if args[0] not in commands:
        raise BadRequest(f"unknown command data {args[0]}: there are {', '.join(commands)}{meant(args[0], commands)}")
    commands[args[0]](args[1:], console)
    return 0


# -- Reading data -----------------------------------------------------------------------------------------------------


def list_streams(args: list[str], console: Console) -> None:
    """Print every stream, whether its data is on this disk, and how to get the rest."""
    options = arguments.read(
        ListOptions, args, "droptop data list", "lists every stream, and whether its data is on this disk"
    )
    rows: list[tuple[str, str, str]] = []
    missing: dict[str, list[str]] = {}  # streams without data, by the way to get it
    for name, kind in STREAMS.items():
        try:
            where = kind.data.where(options.root)
        except Missing as error:
            where = "not on this disk"
            missing.setdefault(error.how, []).append(name)
        except BadRequest as error:
            where = f"not whole: {error}"
        rows.append((name, where, kind.about))
        if name in FAMILIES:
            rows.append((f"{name}:{FAMILIES[name].takes}", "the same", FAMILIES[name].about))
    listed = {name for name, *_ in rows}
    rows += [(name, "where you keep it", about) for name, about in known_names().items() if name not in listed]
    if console.is_terminal:
        table = Table(Column("stream", no_wrap=True), "data", "what it is")
        for row in rows:
            table.add_row(*map(folded, row))
        console.print(table)
    else:  # a line per stream, for other programs
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for name, where, about in rows:
            say(f"{name:{widths[0]}}  {where:{widths[1]}}  {about}")
    lines = [
        f"looked in {data_root(options.root)} (--root, else DROPTOP_DATA, else ./data)",
        *(f"{', '.join(names)}: {how}" for how, names in missing.items()),
    ]
    console.print(*lines, sep="\n", soft_wrap=not console.is_terminal)


def images_of(name: str) -> Data:
    """Return the data of a stream, by the name of the stream or of the package that the data comes in."""
    return next((kind.data for kind in STREAMS.values() if kind.data.package == name), None) or find(name).data


def check(args: list[str], console: Console) -> None:
    """Read every file of a data set; raise BadRequest with the names of those that are damaged."""
    options = arguments.read(CheckOptions, args, "droptop data check", "reads every file of a data set")
    named({"data": options.name})
    images, columns = images_of(options.name), columns_of(options.name, options.of_table)
    with bars.shown("images" if images.package is None else "files") as progress:
        try:
            if images.check_columns is None:
                summary = images.check(options.root, progress)
            else:
                summary = images.check_columns(columns, progress)
        except Damaged as error:
            raise BadRequest(*listed(options.name, error.reasons)) from None
    lines = [f"{options.name}: in order", *summary.split("\n")]
    console.print(*lines, sep="\n", soft_wrap=True)


def columns_of(name: str, given: dict[str, Any]) -> Columns:
    """Return what is taken of the table behind a stream; refuse options that the stream does not have."""
    if not given:
        return Columns()
    config = find(name).config()
    for option in given:
        if not hasattr(config, option):
            raise BadRequest(f"stream {name} has no option {option}")
    columns: Columns = getattr(replace(config, **given), "columns", Columns())
    return columns


def listed(name: str, reasons: list[str]) -> list[str]:
    """Return what is wrong with a data set, a line per file."""
    shown = f", the first {MOST} of them" if len(reasons) > MOST else ""
    return [f"{name}: {len(reasons):,} files are not in order{shown}:", *(f"  {reason}" for reason in reasons[:MOST])]


def download(args: list[str], console: Console) -> None:
    """Download a data set."""
    options = arguments.read(DownloadOptions, args, "droptop data download", "fetches a data set")
    packages = {name: name for name in PACKAGES}
    packages |= {name: kind.data.package for name, kind in STREAMS.items() if kind.data.package is not None}
    if options.name not in packages:
        raise BadRequest(
            f"data download takes one of {', '.join(packages)}, not {options.name}; `droptop data list` "
            "tells where other data come from"
        )
    with bars.shown("bytes") as progress:
        summary = fetch(packages[options.name], options.root, progress)
    console.print(summary, soft_wrap=True)


# -- Making files of data ---------------------------------------------------------------------------------------------


def variants(args: list[str], console: Console) -> None:
    """Write images with other backgrounds, made from images and masks."""
    from droptop.data.variant_folders import write_variants

    options = arguments.read(VariantsOptions, args, "droptop data variants", "writes images with other backgrounds")
    with bars.shown("images") as progress:
        count = write_variants(options.source, options.out, options.names.split(","), progress)
    console.print(f"{count:,} images in {options.out}", soft_wrap=True)


def sheet(args: list[str], console: Console) -> None:
    """Draw some images of every class and test set as one picture."""
    options = arguments.read(SheetOptions, args, "droptop data sheet", "draws some images of every class and test set")
    from droptop.figures.contact_sheet import contact_sheet
    from droptop.runs.build import make_stream
    from droptop.system.files import write_atomic

    with bars.decoding():
        cue = {name: value for name, value in vars(options).items() if name.startswith("shortcut")}
        stream = make_stream(options.name, options.seed, root=options.root, drop_last=False, **cue, **options.of_table)
    try:
        write_atomic(options.out, contact_sheet(stream))
    except OSError as error:
        raise BadRequest(f"{options.out}: {error.strerror}") from None
    console.print(f"{options.name} is in {options.out}", soft_wrap=True)
