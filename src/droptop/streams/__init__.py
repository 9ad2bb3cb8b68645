"""Streams by name: `STREAMS` says how each is configured, built and, unless told otherwise, learned from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest
from droptop.streams import cifar, fashion, folder, imagenet9, mnist
from droptop.streams.stream import Batch, Position, Samples, Source, Spec, Stream, StreamConfig

__all__ = ["FAMILIES", "STREAMS", "Batch", "Position", "Samples", "Source", "Spec", "Stream", "StreamConfig",
           "StreamKind", "find"]


@dataclass(frozen=True)
class StreamKind:
    build: Callable[[Any, int, int | None, Path | None], Stream]  # config, seed, limit, root of the data
    config: type[StreamConfig]
    preset: dict[str, Any]  # options of net and learner that suit this data
    about: str


def _imagenet9(variant: str) -> StreamKind:
    return StreamKind(partial(imagenet9.IMAGENET9.build, imagenet9.known(variant)), imagenet9.ImageNet9Config,
                      folder.PRESET_224, "ImageNet-9 without primates; test sets with other backgrounds")


def _tiny_imagenet9(variant: str) -> StreamKind:
    return StreamKind(partial(imagenet9.TINY.build, imagenet9.known(variant)), imagenet9.TinyImageNet9Config,
                      folder.PRESET, "the same on 64 px images in its layout")


def _folder(path: str) -> StreamKind:
    return StreamKind(partial(folder.folder, path), folder.FolderConfig, folder.PRESET, "your own images")


STREAMS: dict[str, StreamKind] = {
    "fashion": StreamKind(
        fashion.fashion, StreamConfig, fashion.PRESET, "no shortcut"),
    "fashion-sticker": StreamKind(
        fashion.fashion_sticker, fashion.StickerConfig, fashion.PRESET,
        "a coloured sticker on the border tells the class"),
    "fashion-background": StreamKind(
        fashion.fashion_background, fashion.ShortcutConfig, fashion.PRESET,
        "a texture behind the garment tells the class"),
    "split-cifar10": StreamKind(
        cifar.split_cifar10, StreamConfig, cifar.PRESET, "CIFAR-10, 2 classes a task"),
    "split-cifar100": StreamKind(
        cifar.split_cifar100, StreamConfig, cifar.PRESET_100, "CIFAR-100, 20 classes a task"),
    "split-mnist": StreamKind(
        mnist.split_mnist, StreamConfig, mnist.PRESET, "MNIST, 2 digits a task"),
    "biased-mnist": StreamKind(
        mnist.biased_mnist, mnist.ColourConfig, mnist.PRESET, "MNIST, whose colour tells the digit"),
    "split-imagenet9": _imagenet9("original"),
    "split-tiny-imagenet9": _tiny_imagenet9("original"),
}

# Streams whose name goes on after a colon, such as `folder:PATH`: what stands there becomes a stream of its own.
FAMILIES: dict[str, Callable[[str], StreamKind]] = {
    "folder": _folder,  # PATH
    "split-imagenet9": _imagenet9,  # the variant to train on
    "split-tiny-imagenet9": _tiny_imagenet9,
}


def find(name: str) -> StreamKind:
    """The stream of this name."""
    head, colon, rest = name.partition(":")
    if name in STREAMS:
        return STREAMS[name]
    if colon and rest and head in FAMILIES:
        return FAMILIES[head](rest)
    known = [*STREAMS, *(f"{family}:..." for family in FAMILIES)]
    raise BadRequest(f"--data takes one of {', '.join(known)}, not {name}")
