"""Export a trained net as one file, for programs that know nothing of droptop.

    .onnx          images -> logits, for ONNX Runtime and whatever else reads ONNX
    .pt2           the same for PyTorch: `torch.export.load(file).module()(images)`
    .safetensors   the weights alone, by the names of timm and torchvision (a user's own model: by its own names;
                   prompts: `prompts.` and so on); the metadata say which classes of the head were seen, and how pixels
                   are normalised

`images` are float32, N x c x h x w for any N, pixels in 0 .. 1: normalisation, a ViT's resizing and prompts are inside.
`logits` are float32, N x the classes that were seen, in the order of `classes` in the file's metadata; their softmax is
what `droptop predict` calls confidence. The net computes in float32, in evaluation mode. Every file is tried on images
from the learner's memory before it gets its name, and refused where its logits are not the learner's.
"""

import contextlib
import copy
import io
import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from droptop.errors import BadRequest, DroptopError
from droptop.learner import Learner, unit_range
from droptop.nets import Backbone, Features, ViT
from droptop.nets.adapted import Adapted
from droptop.nets.heads import Wrapped
from droptop.nets.precision import is_replaced, restore
from droptop.rng import generator

TOLERANCE = 1e-4  # largest difference of logits, or of their share where they are above 1
CHECKED = 16  # images that a file is tried on


def export(learner: Learner, path: str | Path, about: dict[str, str] | None = None, force: bool = False) -> float:
    """Write the net of a learner as a file of the kind that its ending names: .onnx, .pt2 or .safetensors.

    Args:
        learner: A learner on the CPU that has seen a class.
        path: The file to write.
        about: Texts for the file's metadata, by name.
        force: Whether to replace a file that exists.

    Returns:
        The largest difference between the file's logits and the learner's, relative where logits are above 1.

    Raises:
        BadRequest: If the learner or the path does not fit, or a package is missing.
        DroptopError: If the net cannot be exported, or the file's logits differ too much.
    """
    path = Path(path)
    kind = path.suffix.removeprefix(".")
    if kind not in WRITERS:
        raise BadRequest(f"export writes a file that ends in .{', .'.join(WRITERS)}, not {path}")
    write = WRITERS[kind]
    if learner.device.type != "cpu":
        raise BadRequest("export takes a learner on the CPU, as droptop.load_learner(run) gives it")
    if path.is_dir() or (path.exists() and not force):
        raise BadRequest(f"{path} exists already: choose another name, or pass --force")
    if not path.absolute().parent.is_dir():
        raise BadRequest(f"{path.parent} is not an existing folder")
    if not learner.seen.any():
        raise BadRequest("export takes a learner that has seen a class")
    net = ExportedNet(learner).eval()
    images = examples(learner)
    exact = not is_replaced(learner.predictor)  # otherwise its float32 is what is written
    with torch.no_grad():
        expected = (learner.predict(images) if exact else learner.classify(net.model, {"x": images}))[:, net.seen]
    inputs = unit_range(images)
    try:
        with tempfile.TemporaryDirectory(prefix=".export-", dir=path.absolute().parent) as folder:
            beside = Path(folder) / path.name
            with quiet(), torch.no_grad():
                logits = write(net, inputs, beside, metadata(learner, kind) | (about or {}))
            difference = ((logits - expected).abs().max() / expected.abs().max().clamp(min=1)).item()
            if not difference <= TOLERANCE:
                raise DroptopError(
                    f"{path} was not written: its logits differ from the learner's by {difference:.2g}, "
                    f"more than {TOLERANCE:g}"
                )
            beside.replace(path)
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror or error}") from None
    return difference


class ExportedNet(nn.Module):
    """A learner's net as a module: takes pixels in 0 .. 1, gives the logits of the classes seen."""

    mean: Tensor
    std: Tensor
    seen: Tensor

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        learner.settle()
        self.model, self.given = float32_copy(learner.predictor), learner.given
        self.register_buffer("mean", learner.mean)
        self.register_buffer("std", learner.std)
        self.register_buffer("seen", learner.seen.nonzero()[:, 0])

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images (N, c, h, w)."""
        images = (images - self.mean) / self.std
        if self.model.hooked:
            return self.model(images)[:, self.seen]
        first = self.model.stem(images)
        prompts = self.given(self.model, first, {})
        return self.model.head(self.model.trunk(first, *prompts))[:, self.seen]


class PooledHead(nn.Module):
    """A ViT's linear head as a submodule, since torch.export finds modules by attribute."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Features) -> Tensor:
        """Return the logits of pooled features."""
        return self.layer(features.pooled)


