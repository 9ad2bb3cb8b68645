"""What a command that shows a folder says besides: what does not fit and is left out, and what nobody can tell."""

from pathlib import Path

from droptop.errors import typed
from droptop.runs.manifest import Manifest, Unfit, read_manifest, run_of, sha256_of
from droptop.runs.seed_files import SeedFiles
from droptop.system.toml_files import seal_holds

LISTED = 20  # lines about what does not fit


class Findings:
    """Collect what does not fit in a folder, of the seeds that were read in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unfit: list[str] = []
        self.done = self.unsealed = 0  # seeds, and those of them without a manifest
        self.runs: dict[Path, set[str | None]] = {}  # where their seeds began, as manifests say
        self.elsewhere: dict[Path, list[int]] = {}  # seeds that began elsewhere than environment.json says
        self.began: dict[Path, str | None] = {}

    def add(self, files: SeedFiles) -> None:
        """Take in what is known of a seed by now."""
        self.unfit += files.unfit
        self.done += files.result is not None
        self.unsealed += files.unsealed
        run = files.run.path
        if run not in self.began:
            self.began[run] = run_of(run)
            self.runs[run] = set()
        if files.manifest is not None:
            self.runs[run].add(files.manifest.run)
            if files.manifest.run not in (None, self.began[run]):
                self.elsewhere.setdefault(run, []).append(files.seed)

    def edited(self) -> list[Path]:
        """Return the files of options that are not as droptop wrote them.

        Where there is a manifest, a file without a seal is not as droptop wrote it either.
        """
        sealed = {run for run, began in self.runs.items() if began}
        files = []
        for place in dict.fromkeys((self.folder, *self.runs)):
            path, written = place / "config.toml", manifest_or_none(place)
            held = seal_holds(path) if path.is_file() else True
            covered = place in sealed or written is not None or (place == self.folder and sealed)
            noted = None if written is None else written.files.get(path.name)
            if held is False or (held is None and covered) or (noted is not None and noted != sha256_of(path)):
                files.append(path)
        return files

    def problems(self) -> list[str]:
        """Return what does not fit besides the files that are left out, a line each."""
        lines = [f"{path} has changed since droptop wrote it" for path in self.edited()]
        for run, seeds in self.elsewhere.items():
            which = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
            lines.append(f"{run / 'environment.json'} is not the one under which {which} ran")
        began = manifest_or_none(self.folder)
        if self.folder not in self.elsewhere and began is not None and began.run not in (None, run_of(self.folder)):
            lines.append(f"{self.folder / 'environment.json'} has changed since droptop wrote it")
        return lines

    def lines(self) -> list[str]:
        """Return what to say of the folder, a line each."""
        lines = [*self.problems(), *(f"{line}: left out" for line in dict.fromkeys(self.unfit))]
        if len(lines) > LISTED:
            more = len(lines) - LISTED
            lines = [*lines[:LISTED], f"{more} more do not fit: {typed('verify', self.folder)} lists all"]
        if self.unsealed:
            lines.append(
                f"{self.unsealed} of {self.done} finished seeds in {self.folder} carry no checksums, as those of "
                "earlier versions: nobody can tell whether they were altered"
            )
        return lines


def manifest_or_none(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; None where there is none, or it is damaged."""
    try:
        return read_manifest(folder)
    except Unfit:
        return None
