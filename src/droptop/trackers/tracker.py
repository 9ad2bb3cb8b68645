"""The interface that every tracker has."""

from pathlib import Path
from typing import Any

from PIL import Image


class Tracker:
    """Follow one seed, in the process that trains it. A subclass overrides the methods it needs.

    Whenever a seed is started or resumed, a new tracker is made. It is told everything from the first step on, also
    what was measured before the interruption, and replaces what an earlier tracker left in the folder. So nothing is
    told twice, and what was measured between the last checkpoint and a crash does not stay.
    """

    def __init__(self, folder: Path, group: str, name: str) -> None:
        """Begin to follow a seed.

        Args:
            folder: The folder of the seed, to write to.
            group: The name of its run or comparison.
            name: The name of the seed within the group.
        """
        self.folder, self.group, self.name = folder, group, name

    def hyperparameters(self, values: dict[str, Any]) -> None:
        """Take every option, once, before anything else.

        Args:
            values: Options by path, and the seed.
        """

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Take what was measured at a step: the loss at every step, other values where they are new.

        Args:
            step: The number of steps done.
            values: Numbers by name.
        """

    def figure(self, name: str, picture: Image.Image) -> None:
        """Take a figure of the whole seed, at its end; none is drawn for trackers that do not override this method.

        Args:
            name: The name of the figure.
            picture: The figure as an image.
        """

    def close(self) -> None:
        """End: the seed is done, interrupted, or has failed."""
