"""Nets of timm and torchvision by name, with weights that the seed draws or that the library has.

    --net timm:convnext_atto          any image model of timm.list_models()
    --net torchvision:resnet18        any classifier of torchvision.models.list_models()

A net that begins with weights (`--pretrained`, `--weights`) gets images of the size, and normalised, as these were
trained on; else images are the stream's. Neither package is needed by anything else here (extra `[timm]`).
"""

import difflib
import importlib
import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import nn

from droptop.errors import BadRequest, DownloadFailed
from droptop.nets import weights as origin
from droptop.nets.adapted import check_model
from droptop.nets.backbone import Pixels
from droptop.nets.families import classifiers, draw_nothing, maps_of
from droptop.nets.library_net import LibraryNet
from droptop.nets.map_layout import MapLayout

Size = tuple[int, int]  # height, width
NAME = re.compile(r"[\w.-]+")


def is_library_net(net: str) -> bool:
    """Return whether a name is that of a net of a library."""
    return net.partition(":")[0] in LIBRARIES


def library_of(net: str) -> str | None:
    """Return the package that a net comes from; None for droptop's own."""
    return net.partition(":")[0] if is_library_net(net) else None


class Library(ABC):
    """Hold a package of nets, of which one is chosen by name."""

    package: ClassVar[str]

    def __init__(self, net: str) -> None:
        self.net, self.name = net, net.partition(":")[2]
        try:
            self.module: Any = importlib.import_module(self.package)
        except (ImportError, RuntimeError) as error:  # torchvision beside another build of torch raises the second
            why = "" if isinstance(error, ModuleNotFoundError) else f" ({str(error).splitlines()[0]})"
            raise BadRequest(f"--net {net} takes {self.package}: pip install 'droptop[timm]'{why}") from None
        known = self.names()
        if not NAME.fullmatch(self.name) or self.listed not in known:
            near = difflib.get_close_matches(self.name, known, 3, 0.5)
            hint = f"; near it are {', '.join(f'{self.package}:{name}' for name in near)}" if near else ""
            raise BadRequest(f"--net takes one of the {len(known):,} nets that {self.package} lists, not {net}{hint}")

    @property
    def listed(self) -> str:
        """Return the part of the name that the library lists."""
        return self.name

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all nets."""

    @abstractmethod
    def trained_on(self) -> tuple[Size, Pixels]:
        """Return the size of the images that the library's weights were trained on, and how they were normalised."""

    @abstractmethod
    def make(self, classes: int, size: Size, pretrained: bool) -> nn.Module:
        """Return the net for images of a size, with the library's weights or drawn by torch's global generator."""


class Timm(Library):
    """Make nets of timm (PyTorch Image Models)."""

    package = "timm"

    def names(self) -> list[str]:
        return list(self.module.list_models())

    @property
    def listed(self) -> str:
        return self.name.partition(".")[0]  # a tag after the dot says which weights

    @property
    def about(self) -> Any:
        """Return what timm notes of the weights; raise BadRequest if it has none by this name."""
        try:
            found = self.module.get_pretrained_cfg(self.name)
        except RuntimeError as error:
            raise BadRequest(f"--net {self.net}: {error}") from None
        if found is None:
            raise BadRequest(f"--net {self.net} is not a net that timm has notes of")
        return found

    def trained_on(self) -> tuple[Size, Pixels]:
        _, height, width = self.about.input_size
        return (height, width), Pixels(tuple(self.about.mean), tuple(self.about.std))

    def make(self, classes: int, size: Size, pretrained: bool) -> nn.Module:
        about = self.about
        if pretrained and not getattr(about, "has_weights", True):
            raise BadRequest(f"--pretrained: timm has no weights of {self.name}")
        sized = {"img_size": size} if about.fixed_input_size else {}
        net: nn.Module = self.module.create_model(self.name, pretrained=pretrained, num_classes=classes, **sized)
        return net


