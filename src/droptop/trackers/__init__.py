"""Trackers: TensorBoard, Weights & Biases, a CSV file, or a class of your own; each is told what a seed measures.

    droptop run --log tensorboard,csv ...              or --log MODULE:CLASS
    droptop.run(..., log=MyTracker)                    # a class that the processes of the seeds can import; where it
                                                       # stands in a module, `droptop resume` can import it too

Results do not depend on trackers: metrics.jsonl is the same with and without, and a tracker that fails is dropped.
"""

import importlib
import importlib.util
from typing import Any

from droptop.errors import BadRequest, require
from droptop.system import trusted_files, user_files
from droptop.system.trusted_files import OwnFile
from droptop.trackers.tracker import Tracker

__all__ = ["TRACKERS", "Tracker", "check", "files", "find", "name_of", "names"]

TRACKERS = {
    "csv": "droptop.trackers.csv_file:CsvFile",
    "tensorboard": "droptop.trackers.tensorboard:TensorBoard",
    "wandb": "droptop.trackers.wandb:WeightsAndBiases",
}
PACKAGES = ("tensorboard", "wandb")  # the extra of each has the same name
TAKES = f"some of {', '.join(TRACKERS)} and MODULE:CLASS, separated by commas"


def names(log: str | None) -> list[str]:
    """Return the names that the option `log` lists, each once; refuse names of no tracker."""
    listed = [] if log is None else list(dict.fromkeys(name.strip() for name in log.split(",")))
    for name in listed:
        require(name in TRACKERS or ":" in name, "log", TAKES, name or "an empty name")
    return listed


def check(log: str | None) -> None:
    """Raise BadRequest if a tracker cannot be imported, or the package it needs is not installed."""
    for name in names(log):
        if name in PACKAGES and importlib.util.find_spec(name) is None:
            raise BadRequest(f"--log {name} takes the package {name}: pip install 'droptop[{name}]'")
        find(name)


def files(log: str | None) -> list[OwnFile]:
    """Return the files of the modules, none of them ours, that the option `log` names; import nothing."""
    own = [name for name in names(log) if name not in TRACKERS and not user_files.is_file(name)]
    return [file for name in own for file in trusted_files.module_files(name.partition(":")[0])]


def find(name: str) -> type[Tracker]:
    """Import the class of a tracker; refuse what is not there, no tracker, or a module nobody has vouched for."""
    if user_files.is_file(name):
        return user_files.load(name, Tracker, "log")
    module, _, path = TRACKERS.get(name, name).partition(":")
    try:
        built_in = name in TRACKERS
        tracker: Any = importlib.import_module(module) if built_in else trusted_files.import_module(module, "log")
        for part in path.split("."):
            tracker = getattr(tracker, part)
    except trusted_files.Untrusted:
        raise
    except (ImportError, AttributeError, ValueError) as error:
        raise BadRequest(f"--log {name}: {error}") from None
    except Exception as error:  # of a module of the user's own
        raise BadRequest(f"--log {name}: {type(error).__name__}: {error}") from None
    is_tracker = isinstance(tracker, type) and issubclass(tracker, Tracker)
    require(is_tracker, "log", f"{TAKES}, a droptop.Tracker", name)
    return tracker


def name_of(tracker: type[Tracker]) -> str:
    """Return MODULE:CLASS, by which other processes import a tracker, or FILE.py:CLASS of one in the script at work.

    Refuse classes inside of functions.
    """
    if tracker.__module__ == "__main__" and (in_file := user_files.name_of(tracker)) is not None:
        return in_file
    name = f"{tracker.__module__}:{tracker.__qualname__}"
    if "<locals>" in name:
        raise BadRequest(f"log takes a class that other processes can import; {name} is defined inside of a function")
    return name
