"""A net of timm or torchvision as a backbone: seen through hooks as a user's own model is, but more is known of it.

Grey images are given to it as three equal channels, and images of another size are resized if it takes one size only.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from droptop.errors import BadRequest
from droptop.nets.adapted import Adapted
from droptop.nets.backbone import AttentionNorm, Change, Features, Pixels
from droptop.nets.map_layout import MapLayout


class LibraryNet(Adapted):
    """Make a backbone of a net of a library.

    Args:
        net: The net.
        first: Name of the submodule that gives its first map.
        last: Name of the submodule that gives its last map.
        layout: What the shapes of the maps do not tell.
        size: Height and width of the images that it is given.
        classifiers: Names of the layers that give its logits.
        pixels: How its images are normalised; None where the stream says so.
    """

    finer = "raise --input-size, or let --last name an earlier submodule"

    def __init__(
        self,
        net: nn.Module,
        first: str,
        last: str,
        layout: MapLayout,
        size: tuple[int, int],
        classifiers: list[str],
        pixels: Pixels | None,
    ) -> None:
        super().__init__(net, first, last, layout)
        self.size, self.classifiers, self.pixels = size, classifiers, pixels
        self.classifier: nn.Linear | None = None  # once it is taken out of the net

    def resized(self, x: Tensor) -> Tensor:
        """Return images as the net takes them: of its size, in three channels."""
        if x.shape[2:] != self.size:
            x = F.interpolate(x, self.size, mode="bilinear", antialias=True)
        return x.expand(-1, 3, -1, -1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits or, without the classifier, the pooled features."""
        return super().forward(self.resized(x))

    def changed(self, x: Tensor, change: Change, attention_pass: AttentionNorm | None) -> Tensor:
        return super().changed(self.resized(x), change, attention_pass)

    def maps(self, x: Tensor, norm: AttentionNorm) -> tuple[Tensor, Tensor]:
        return super().maps(self.resized(x), norm)

    def features(self, x: Tensor) -> Features:
        """Return the last map and the pooled features, which are known once the classifier is taken out."""
        map_hooks = self.map_hooks()
        with map_hooks.installed():
            output = map_hooks.watch(self.resized(x))
        last = map_hooks.last_map()
        return Features(last, last.mean((2, 3)) if self.classifier is None else output)

    def take_out_classifier(self) -> None:
        """Leave a net that gives what the classifier saw; `head` still applies the classifier."""
        if self.classifier is not None:
            return
        layers = [self.net.get_submodule(name) for name in self.classifiers]
        if len(layers) != 1 or not isinstance(layers[0], nn.Linear):
            raise BadRequest("this method takes a net with one linear classifier, and this net has another head")
        self.classifier = layers[0]
        self.net.set_submodule(self.classifiers[0], nn.Identity())

    def head(self, features: Features) -> Tensor:
        """Return the logits of pooled features, by the classifier that was taken out."""
        assert self.classifier is not None
        return self.classifier(features.pooled)
