"""Move a stream to the device it is learned on: images in memory move as a whole, images on a disk stay there."""

import copy
import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from droptop.streams import Stream
from droptop.types import Samples, Source, in_memory

_COPIES = WeakTensorKeyDictionary()  # so that the seeds of a process hold the same images once


def on_device(stream: Stream, device: torch.device) -> Stream:
    """Return the stream with its images, labels and order on a device; the stream itself on a CPU."""
    if device.type == "cpu":
        return stream
    moved = copy.copy(stream)
    moved.train = _moved(stream.train, device)
    moved.tests = {name: _moved(test, device) for name, test in stream.tests.items()}
    if in_memory(stream.train):
        moved.order = [rows.to(device) for rows in stream.order]
        moved.labels = _copied(stream.labels, device)
    return moved


def _moved(source: Source, device: torch.device) -> Source:
    """Return a source with all of its tensors on a device; one on a disk as it is."""
    return _moved_parts(source, device) if in_memory(source) else source


def _moved_parts(value: Any, device: torch.device) -> Any:
    """Return a value with its tensors on a device, also those in its dictionaries and dataclasses."""
    if isinstance(value, Tensor):
        return _copied(value, device)
    if isinstance(value, Samples):
        return value.each(lambda column: _copied(column, device))
    if isinstance(value, dict):
        return {name: _moved_parts(part, device) for name, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{name: _moved_parts(part, device) for name, part in vars(value).items()})
    return value


def _copied(tensor: Tensor, device: torch.device) -> Tensor:
    """Return the copy of a tensor on the device, which all seeds of the process share."""
    if tensor not in _COPIES:
        _COPIES[tensor] = tensor.to(device)
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()  # other seeds read it on other CUDA streams
    copied: Tensor = _COPIES[tensor]
    return copied
