"""Streams by name: `STREAMS` says how each is configured, built and, unless told otherwise, learned from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from droptop.streams import fashion
from droptop.streams.stream import Batch, Position, Samples, Spec, Stream, StreamConfig

__all__ = ["STREAMS", "Batch", "Position", "Samples", "Spec", "Stream", "StreamConfig", "StreamKind"]


@dataclass(frozen=True)
class StreamKind:
    build: Callable[[Any, int, int | None], Stream]  # config, seed, limit
    config: type[StreamConfig]
    classes: tuple[str, ...]
    preset: dict[str, Any]  # options of net and learner that suit this data
    about: str


STREAMS: dict[str, StreamKind] = {
    "fashion": StreamKind(
        fashion.fashion, StreamConfig, fashion.CLASSES, fashion.PRESET, "no shortcut"),
    "fashion-sticker": StreamKind(
        fashion.fashion_sticker, fashion.StickerConfig, fashion.CLASSES, fashion.PRESET,
        "a coloured sticker on the border tells the class"),
    "fashion-background": StreamKind(
        fashion.fashion_background, fashion.ShortcutConfig, fashion.CLASSES, fashion.PRESET,
        "a texture behind the garment tells the class"),
}
