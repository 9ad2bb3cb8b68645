"""What a study names is executed only if the user has named it before, or says so now by `--trust`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from droptop.runs.kept_files import kept
from droptop.runs.trust import Kept, Options, executing, note_places, paths_of
from droptop.sweeps.grid import tables_of


@contextmanager
def trusted_study(source: Path, out: Path, trust: bool, again: str) -> Iterator[None]:
    """Let what a study names be executed inside this context, as far as the user has named or trusts it.

    Args:
        source: The TOML file of the study. Of a file in the folder, new places of data are noted too; another is one
            that the user has named, and its data with it.
        out: Folder of the study, which may not be there yet; its copies stand in for files that are gone or changed.
        trust: Whether the user has said that what the study names may be executed.
        again: What the user does to say so, for the message.

    Raises:
        BadRequest: As `runs.trust.trusted` does. Nothing was executed.
    """
    options: list[Options] = []
    if source.is_file():  # others are refused by whoever reads them
        top, grids, also = tables_of(source)
        options = [top, *grids, *also]
    with trusted_cells(source, out, options, trust, again):
        yield


@contextmanager
def trusted_cells(source: Path, out: Path, options: Sequence[Options], trust: bool, again: str) -> Iterator[None]:
    """Let what the options of a study's cells name be executed, as `trusted_study` does; `source` says them."""
    if source.parent == out:
        note_places(out, options)
    copies: list[Kept] = []
    if any(map(paths_of, options)):
        runs = sorted(path.parent for path in (out / "runs").glob("*/environment.json"))
        copies = [Kept(copy, copy.place(run)) for run in runs for copy in kept(run)]
    with executing(source, options, copies, trust, again):
        yield
