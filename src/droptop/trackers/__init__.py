"""Trackers: TensorBoard, Weights & Biases, a CSV file, or anybody's own, told what every seed measures.

    droptop run --log tensorboard,csv ...              or --log MODULE:CLASS
    droptop.run(..., log=MyTracker)                    # a class that the seeds' processes can import; in a module of
                                                       # its own, `droptop resume` on the command line can as well

A run's results do not depend on who follows it: metrics.jsonl is the same, and a tracker that fails is left behind.
"""

import importlib
import importlib.util
from typing import Any

from droptop.errors import BadRequest, require
from droptop.trackers.tracker import Tracker

__all__ = ["TRACKERS", "Tracker", "check", "find", "name_of", "names"]

TRACKERS = {
    "csv": "droptop.trackers.csv_file:CsvFile",
    "tensorboard": "droptop.trackers.tensorboard:TensorBoard",
    "wandb": "droptop.trackers.wandb:WeightsAndBiases",
}
PACKAGES = ("tensorboard", "wandb")  # each is an extra of its own name
TAKES = f"some of {', '.join(TRACKERS)} and MODULE:CLASS, separated by commas"


def names(log: str | None) -> list[str]:
    """The trackers that an option asks for, each once."""
    found = list(dict.fromkeys(name.strip() for name in (log or "").split(","))) if log is not None else []
    for name in found:
        require(name in TRACKERS or ":" in name, "log", TAKES, name or "an empty name")
    return found


def check(log: str | None) -> None:
    """Refuses trackers that cannot be had on this machine."""
    for name in names(log):
        if name in PACKAGES and importlib.util.find_spec(name) is None:
            raise BadRequest(f"--log {name} takes the package {name}: pip install 'droptop[{name}]'")
        find(name)


def find(name: str) -> type[Tracker]:
    """The class of a name."""
    module, _, path = TRACKERS.get(name, name).partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadRequest(f"--log {name}: {error}") from None
    require(isinstance(found, type) and issubclass(found, Tracker), "log", f"{TAKES}, a droptop.Tracker", name)
    return found


def name_of(tracker: type[Tracker]) -> str:
    """What a class is known by in other processes, which import it."""
    name = f"{tracker.__module__}:{tracker.__qualname__}"
    if "<locals>" in name:
        raise BadRequest(f"log takes a class that other processes can import; {name} is defined inside of a function")
    return name
