"""Streams by name: how each is configured and built, and with which options it is learned from by default."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from droptop.data import cifar as cifar_files
from droptop.data import csv_images, hub_images
from droptop.data import fashion as fashion_images
from droptop.data import folder as user_folder
from droptop.data import imagenet9 as imagenet9_files
from droptop.data import mnist as mnist_files
from droptop.data import published as published_files
from droptop.data.columns import Columns
from droptop.data.root import FileProgress
from droptop.errors import BadRequest, a_kind, meant
from droptop.streams import cifar, fashion, folder, hub, imagenet9, listed, mnist, user_stream
from droptop.streams.colours import ColourConfig
from droptop.streams.shortcuts import ShortcutConfig
from droptop.streams.stream import Stream, StreamConfig
from droptop.system import user_files
from droptop.types import Batch, Position, Samples, Source, Spec

__all__ = [
    "FAMILIES",
    "STREAMS",
    "Batch",
    "Data",
    "Position",
    "Samples",
    "Source",
    "Spec",
    "Stream",
    "StreamConfig",
    "StreamKind",
    "find",
    "known_names",
]


@dataclass(frozen=True)
class Data:
    """The images behind a stream. Both functions raise `Missing` where the images are not on this disk."""

    where: Callable[[Path | None], str]  # from the root to the place of the images; reads none of them
    check: Callable[[Path | None, FileProgress], str]  # reads every file and returns a summary
    check_columns: Callable[[Columns, FileProgress], str] | None = None  # the same of a table, where columns are named
    package: str | None = None  # the name that `droptop data download` takes
    version: Callable[[Columns], str | None] = lambda columns: (
        None
    )  # a hash by which a run knows images that may change


BUILT_IN = Data(lambda root: "built in", fashion_images.check)
CIFAR10 = Data(
    partial(cifar_files.where, cifar_files.CIFAR10), partial(cifar_files.check, cifar_files.CIFAR10), package="cifar10"
)
CIFAR100 = Data(
    partial(cifar_files.where, cifar_files.CIFAR100),
    partial(cifar_files.check, cifar_files.CIFAR100),
    package="cifar100",
)
MNIST = Data(mnist_files.where, mnist_files.check, package="mnist")
IMAGENET9 = Data(imagenet9_files.IMAGENET9.where, imagenet9_files.IMAGENET9.check)
TINY_IMAGENET9 = Data(imagenet9_files.TINY.where, imagenet9_files.TINY.check)


@dataclass(frozen=True)
class StreamKind:
    """Say how to build a stream, and with which options to learn from it by default."""

    build: Callable[[Any, int, int | None, Path | None], Stream]  # config, seed, limit, root of the data
    config: Callable[[], StreamConfig]  # the default options
    preset: dict[str, Any]  # options of net and learner that suit this data
    about: str
    data: Data = BUILT_IN
    border: int = 0  # black pixels around its images
    on_cpu: dict[str, Any] = field(default_factory=dict)  # options that take the place of the preset's on a CPU

    def preset_on(self, device: str) -> dict[str, Any]:
        """Return the options of net and learner that suit this data on a device."""
        return self.preset | (self.on_cpu if device == "cpu" else {})


@dataclass(frozen=True)
class Family:
    """A family of streams, whose names continue after a colon."""

    takes: str  # what stands after the colon
    about: str
    kind: Callable[[str], StreamKind]


def _imagenet9(variant: str) -> StreamKind:
    return StreamKind(
        partial(imagenet9.split_imagenet9, imagenet9_files.IMAGENET9, imagenet9_files.known(variant)),
        imagenet9.ImageNet9Config,
        folder.PRESET_224,
        "ImageNet-9 without primates; test sets with other backgrounds",
        IMAGENET9,
    )


def _tiny_imagenet9(variant: str) -> StreamKind:
    return StreamKind(
        partial(imagenet9.split_imagenet9, imagenet9_files.TINY, imagenet9_files.known(variant)),
        imagenet9.TinyImageNet9Config,
        folder.PRESET,
        "images of 64 px in the layout of ImageNet-9",
        TINY_IMAGENET9,
    )


def own_images(build: Callable[..., Stream], config: Callable[[], StreamConfig], about: str, data: Data) -> StreamKind:
    """Return the kind of a stream of a user's own images, whose net on a CPU is one that a person can wait for."""
    return StreamKind(build, config, folder.PRESET, about, data, on_cpu=folder.ON_CPU)


def _folder(path: str) -> StreamKind:
    data = Data(
        lambda root: user_folder.where(path),
        lambda root, progress: user_folder.check(path, progress),
        version=lambda columns: user_folder.version(path),
    )
    return own_images(partial(folder.folder, path), folder.FolderConfig, "your own images", data)


def in_columns(files: ModuleType, place: str) -> Data:
    """Return the images of a table, by the functions of the module that reads its kind."""
    return Data(
        lambda root: files.where(place),
        lambda root, progress: files.check(place, progress),
        lambda columns, progress: files.check(place, progress, columns),
        version=partial(files.version, place),
    )


def _csv(path: str) -> StreamKind:
    return own_images(
        partial(listed.csv_file, path), listed.CsvConfig, "images in a list", in_columns(csv_images, path)
    )


def _published(files: published_files.Published, about: str) -> StreamKind:
    data = Data(files.where, files.check)
    return StreamKind(partial(listed.published, files), listed.PublishedConfig, folder.PRESET_224, about, data)


def _spawrious(variant: str) -> StreamKind:
    return _published(published_files.known_spawrious(variant), "dogs, each breed in its place")


