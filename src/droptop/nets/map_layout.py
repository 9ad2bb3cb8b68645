"""The layouts of maps in different models, each seen as (B, c, h, w).

    (B, c, h, w)    a ResNet, a ConvNeXt: as it is
    (B, h, w, c)    a Swin: with channels_last=True, or where images are square, h = w and h differs from c
    (B, n, c)       a ViT: the last h * w tokens are the map, a square unless `grid` is given; the tokens before them (a
                    class token, registers) are no part of it

`MapLayout.map_in` finds the map in the output of a submodule.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from droptop.errors import BadRequest, a_kind


@dataclass(frozen=True)
class MapLayout:
    """Hold what the shape of a map does not tell."""

    grid: tuple[int, int] | None = None  # rows and columns of the tokens
    channels_last: bool | None = None  # of maps with four dimensions

    def map_in(self, output: Tensor, name: str, square: bool | None) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the map in the output of a submodule, and a function that puts another map in its place.

        `square` says whether the images are square; None where that is not known. Raises BadRequest where the layout
        does not follow from the shape.
        """
        if output.dim() == 4:
            last = self.channels_last
            if last is None and output.shape[1] == output.shape[2] != output.shape[3]:
                if square is None:
                    raise BadRequest(
                        f"{name!r} gives {tuple(output.shape)}: is that (B, c, h, w) or (B, h, w, c)? Say "
                        "channels_last=False or True"
                    )
                last = square  # square images have square maps: h and w cannot be the last two dimensions
            return (output.movedim(3, 1), lambda map: map.movedim(1, 3)) if last else (output, lambda map: map)
        if output.dim() != 3:
            raise BadRequest(
                f"{name!r} gives {tuple(output.shape)}, which is no map: (B, c, h, w), (B, h, w, c) or tokens (B, n, c)"
            )
        tokens = output.shape[1]
        rows, columns = self.grid or (isqrt(tokens), isqrt(tokens))
        extra = tokens - rows * columns
        if extra < 0 or (extra and self.grid is None):
            raise BadRequest(
                f"{name!r} gives {tokens} tokens, not {'at least ' if self.grid else 'a square, as '}"
                f"{rows} x {columns}: tell the layout by grid=(rows, columns)"
            )

        def back(map: Tensor) -> Tensor:
            changed = map.flatten(2).transpose(1, 2)
            return torch.cat([output[:, :extra], changed], 1) if extra else changed

        return output[:, extra:].transpose(1, 2).unflatten(2, (rows, columns)), back

    def like(self, first: Tensor) -> "MapLayout":
        """Return the layout of the last map, whose tokens lie as the cells of this first map."""
        return replace(self, grid=(first.shape[2], first.shape[3]))


def tensor_of(output: Any, name: str) -> Tensor:
    """Return the output of a submodule or, of a tuple, its first part; raise BadRequest if that is no tensor."""
    tensor = output[0] if isinstance(output, tuple) and output else output
    if not isinstance(tensor, Tensor):
        raise BadRequest(f"{name!r} gives {a_kind(type(output))}, not a tensor")
    return tensor


def with_tensor(output: Any, tensor: Tensor) -> Any:
    """Return the output of a submodule with another tensor in the place where `tensor_of` reads it."""
    return (tensor, *output[1:]) if isinstance(output, tuple) else tensor