class Torchvision(Library):
    """Make classifiers of torchvision."""

    package = "torchvision"
    sized = {"vit": "image_size", "maxvit": "input_size"}  # what families call the size that they are made for

    def names(self) -> list[str]:
        return list(self.module.models.list_models(module=self.module.models))

    @property
    def weights(self) -> Any:
        """Return what torchvision knows of the best weights of the net."""
        return self.module.models.get_model_weights(self.name).DEFAULT

    def trained_on(self) -> tuple[Size, Pixels]:
        transforms = self.weights.transforms()
        side = transforms.crop_size[0]
        return (side, side), Pixels(tuple(transforms.mean), tuple(transforms.std))

    def make(self, classes: int, size: Size, pretrained: bool) -> nn.Module:
        option = self.sized.get(self.name.partition("_")[0])
        side: Any = size if option == "input_size" else size[0]
        if option is not None and size[0] != size[1]:
            raise BadRequest(f"--net {self.net} takes square images: --input-size {self.trained_on()[0][0]} resizes")
        net: nn.Module = self.module.models.get_model(
            self.name, weights=None, num_classes=classes, **({} if option is None else {option: side})
        )
        if pretrained:
            given = self.weights.get_state_dict(progress=False, check_hash=True)
            given = {name: value for name, value in given.items() if not name.endswith("num_batches_tracked")}
            origin.fill(net, given, self.net, heads_of(net, classes))
        return net


LIBRARIES: dict[str, type[Library]] = {"timm": Timm, "torchvision": Torchvision}


def heads_of(net: nn.Module, classes: int) -> tuple[str, ...]:
    """Return how the names of a classifier's weights begin."""
    return tuple(f"{name}." for name in classifiers(net, classes))


def build(
    net: str,
    shape: tuple[int, int, int],
    classes: int,
    *,
    input_size: int | None = None,
    weights: str | None = None,
    pretrained: bool = False,
    first: str | None = None,
    last: str | None = None,
) -> LibraryNet:
    """Return a net of a library as a backbone for images of a shape, with what it draws of torch's global generator.

    Args:
        net: Its name, such as `timm:resnet18`.
        shape: Channels, height and width of the images.
        classes: Number of classes.
        input_size: Pixels per side that images are resized to.
        weights: Weights to begin with, as `--weights` names them; with `random`, images are as if there were any.
        pretrained: Whether to begin with the library's weights.
        first: Name of the submodule that gives the first map; by default as its family has it.
        last: Name of the submodule that gives the last map, likewise.

    Raises:
        BadRequest: If the package or the net is not there, or does not fit the images or weights.
        DownloadFailed: If the library cannot fetch its weights.
    """
    library = LIBRARIES[net.partition(":")[0]](net)
    if shape[0] not in (1, 3):
        raise BadRequest(f"--net {net} takes images of 1 or 3 channels, not {shape[0]}")
    trained = pretrained or weights is not None
    own_size, pixels = library.trained_on() if trained else (shape[1:], None)
    size = own_size if input_size is None else (input_size, input_size)
    made = make(library, classes, size, pretrained)
    draw_nothing(made)
    if weights not in (None, origin.RANDOM):
        assert weights is not None
        origin.fill(made, origin.read(origin.locate(weights)), weights, heads_of(made, classes))
    maps = maps_of(made, net, first, last)
    backbone = LibraryNet(made, *maps, layout_of(made, size), size, classifiers(made, classes), pixels)
    try:
        check_model(backbone, shape, classes)
    except BadRequest as error:
        hint = "" if trained or input_size else f"; --input-size {library.trained_on()[0][0]} resizes them"
        raise BadRequest(f"--net {net}: {error}{hint if 'take images' in str(error) else ''}") from None
    return backbone


def make(library: Library, classes: int, size: Size, pretrained: bool) -> nn.Module:
    """Return the net that a library makes; what it raises becomes an error of one line."""
    try:
        return library.make(classes, size, pretrained)
    except BadRequest:
        raise
    except Exception as error:  # of many types: the network, the hub, a size that does not go with patches
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        if pretrained:
            make(library, classes, size, pretrained=False)  # raises where not the weights but the size is to blame
            raise DownloadFailed(
                f"--pretrained: {library.package} does not get the weights of {library.name} ({reason}); on a machine "
                "without a network pass a file that was fetched elsewhere, --weights FILE.safetensors"
            ) from None
        raise BadRequest(
            f"--net {library.net} is not made for images of {size[0]} x {size[1]} ({reason}): --input-size "
            f"{library.trained_on()[0][0]} resizes them"
        ) from None


def layout_of(net: nn.Module, size: Size) -> MapLayout:
    """Return what the shapes of a net's maps do not tell where images are not square."""
    if size[0] == size[1]:
        return MapLayout()
    grid = getattr(getattr(net, "patch_embed", None), "grid_size", None)
    return MapLayout(None if grid is None else tuple(grid), True if "Swin" in type(net).__name__ else None)
