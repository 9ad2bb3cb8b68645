"""A stream on the device it is learned on: what is in memory moves there whole, what is on a disk stays there."""

import copy
import dataclasses

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from droptop.streams import Stream
from droptop.types import Samples, Source

_COPIES = WeakTensorKeyDictionary()  # several learners of one process share the images that they share


def on_device(stream: Stream, device: torch.device) -> Stream:
    """The same stream with its images, labels and order on the device."""
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
    if not isinstance(source, Samples):
        return source
    columns = {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}
    known = {name: _copied(column, device) for name, column in columns.items() if column is not None}
    return dataclasses.replace(source, **known)


def _copied(tensor: Tensor, device: torch.device) -> Tensor:
    if tensor not in _COPIES:
        _COPIES[tensor] = tensor.to(device)
        torch.cuda.current_stream().synchronize()  # whoever shares it reads it on another CUDA stream
    found: Tensor = _COPIES[tensor]
    return found
