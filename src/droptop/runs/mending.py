"""What to do about a config.toml that cannot be read: where the same bytes can be had from."""

from pathlib import Path

from droptop.errors import typed
from droptop.system.json_files import read_json


def way_on(file: Path) -> str:
    """Return what to do about a damaged config.toml.

    A sweep writes those of its runs anew, and `resume` those of arms. That of a run or a comparison is made again, to
    the byte, by the flags that it recorded.
    """
    folder = file.parent
    study, comparison = folder.absolute().parent.parent, folder.absolute().parent
    if (study / "study.toml").is_file():
        return f"remove it, and {typed('sweep', '--out', folder.parent.parent)} writes it anew"
    if (comparison / file.name).is_file():
        return f"remove it, and {typed('resume', folder.parent)} writes it anew"
    if has_flags(folder):
        noted = folder / "environment.json"
        return f"put a copy in its place: the flags in {noted} make the same one in a new folder"
    return "put a copy in its place, or begin anew in another folder"


def has_flags(run: Path) -> bool:
    """Return whether a run or comparison has recorded the flags that make it."""
    try:
        return bool(read_json(run / "environment.json")["flags"])
    except (OSError, ValueError, LookupError, TypeError):
        return False