def float32_copy(model: Backbone) -> Backbone:
    """Return a copy of a model that computes in float32, uncompiled, with no storage shared between buffers."""
    model = copy.deepcopy(model).eval()
    restore(model)
    for buffer in model.buffers():
        buffer.data = buffer.clone()
    for module in model.modules():  # what a head was computed from is elsewhere: a file has the head itself
        module._non_persistent_buffers_set.clear()
    for vit in [module for module in model.modules() if isinstance(module, ViT)]:
        vit._modules["head"] = vars(vit)["head"] = PooledHead(vit.classifier)
    return model


def examples(learner: Learner) -> Tensor:
    """Return images to try a file on: from the memory or, where the method keeps none, noise."""
    images = learner.memory.read(torch.arange(int(learner.memory.size)))["x"][:CHECKED]
    if len(images) >= 2:  # from one, torch.export would take it that N is always 1
        return images
    noise = torch.rand(CHECKED, *learner.spec.shape, generator=generator(0, "export"))
    return (noise * 255 if learner.spec.dtype == torch.uint8 else noise).to(learner.spec.dtype)


def metadata(learner: Learner, kind: str) -> dict[str, str]:
    """Return the metadata of a file: what a program must know to use it."""
    from droptop import __version__

    spec = learner.spec
    seen = [spec.classes[label] for label in learner.seen.nonzero()[:, 0].tolist()]
    if kind == "safetensors":
        values = {
            "classes": json.dumps(spec.classes),
            "seen": json.dumps(seen),
            "mean": json.dumps(spec.mean),
            "std": json.dumps(spec.std),
        }
    else:
        shape = " x ".join(map(str, spec.shape))
        values = {
            "classes": json.dumps(seen),
            "output": "logits: float32, N x classes",
            "input": f"images: float32, N x {shape}, pixels in 0..1, not normalised",
        }
    return values | {"droptop": __version__}


# -- Formats: each writes the file, runs what it wrote, and returns the logits ----------------------------------------


def write_onnx(net: ExportedNet, images: Tensor, path: Path, about: dict[str, str]) -> Tensor:
    """Write an ONNX file; return the logits that ONNX Runtime computes from it."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  (torch.onnx needs it)
    except ImportError as error:
        raise BadRequest(f"--format onnx takes {error.name}: pip install 'droptop[export]'") from None
    program = torch.onnx.export(
        traced(net, images),
        (),
        dynamo=True,
        verbose=False,
        external_data=False,
        input_names=["images"],
        output_names=["logits"],
        dynamic_shapes={"images": {0: "batch"}},
    )
    assert program is not None
    program.model.metadata_props.update(about)
    program.save(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    parts = [session.run(["logits"], {"images": part.numpy()})[0] for part in one_and_rest(images)]
    return torch.cat([torch.from_numpy(part) for part in parts])


def write_pt2(net: ExportedNet, images: Tensor, path: Path, about: dict[str, str]) -> Tensor:
    """Write a program of torch.export; return the logits that it computes."""
    torch.export.save(traced(net, images), path, extra_files={"metadata.json": json.dumps(about, indent=1)})
    module = torch.export.load(path).module()
    return torch.cat([module(part) for part in one_and_rest(images)])


def write_safetensors(net: ExportedNet, images: Tensor, path: Path, about: dict[str, str]) -> Tensor:
    """Write the weights alone; return the logits of a copy of the net that has read them."""
    inner = "net." if isinstance(net.model, Adapted | Wrapped) else "vit."
    names = {name: name.removeprefix(inner).replace("head.layer.", "head.") for name in net.model.state_dict()}
    weights = {names[name]: value.contiguous() for name, value in net.model.state_dict().items()}
    save_file(weights, path, about | {"format": "pt"})
    loaded, copied = load_file(path), copy.deepcopy(net)
    for name, value in copied.model.state_dict().items():
        value.copy_(loaded[names[name]])
    return copied(images)


WRITERS: dict[str, Callable[[ExportedNet, Tensor, Path, dict[str, str]], Tensor]] = {
    "onnx": write_onnx,
    "safetensors": write_safetensors,
    "pt2": write_pt2,
}


def traced(net: ExportedNet, images: Tensor) -> Any:
    """Return the net as a graph that takes any number of images; raise DroptopError if torch cannot trace it."""
    try:
        return torch.export.export(net, (images,), dynamic_shapes={"images": {0: torch.export.Dim("batch")}})
    except Exception as error:  # torch may stumble over anything in a user's own method
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DroptopError(
            f"this net does not export; --format safetensors takes its weights alone ({reason})"
        ) from error


def one_and_rest(images: Tensor) -> Iterator[Tensor]:
    """Yield the first image, then all others: a file must take any number of images."""
    yield from images.split([1, len(images) - 1])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence logging, warnings and prints, which exporters address to their developers."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
