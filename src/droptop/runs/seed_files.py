"""The files of one seed for whoever shows them: each is given only if it is what the seed's manifest says.

    files = SeedFiles(run, seed)
    files.result        None until the seed is done, or where it does not fit
    files.lines         of metrics.jsonl
    files.unfit         what was left out so far, in a line each

A seed that is not done, or that an earlier version wrote, has no manifest: then a file needs only to look right.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

from droptop.runs.folder import RunFolder, seed_folder
from droptop.runs.manifest import Manifest, Unfit, read_manifest
from droptop.runs.records import Confusion, Maps, read_confusion, read_maps
from droptop.runs.verified import Lines, checked_result, lines_of
from droptop.system.locks import is_locked
from droptop.system.plain_files import bytes_of


class SeedFiles:
    """Read one seed of a run; `unfit` gets a line per file that does not fit, which is left out.

    A `whole` result has all that pages show; `results` and `status` need less.
    """

    def __init__(self, run: RunFolder, seed: int, whole: bool = False) -> None:
        self.run, self.seed, self.folder = run, seed, seed_folder(run.path, seed)
        self.unfit: list[str] = []
        self.result: dict[str, Any] | None = None
        self.manifest: Manifest | None = None  # None where there is none, or it is damaged
        self.foreign = False  # whether nothing here can be told to be this seed's
        try:
            self.manifest = read_manifest(self.folder)
            if self.manifest is not None:
                self.manifest.check_seed(self.folder, seed, run.arm, run.configuration)
        except Unfit as error:
            self.foreign = True
            self.unfit.append(str(error))
        if not self.foreign:
            try:
                self.result = checked_result(self.folder, self.manifest, whole)
                if self.result is None and self.manifest is not None and not is_locked(self.folder):
                    raise Unfit(f"{self.folder / 'result.json'} is gone")
            except Unfit as error:
                self.unfit.append(str(error))

    @property
    def unsealed(self) -> bool:
        """Return whether the seed is done and has no manifest, as in folders of earlier versions."""
        return self.result is not None and self.manifest is None

    def fits(self, path: Path) -> bool:
        """Return whether a file may be shown; add to `unfit` where not."""
        if self.manifest is None:
            return not self.foreign
        try:
            self.manifest.check(path, path.relative_to(self.folder).as_posix())
        except Unfit as error:
            self.unfit.append(str(error))
            return False
        return True

    def all_fit(self, kind: str) -> bool:
        """Return whether all files of a kind (`maps`, `confusion`) may be shown: none is missing, none is another."""
        listed = [] if self.manifest is None else [name for name in self.manifest.files if name.startswith(f"{kind}/")]
        there = (path.relative_to(self.folder).as_posix() for path in self.folder.glob(f"{kind}/*.safetensors"))
        fit = [self.fits(self.folder / name) for name in sorted({*listed, *there})]  # asked of every one
        return all(fit)

    @cached_property
    def lines(self) -> Lines:
        """Return the lines of metrics.jsonl; [] where it is missing or does not fit."""
        path = self.folder / "metrics.jsonl"
        if not path.exists() and (self.manifest is None or self.result is None):
            return []
        if not self.fits(path):
            return []
        return lines_of(bytes_of(path))[0]

    @cached_property
    def confusion(self) -> list[Confusion]:
        """Return the confusion after each task so far; [] where one of the files does not fit."""
        return read_confusion(self.run.path, self.seed) if self.all_fit("confusion") else []

    @cached_property
    def maps(self) -> Maps | None:
        """Return the maps of the seed; None where it recorded none, or one of the files does not fit."""
        return read_maps(self.run.path, self.seed) if self.all_fit("maps") else None
