"""Initial weights: from a safetensors file, from the Hugging Face hub, or random.

    --weights FILE.safetensors     torchvision's and timm's names; half precision is widened
    --weights hf:OWNER/NAME        model.safetensors of that repository; once it is cached, no network is needed
    --weights random               a small ViT, to try out methods that take a pretrained one

A ResNet without --weights has the random weights of its seed.
"""

import re
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from droptop.errors import BadRequest, DownloadFailed
from droptop.system import files
from droptop.system.tensor_files import check_header

RANDOM = "random"
HUB = "hf:"
SECONDS = 10.0  # to wait for the hub
TAKES = "an existing file, hf:OWNER/NAME or random"
HEADS = ("head.", "fc.")  # left out where the number of classes differs


def sensible(weights: str) -> bool:
    """Return whether this may name weights: a repository by its form, or a file that exists."""
    if weights.startswith(HUB):
        return re.fullmatch(r"[\w.-]+/[\w.-]+", weights.removeprefix(HUB)) is not None
    return weights == RANDOM or Path(weights).is_file()


def locate(weights: str) -> Path:
    """Return the file of the weights; download it if it is on the hub and not cached."""
    return from_hub(weights.removeprefix(HUB)) if weights.startswith(HUB) else Path(weights)


def from_hub(repository: str) -> Path:
    """Return `model.safetensors` of a repository, from the cache or else from the hub; raise DownloadFailed."""
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError:
        raise BadRequest(f"--weights hf:{repository} takes huggingface_hub: pip install 'droptop[hub]'") from None
    try:
        path = Path(hf_hub_download(repository, "model.safetensors", local_files_only=True))
    except OSError:  # not in the cache
        try:
            HfApi().model_info(repository, timeout=SECONDS)  # fails at once without a network; a download asks again
            path = Path(hf_hub_download(repository, "model.safetensors"))
        except Exception as error:  # of many types: the network, the hub, the disk
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise DownloadFailed(
                f"--weights hf:{repository}: {reason}; on a machine without a network pass a file "
                "that was fetched elsewhere"
            ) from None
    expected = path.resolve().name  # large files lie in the cache under their SHA-256
    if re.fullmatch("[0-9a-f]{64}", expected) and sha256(path) != expected:
        raise DownloadFailed(f"--weights hf:{repository}: {path} is damaged; delete it")
    return path


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, which is read again only if it has changed."""
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns)


@lru_cache
def _sha256(path: Path, size: int, modified: int) -> str:
    return files.sha256(path)


def describe(weights: str | None) -> str | None:
    """Return what a run records of its initial weights: the SHA-256 of their file, "random" or None."""
    return weights if weights in (None, RANDOM) else sha256(locate(weights))


def read(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name; none is read before somebody looks into it."""
    try:
        check_header(path)
        tensors = load_file(path)
    except (OSError, SafetensorError, RuntimeError, MemoryError) as error:  # the last two where it cannot be mapped
        raise BadRequest(f"--weights takes a safetensors file; {path}: {error}") from None
    return {name: tensor for name, tensor in tensors.items() if not name.endswith("num_batches_tracked")}


def fill(model: nn.Module, given: dict[str, Tensor], name: str, heads_begin: tuple[str, ...] = HEADS) -> None:
    """Copy weights into a net, in its precision; raise BadRequest naming the tensors that do not fit.

    A head for another number of classes is left as it was. `name` is what the user calls the weights, and names of a
    head's weights begin with one of `heads_begin`.
    """
    wanted = {key: value for key, value in model.state_dict().items() if not key.endswith("num_batches_tracked")}
    heads = {tensor for tensor in wanted.keys() | given.keys() if tensor.startswith(heads_begin)}
    if any(
        tensor not in given or tensor not in wanted or given[tensor].shape[:1] != wanted[tensor].shape[:1]
        for tensor in heads
    ):
        wanted, given = (
            {tensor: value for tensor, value in tensors.items() if tensor not in heads} for tensors in (wanted, given)
        )
    wrong = sorted(
        {tensor for tensor in wanted if tensor not in given or given[tensor].shape != wanted[tensor].shape}
        | (given.keys() - wanted.keys())
    )
    if wrong:
        named = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise BadRequest(f"--weights {name} does not fit this net: {named}")
    with torch.no_grad():
        for tensor, value in wanted.items():
            value.copy_(given[tensor])
