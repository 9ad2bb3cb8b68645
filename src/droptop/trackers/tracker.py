"""What a tracker is."""

from pathlib import Path
from typing import Any

from PIL import Image


class Tracker:
    """Follows one seed, in the process that trains it. A subclass overrides what it cares for.

    Whenever a seed is started or resumed, a new tracker is told everything from the first step on, what was measured
    before the interruption too, and replaces whatever an earlier one left in the seed's folder. What was measured after
    the last checkpoint before a crash is thereby forgotten, and nothing is told twice.
    """

    def __init__(self, folder: Path, group: str, name: str) -> None:
        """`folder` is the seed's own; `group` is the name of its run or comparison, `name` its own within it."""
        self.folder, self.group, self.name = folder, group, name

    def hyperparameters(self, values: dict[str, Any]) -> None:
        """Every option by its path, and the seed; the first thing that is told."""

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """What was measured at a step: the loss at every one, all others where there is something new."""

    def figure(self, name: str, picture: Image.Image) -> None:
        """A picture of the whole seed, at its end. None is drawn where nobody overrides this."""

    def close(self) -> None:
        """The seed is done, interrupted or failed."""
