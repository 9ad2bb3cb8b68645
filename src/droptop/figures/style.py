"""How figures look, and how they become PNG files."""

import io
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

PLAIN, DEBIASED = "#5b6b82", "#e0651b"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 9,
    "axes.titlesize": 9,
    "figure.titlesize": 11,
}
LACKING = "figures show boxes for letters that their font does not have"


def colour_of(arm: str) -> str:
    return PLAIN if arm == "none" else DEBIASED


def picture(figure: Figure) -> Image.Image:
    file = io.BytesIO()
    write(figure, file, 110)
    return Image.open(file).convert("RGB")


def save(figure: Figure, run: Path, name: str) -> None:
    (run / "figures").mkdir(exist_ok=True)
    write(figure, run / "figures" / f"{name}.png", 130)


def write(figure: Figure, file: Path | io.BytesIO, dpi: int) -> None:
    """Letters that the font lacks are told of in the same words for every one of them, so that they are said once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, format="png", dpi=dpi)
    plt.close(figure)
    for each in caught:
        warnings.warn(LACKING if "missing from font" in str(each.message) else each.message, stacklevel=2)
