"""The maps that runs record, made small enough for a page: a byte per cell of attention, a bit per dropped cell."""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from droptop.report.page.charts import colour_of
from droptop.runs.records import Maps

MOST_BYTES = 700_000  # of all maps on a page
MOST_CELLS = 32  # per side of an attention map
MOST_PIXELS = 128  # per side of an image
TOP = 0.05  # share of the cells that counts as the most attended


def attention_data(arms: dict[str, Maps], notes: list[str]) -> dict[str, Any] | None:
    """Return what the page's pictures are drawn from: images and, per arm and moment, their maps.

    None without maps, or where the arms have no moment or no images in common. `notes` gets what was left out.
    """
    if not arms:
        return None
    first = next(iter(arms.values()))
    steps = sorted(set.intersection(*({moment.step for moment in maps.moments} for maps in arms.values())))
    shown = len(first.images)
    if not steps or any(maps.names[:shown] != first.names[:shown] for maps in arms.values()):
        return None
    moments = {arm: {moment.step: moment for moment in maps.moments} for arm, maps in arms.items()}
    first_maps = [by_step[steps[0]].attention[:shown] for by_step in moments.values()]
    size = sum(quantised(maps).size + maps.size // 8 for maps in first_maps)  # bytes per moment
    most = max(2, MOST_BYTES // size)
    if len(steps) > most:
        notes.append(f"Maps of {most} of {len(steps)} moments are shown.")
        steps = [steps[place] for place in np.linspace(0, len(steps) - 1, most).round().astype(int)]
    if max(first.moments[0].attention.shape[1:]) > MOST_CELLS:
        notes.append(f"Attention is shown at a resolution of {MOST_CELLS} cells; dropped cells are shown as they are.")
    return {
        "drops": any(by_step[step].dropped is not None for by_step in moments.values() for step in steps),
        "images": [picture(image) for image in first.images],
        "names": first.names[:shown],
        "moments": [{"step": step, "task": moments[next(iter(arms))][step].task + 1} for step in steps],
        "arms": [
            {
                "name": arm,
                "colour": colour_of(arm, list(arms)),
                "cells": list(quantised(by_step[steps[0]].attention[:shown]).shape[1:]),
                "grid": list(by_step[steps[0]].attention.shape[1:]),
                "attention": [encoded(quantised(by_step[step].attention[:shown])) for step in steps],
                "dropped": [
                    None if (dropped := by_step[step].dropped) is None else encoded(np.packbits(dropped[:shown]))
                    for step in steps
                ],
            }
            for arm, by_step in moments.items()
        ],
    }


def quantised(attention: np.ndarray) -> np.ndarray:
    """Return maps as bytes, each from 0 at its lowest value to 255 at its highest, with at most MOST_CELLS per side."""
    maps = np.stack([shrunk(map_HW) for map_HW in attention.astype(np.float32)])
    low, high = (edge(maps, axis=(1, 2), keepdims=True) for edge in (np.min, np.max))
    return (255 * (maps - low) / np.maximum(high - low, 1e-12)).round().astype(np.uint8)


def shrunk(map_HW: np.ndarray) -> np.ndarray:
    """Return a map with at most MOST_CELLS per side, by averaging cells."""
    height, width = (min(side, MOST_CELLS) for side in map_HW.shape)
    if (height, width) == map_HW.shape:
        return map_HW
    return np.asarray(Image.fromarray(map_HW, "F").resize((width, height), Image.Resampling.BOX))


def picture(image: np.ndarray) -> str:
    """Return an image (height, width, channels) as a data URI: a small one exactly, a large one as a small JPEG."""
    shown, file = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image), io.BytesIO()
    if max(shown.size) <= MOST_PIXELS:
        shown.save(file, "PNG", optimize=True)
        return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    shown.thumbnail((MOST_PIXELS, MOST_PIXELS))
    shown.convert("RGB").save(file, "JPEG", quality=88)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


def encoded(numbers: np.ndarray) -> str:
    """Return the bytes of an array in base64."""
    return base64.b64encode(numbers.tobytes()).decode()


def attention_on_shortcut(maps: Maps) -> list[tuple[int, float]]:
    """Return, per recorded step, the percentage of the most attended cells that lie on the shortcut.

    It is over images of all classes, also those that have not arrived. Empty where no shortcut is recorded.
    """
    if maps.shortcut is None:
        return []
    covered = maps.shortcut.reshape(len(maps.shortcut), -1)
    count = max(1, round(TOP * covered.shape[1]))
    points = []
    for moment in maps.moments:
        top = np.argsort(-moment.attention.reshape(covered.shape), axis=1, kind="stable")[:, :count]
        points.append((moment.step, round(100 * float(np.take_along_axis(covered, top, 1).mean()), 3)))
    return points
