"""Move a stream to the device it is learned on: images in memory move as a whole, images on a disk stay there."""

import copy

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from droptop.streams import Stream
from droptop.types import Samples, Source

_COPIES = WeakTensorKeyDictionary()  # so that the seeds of a process hold the same images once


def on_device(stream: Stream, device: torch.device) -> Stream:
    """Return the stream with its images, labels and order on a device; the stream itself on a CPU."""
    if device.type == "cpu":
        return stream
    moved = copy.copy(stream)
    moved.train = _moved(stream.train, device)
    moved.tests = {name: _moved(test, device) for name, test in stream.tests.items()}
    if isinstance(stream.train, Samples):
        moved.order = [rows.to(device) for rows in stream.order]
        moved.labels = _copied(stream.labels, device)
    return moved


def _moved(source: Source, device: torch.device) -> Source:
    """Return samples with all columns on a device; a source on a disk as it is."""
    if not isinstance(source, Samples):
        return source
    return source.with_columns({name: _copied(column, device) for name, column in source.columns.items()})


def _copied(tensor: Tensor, device: torch.device) -> Tensor:
    """Return the copy of a tensor on the device, which all seeds of the process share."""
    if tensor not in _COPIES:
        _COPIES[tensor] = tensor.to(device)
        torch.cuda.current_stream().synchronize()  # other seeds read it on other CUDA streams
    copied: Tensor = _COPIES[tensor]
    return copied
