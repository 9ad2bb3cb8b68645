"""What a device is: the word that `--device` takes, the processors that it names, and what they lack.

    cpu         the processor
    cuda        the GPU that torch takes by default
    cuda:1      a certain GPU
    cuda:0,2    several; `cuda:all` names all of this machine; a worker process trains on each
    mps         Apple's GPU: steps run eagerly, in float32

The kind of a device, what stands before the colon, is part of what a run is; which GPU of that kind it is, is not.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from droptop.errors import BadRequest, require

if TYPE_CHECKING:
    import torch

    Module = TypeVar("Module", bound=torch.nn.Module)

FORM = re.compile(r"cpu|mps|cuda|cuda:all|cuda:[0-9]{1,4}(,[0-9]{1,4})*")
TAKES = "cpu, cuda, a GPU such as cuda:1, several such as cuda:0,2 or cuda:all, or mps"
LIMITED = {"mps"}  # kinds of devices without float64, gamma draws, and optimisers that can skip a step
FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK=1"


# -- Words -------------------------------------------------------------------------------------------------------------


def check_form(device: str) -> None:
    """Raise BadRequest for what is no device on any machine, or names a GPU twice."""
    well_formed = isinstance(device, str) and FORM.fullmatch(device) is not None
    require(well_formed and (has_all(device) or len(set(each(device))) == len(each(device))), "device", TAKES, device)


def kind_of(device: str) -> str:
    """Return the kind of a device: cpu, cuda or mps."""
    return device.partition(":")[0]


def is_cuda(device: str) -> bool:
    """Return whether a device is one of NVIDIA's GPUs, or several."""
    return kind_of(device) == "cuda"


def has_all(device: str) -> bool:
    """Return whether a word names all GPUs of whatever machine it is read on."""
    return device.endswith(":all")


def is_several(device: str) -> bool:
    """Return whether a word may name several devices."""
    return has_all(device) or "," in device


def each(device: str) -> list[str]:
    """Return the devices that a word names, one by one: of `cuda:all` the GPUs that this machine has."""
    kind, colon, numbers = device.partition(":")
    if not colon:
        return [device]
    return [f"{kind}:{int(number)}" for number in (range(gpus()) if numbers == "all" else numbers.split(","))]


def one(device: str) -> str:
    """Return a device where only one can be had; raise BadRequest for several."""
    require(not is_several(device), "device", "one device here, such as cuda:0", device)
    return device


# -- This machine ------------------------------------------------------------------------------------------------------


def gpus() -> int:
    """Return the number of NVIDIA's GPUs that torch finds."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def check_here(device: str) -> None:
    """Raise BadRequest if this machine lacks a device."""
    import torch

    kind = kind_of(device)
    if kind == "mps":
        require(torch.backends.mps.is_available(), "device", "cpu where torch finds no GPU of Apple's", device)
    if kind == "cuda":
        require(torch.cuda.is_available(), "device", "cpu where torch finds no GPU", device)
        here = each("cuda:all")
        if ":" in device and not set(each(device)) <= set(here):
            names = here[0] if len(here) == 1 else f"{here[0]} to {here[-1]}"
            raise BadRequest(f"--device {device}: this machine has {len(here)} GPU{'s' * (len(here) > 1)} ({names})")


def first_of(device: str) -> str:
    """Return the first of the devices that a word names; raise BadRequest if this machine lacks one of them."""
    check_here(device)
    return each(device)[0]


def name_of(device: str) -> str | None:
    """Return what a GPU is called, or the different names of several; None on a machine without them."""
    import torch

    if not is_cuda(device):
        return "Apple GPU" if torch.backends.mps.is_available() else None
    here = set(each("cuda:all"))
    if not here or (":" in device and not set(each(device)) <= here):
        return None
    return ", ".join(dict.fromkeys(torch.cuda.get_device_name(gpu) for gpu in each(device)))


def bind(device: str) -> None:
    """Make a certain GPU the one on which this process allocates and computes by default."""
    if is_cuda(device) and ":" in device:
        import torch

        torch.cuda.set_device(one(device))


@contextmanager
def staying() -> Iterator[None]:
    """Give a process its default GPU back, where what runs inside may bind another."""
    import torch

    before = torch.cuda.current_device() if torch.cuda.is_initialized() else 0
    try:
        yield
    finally:
        if torch.cuda.is_initialized() and torch.cuda.current_device() != before:
            torch.cuda.set_device(before)


# -- What a device lacks -----------------------------------------------------------------------------------------------


def widest(device: "torch.device | str") -> "torch.dtype":
    """Return the widest type of floats that a device has: float64, but for Apple's GPUs."""
    import torch

    return torch.float32 if torch.device(device).type in LIMITED else torch.float64


def moved(module: "Module", device: "torch.device | str") -> "Module":
    """Return a module moved to a device, with float32 in place of the floats that it has not."""
    import torch

    return (module if widest(device) == torch.float64 else module.float()).to(device)


def skips_steps(device: "torch.device") -> bool:
    """Return whether torch's fused optimisers can skip a step there."""
    return device.type not in LIMITED


def has_gammas(device: "torch.device") -> bool:
    """Return whether torch draws from the gamma distribution there."""
    return device.type not in LIMITED


def lacks_operation(error: BaseException) -> str | None:
    """Return in a line what to do where torch has not written an operation for Apple's GPUs, if an error says that."""
    text = str(error).partition("\n")[0]
    if not isinstance(error, NotImplementedError) or "MPS" not in text:
        return None
    name = re.search(r"aten::[\w.]+", text)
    return f"torch has no {name[0] if name else 'such operation'} for mps: {FALLBACK} lets the CPU compute it"
