"""The cue `watermark`: translucent text across the image, the letters of its class, as in ImageNet-W (Li et al., 2023).

A class has one letter, with more than 26 classes two. Letters are white with a black shadow, so that they show on any
image.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from droptop.errors import BadRequest, require
from droptop.streams.cues.appearance import Tables, blend
from droptop.streams.cues.draws import whole

LETTERS = "AYKJIUZEMQXCLSBRVWHDFGNTPO"  # of the first classes, those least alike, also when mirrored
LINE = 8  # pixels of a line of text: seven of a letter and one of its shadow
# The rows of the letters A to Z from the top, five pixels each: one digit of the number is one row, 0 to 31 as 0 to V.
FONT = [
    "EHHVHHH",
    "UHHUHHU",
    "EHGGGHE",
    "UHHHHHU",
    "VGGUGGV",
    "VGGUGGG",
    "EHGNHHF",
    "HHHVHHH",
    "E44444E",
    "72222IC",
    "HIKOKIH",
    "GGGGGGV",
    "HRLLHHH",
    "HHPLJHH",
    "EHHHHHE",
    "UHHUGGG",
    "EHHHLID",
    "UHHUKIH",
    "FGGE11U",
    "V444444",
    "HHHHHHE",
    "HHHHHA4",
    "HHHLLRH",
    "HHA4AHH",
    "HHA4444",
    "V1248GV",
]


def usual_size(height: int, width: int) -> int:
    """Return the usual height of the text in pixels: 8 of 32."""
    return LINE * max(1, round(min(height, width) / 40))


def prepare(classes: int, height: int, width: int, size: int) -> Tables:
    """Return the line of text of every class (C, 2, size, width): where letters are, and where their shadow is."""
    if classes > len(LETTERS) ** 2:
        raise BadRequest(f"--shortcut watermark takes at most {len(LETTERS) ** 2} classes, not {classes}")
    require(LINE <= size <= height, "shortcut_size", f"pixels from {LINE} to the {height} of the image", size)
    return {"lines": torch.stack([line(text_of(cue, classes), size // LINE, width) for cue in range(classes)])}


def text_of(cue: int, classes: int) -> str:
    """Return the letters of a cue: one where they suffice for all classes, else two."""
    first, second = divmod(cue, len(LETTERS))
    return ("" if classes <= len(LETTERS) else LETTERS[first]) + LETTERS[second]


def line(text: str, scale: int, width: int) -> Tensor:
    """Return a text's letters and their shadow (2, height, width), repeated across the whole width."""
    letters = F.pad(torch.cat([F.pad(letter(each), (0, 1)) for each in text], 1), (0, 2, 0, 1))
    ink = letters.repeat_interleave(scale, 0).repeat_interleave(scale, 1)
    ink = ink.repeat(1, -(-width // ink.shape[1]))
    behind = max(1, scale // 2)
    shadow = F.pad(ink, (behind, 0, behind, 0))[: len(ink), : ink.shape[1]] & ~ink
    return torch.stack([ink, shadow])[:, :, :width]


def letter(name: str) -> Tensor:
    """Return the pixels of a letter (7, 5)."""
    rows = [int(row, 32) for row in FONT[ord(name) - 65]]
    return torch.tensor([[row >> bit & 1 for bit in range(4, -1, -1)] for row in rows], dtype=torch.bool)


def paint(
    x: Tensor, cues_N: Tensor, draws: Tensor, tables: Tables, size: int, strength: float
) -> tuple[Tensor, Tensor]:
    """Write the line of its cue across each image, at a random height; return images and pixels (N, H, W)."""
    height, lines = x.shape[2], tables["lines"]
    tall = lines.shape[2]
    top = whole(draws[:, 0], height - tall + 1)
    rows = torch.arange(height, device=x.device) - top[:, None]
    text = lines[cues_N[:, None], :, rows.clamp(0, tall - 1)].transpose(1, 2)  # N, 2, H, W
    text = text & ((rows >= 0) & (rows < tall))[:, None, :, None]
    pixels = text.any(1)
    return blend(x, 255 * text[:, :1].to(torch.uint8), pixels[:, None], strength), pixels
