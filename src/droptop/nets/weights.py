"""Where initial weights come from: a safetensors file, the Hugging Face hub, or nowhere.

--weights FILE.safetensors     torchvision's and timm's names; half precision is widened
--weights hf:OWNER/NAME        model.safetensors of that repository; once it is cached, no network is needed
--weights random               a small ViT, for a quick look at methods that want a pretrained one
"""

import hashlib
import re
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from droptop.errors import BadRequest, DownloadFailed

RANDOM = "random"
HUB = "hf:"
TAKES = "an existing file, hf:OWNER/NAME or random"
HEADS = ("head.", "fc.")  # a head for other classes is left out


def sensible(weights: str) -> bool:
    """Can this be found, as far as one sees without attention_mode further?"""
    if weights.startswith(HUB):
        return re.fullmatch(r"[\w.-]+/[\w.-]+", weights.removeprefix(HUB)) is not None
    return weights == RANDOM or Path(weights).is_file()


def locate(weights: str) -> Path:
    """The file, fetched where it has to be."""
    return from_hub(weights.removeprefix(HUB)) if weights.startswith(HUB) else Path(weights)


def from_hub(repository: str) -> Path:
    """`model.safetensors` of a repository: from the cache or, where it is not there yet, from the hub."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise BadRequest(f"--weights hf:{repository} takes huggingface_hub: pip install 'droptop[hub]'") from None
    try:
        path = Path(hf_hub_download(repository, "model.safetensors", local_files_only=True))
    except OSError:  # not in the cache
        try:
            path = Path(hf_hub_download(repository, "model.safetensors"))
        except (OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise DownloadFailed(
                f"--weights hf:{repository}: {reason}; on a machine without a network pass a file "
                "that was fetched elsewhere"
            ) from None
    expected = path.resolve().name  # large files lie in the cache under their SHA-256
    if re.fullmatch("[0-9a-f]{64}", expected) and sha256(path) != expected:
        raise DownloadFailed(f"--weights hf:{repository}: {path} is damaged; delete it")
    return path


def sha256(path: Path) -> str:
    """Of a file's bytes; read again only where it has changed."""
    about = path.stat()
    return _sha256(path, about.st_size, about.st_mtime_ns)


@lru_cache
def _sha256(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(weights: str | None) -> str | None:
    """What a run's initial weights are known by: the SHA-256 of their file."""
    return weights if weights in (None, RANDOM) else sha256(locate(weights))


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, floating point ones in single precision."""
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise BadRequest(f"--weights takes a safetensors file; {path}: {error}") from None
    return {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in found.items()
        if not name.endswith("num_batches_tracked")
    }


def fill(model: nn.Module, found: dict[str, Tensor], name: str) -> None:
    """Fills a net; a mismatch names the tensors. A head for another number of classes is left as it was."""
    wanted = model.state_dict()
    heads = {tensor for tensor in wanted.keys() | found.keys() if tensor.startswith(HEADS)}
    if any(
        tensor not in found or tensor not in wanted or found[tensor].shape[:1] != wanted[tensor].shape[:1]
        for tensor in heads
    ):
        wanted, found = (
            {tensor: value for tensor, value in tensors.items() if tensor not in heads} for tensors in (wanted, found)
        )
    wrong = sorted(
        {tensor for tensor in wanted if tensor not in found or found[tensor].shape != wanted[tensor].shape}
        | (found.keys() - wanted.keys())
    )
    if wrong:
        named = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise BadRequest(f"--weights {name} does not fit this net: {named}")
    with torch.no_grad():
        for tensor, value in wanted.items():
            value.copy_(found[tensor])
