"""The maps that runs record, made small enough for a page: a byte a cell of attention, a bit a cell dropped."""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from droptop.runs.records import Maps

MOST_BYTES = 700_000  # of all maps on a page
MOST_CELLS = 32  # a side of an attention map
MOST_PIXELS = 128  # a side of an image
TOP = 0.05  # share of the cells that counts as what is attended to most


def attention_data(arms: dict[str, Maps], notes: list[str]) -> dict[str, Any] | None:
    """What the page's pictures are drawn from: images, and for each arm and moment their maps."""
    if not arms:
        return None
    first = next(iter(arms.values()))
    steps = sorted(set.intersection(*({moment.step for moment in maps.moments} for maps in arms.values())))
    shown = len(first.images)
    if not steps or any(maps.names[:shown] != first.names[:shown] for maps in arms.values()):
        return None
    moments = {arm: {moment.step: moment for moment in maps.moments} for arm, maps in arms.items()}
    size = sum(
        quantised(own[steps[0]].attention[:shown]).size + own[steps[0]].attention[:shown].size // 8
        for own in moments.values()
    )
    room = max(2, MOST_BYTES // size)
    if len(steps) > room:
        notes.append(f"Maps of {room} of {len(steps)} moments are shown.")
        steps = [steps[place] for place in np.linspace(0, len(steps) - 1, room).round().astype(int)]
    if max(first.moments[0].attention.shape[1:]) > MOST_CELLS:
        notes.append(f"Attention is shown at a resolution of {MOST_CELLS} cells; dropped cells are shown as they are.")
    return {
        "drops": any(own[step].dropped is not None for own in moments.values() for step in steps),
        "images": [picture(image) for image in first.images],
        "names": first.names[:shown],
        "moments": [{"step": step, "task": moments[next(iter(arms))][step].task + 1} for step in steps],
        "arms": [
            {
                "name": arm,
                "cells": list(quantised(own[steps[0]].attention[:shown]).shape[1:]),
                "grid": list(own[steps[0]].attention.shape[1:]),
                "attention": [encoded(quantised(own[step].attention[:shown])) for step in steps],
                "dropped": [
                    None if (gone := own[step].dropped) is None else encoded(np.packbits(gone[:shown]))
                    for step in steps
                ],
            }
            for arm, own in moments.items()
        ],
    }


def quantised(attention: np.ndarray) -> np.ndarray:
    """Each map from its lowest value (0) to its highest (255), at most MOST_CELLS a side."""
    maps = np.stack([shrunk(own) for own in attention.astype(np.float32)])
    low, high = (edge(maps, axis=(1, 2), keepdims=True) for edge in (np.min, np.max))
    return (255 * (maps - low) / np.maximum(high - low, 1e-12)).round().astype(np.uint8)


def shrunk(one: np.ndarray) -> np.ndarray:
    """A map of at most MOST_CELLS a side, by averages."""
    height, width = (min(side, MOST_CELLS) for side in one.shape)
    if (height, width) == one.shape:
        return one
    return np.asarray(Image.fromarray(one, "F").resize((width, height), Image.Resampling.BOX))


def picture(image: np.ndarray) -> str:
    """An image (height, width, channels) as a data URI: small ones to the pixel, large ones made smaller."""
    found, file = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image), io.BytesIO()
    if max(found.size) <= MOST_PIXELS:
        found.save(file, "PNG", optimize=True)
        return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    found.thumbnail((MOST_PIXELS, MOST_PIXELS))
    found.convert("RGB").save(file, "JPEG", quality=88)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


def encoded(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode()


def attention_on_shortcut(maps: Maps) -> list[tuple[int, float]]:
    """After each recorded step, the share of the most attended cells that the shortcut covers, in percent, over images
    of all classes, those to come as well; none where nobody knows where it is."""
    if maps.shortcut is None:
        return []
    covered = maps.shortcut.reshape(len(maps.shortcut), -1)
    count = max(1, round(TOP * covered.shape[1]))
    points = []
    for moment in maps.moments:
        top = np.argsort(-moment.attention.reshape(covered.shape), axis=1, kind="stable")[:, :count]
        points.append((moment.step, round(100 * float(np.take_along_axis(covered, top, 1).mean()), 3)))
    return points