def _nico(context: str) -> StreamKind:
    return _published(published_files.known_nico(context), "sixty classes in six contexts, one kept for testing")


def _hub(name: str) -> StreamKind:
    return own_images(partial(hub.hub, name), hub.HubConfig, "images of the hub", in_columns(hub_images, name))


def _waterbirds() -> StreamKind:
    name = "grodino/waterbirds"  # with the groups of Sagawa et al. to the image
    data = Data(
        lambda root: hub_images.where_cached("waterbirds", name),
        lambda root, progress: hub_images.check(name, progress),
        version=partial(hub_images.version, name),
    )
    about = "land birds and water birds, mostly before land and water"
    return StreamKind(partial(hub.hub, name), hub.WaterbirdsConfig, folder.PRESET_224, about, data)


STREAMS: dict[str, StreamKind] = {
    "fashion": StreamKind(fashion.fashion, StreamConfig, fashion.PRESET, "no shortcut", border=fashion_images.PADDING),
    "fashion-sticker": StreamKind(
        fashion.fashion_sticker,
        fashion.StickerConfig,
        fashion.PRESET,
        "a coloured sticker on the border tells the class",
        border=fashion_images.PADDING,
    ),
    "fashion-background": StreamKind(
        fashion.fashion_background,
        ShortcutConfig,
        fashion.PRESET,
        "a texture behind the garment tells the class",
        border=fashion_images.PADDING,
    ),
    "fashion-colour": StreamKind(
        fashion.fashion_colour,
        ColourConfig,
        fashion.PRESET,
        "the garment's colour tells the class",
        border=fashion_images.PADDING,
    ),
    "split-cifar10": StreamKind(
        cifar.split_cifar10, StreamConfig, cifar.PRESET, "CIFAR-10, 2 classes per task", CIFAR10
    ),
    "split-cifar100": StreamKind(
        cifar.split_cifar100, StreamConfig, cifar.PRESET_100, "CIFAR-100, 20 classes per task", CIFAR100
    ),
    "split-mnist": StreamKind(
        mnist.split_mnist, StreamConfig, mnist.PRESET, "MNIST, 2 digits per task", MNIST, mnist_files.PADDING
    ),
    "biased-mnist": StreamKind(
        mnist.biased_mnist,
        ColourConfig,
        mnist.PRESET,
        "MNIST, whose colour tells the digit",
        MNIST,
        mnist_files.PADDING,
    ),
    "split-imagenet9": _imagenet9("original"),
    "split-tiny-imagenet9": _tiny_imagenet9("original"),
    "waterbirds": _waterbirds(),
    "bar": _published(published_files.BAR, "actions before their usual places; in the test set, before others"),
    "celeba": _published(published_files.CELEBA, "blond hair or not, which goes with gender"),
}

# Streams whose names continue after a colon, such as `folder:PATH`.
FAMILIES: dict[str, Family] = {
    "folder": Family("PATH", "your own images, PATH/train/CLASS/*.jpg and, if there are any, PATH/test", _folder),
    "csv": Family("FILE", "your own images, listed in a table of paths and labels", _csv),
    "hf": Family("OWNER/NAME", "a data set of the Hugging Face hub, or hf:FOLDER of its files", _hub),
    "spawrious": Family("VARIANT", "dogs, each breed in its place; such as spawrious:o2o_hard", _spawrious),
    "nico": Family("CONTEXT", "NICO++, a context kept for testing, such as nico:water", _nico),
    "split-imagenet9": Family("VARIANT", "trains on one of its variants, such as only_fg", _imagenet9),
    "split-tiny-imagenet9": Family("VARIANT", "trains on one of its variants", _tiny_imagenet9),
}


def find(name: str) -> StreamKind:
    """Return the stream of a name; refuse a name that is unknown or not complete.

    A user's own stream is named by a Python file, or by what stands for an object that was handed over.
    """
    if not isinstance(name, str):
        raise BadRequest(
            f"a stream is named by a text such as fashion-sticker or folder:PATH, not by {a_kind(type(name))}"
        )
    if user_files.is_own(name):
        return own_kind(user_stream.maker(name))
    head, colon, rest = name.partition(":")
    if name in STREAMS:
        return STREAMS[name]
    if colon and rest and head in FAMILIES:
        return FAMILIES[head].kind(rest)
    if head in FAMILIES:
        raise BadRequest(f"{name} is not the whole name: {head}:{FAMILIES[head].takes}")
    if name and Path(name).is_dir():
        raise BadRequest(f"there is no stream {name}; did you mean folder:{name}?")
    raise BadRequest(
        f"there is no stream {name or 'without a name'}; there are {', '.join(known_names())}{meant(name, STREAMS)}"
    )


def own_kind(make: user_stream.Maker) -> StreamKind:
    """Return the kind of a user's own stream; where its name is built in, it is learned from as that one is."""
    first = user_stream.first(make)
    known = STREAMS.get(first.name)
    return StreamKind(
        partial(user_stream.build, make),
        lambda: first.config,
        known.preset if known else {},
        "your own",
        Data(
            lambda root: make.name,
            lambda root, progress: user_stream.summary(make),
            version=lambda columns: user_stream.sha256(make),
        ),
        known.border if known else 0,
        known.on_cpu if known else folder.ON_CPU,
    )


def known_names() -> dict[str, str]:
    """Return every name that `find` knows, with a line about it."""
    names = {name: kind.about for name, kind in STREAMS.items()}
    for name, family in FAMILIES.items():
        names[f"{name}:{family.takes}"] = family.about
    names["FILE.py"] = "a Python file with a function of a seed that gives a stream, or with a stream"
    return names
