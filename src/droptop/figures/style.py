"""The style of all figures, and how they become PNG files."""

import io
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FuncFormatter
from PIL import Image

from droptop.escapes import readable
from droptop.options import NO_DEBIAS
from droptop.system.files import write_atomic

PLAIN, DEBIASED = "#5b6b82", "#e0651b"
ARMS = (DEBIASED, "#2b7a78", "#8a4f9e", "#2d62b5", "#9a7a12", "#b03060")
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 9,
    "axes.titlesize": 9,
    "figure.titlesize": 11,
}
LONGEST = 200  # letters of a text
LACKING = "figures show boxes for letters that their font does not have"


def colour_of(arm: str, arms: Iterable[str] = ()) -> str:
    """Return the colour of an arm among all arms, of which the plain one is "none"."""
    others = [name for name in arms if name != NO_DEBIAS]
    place = others.index(arm) if arm in others else 0
    return PLAIN if arm == NO_DEBIAS else ARMS[place % len(ARMS)]


def in_legend(arm: str) -> str:
    """Return the name of an arm for a legend, which would leave out a name that begins with an underscore."""
    return f" {arm}" if arm.startswith("_") else arm


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text as a figure shows it: without characters that are not to be seen, and not too long."""
    text = readable(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def plain_text(figure: Figure) -> None:
    """Show every text of a figure as what it says: nothing between two dollar signs is a formula.

    Names on an axis stand in its formatter; the numbers that matplotlib writes there itself stay its own.
    """
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    for axis in axes:
        if isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
            names = [label.get_text() for label in axis.get_majorticklabels()]
            if names != (shown := [shortened(name) for name in names]):
                axis.set_ticks(axis.get_majorticklocs(), shown)
            for tick in axis.get_major_ticks():
                literal(tick.label1)
    of_axes = {label for axis in axes for label in axis.get_ticklabels(which="both")}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in of_axes:
            text.set_text(shortened(text.get_text()))
            literal(text)


def literal(text: Text) -> None:
    """Let matplotlib look for no formula in a text."""
    text.set_parse_math(False)
    text.set_usetex(False)


def picture(figure: Figure) -> Image.Image:
    """Return a figure as an image, and close it."""
    file = io.BytesIO()
    write(figure, file, 110)
    return Image.open(file).convert("RGB")


def save(figure: Figure, run: Path, name: str) -> None:
    """Write a figure to a PNG file in a run's figures/, and close it."""
    (run / "figures").mkdir(exist_ok=True)
    file = io.BytesIO()
    write(figure, file, 130)
    write_atomic(run / "figures" / f"{name}.png", file.getvalue())


def write(figure: Figure, file: io.BytesIO, dpi: int) -> None:
    """Write a figure as PNG, its names as they are, and close it.

    matplotlib warns of every letter that the font lacks; all of them become the same warning, which is shown once.
    """
    plain_text(figure)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, format="png", dpi=dpi)
    plt.close(figure)
    for warning in caught:
        warnings.warn(LACKING if "missing from font" in str(warning.message) else warning.message, stacklevel=2)
