"""`droptop export`: a trained net as one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from droptop.cli import arguments
from droptop.cli.predict import LoadedOptions
from droptop.errors import require
from droptop.system.terminal import Console, note


@dataclass(frozen=True, kw_only=True)
class ExportOptions(LoadedOptions):
    """Hold the options of `droptop export`."""

    format: Literal["onnx", "safetensors", "pt2"] = "onnx"
    """Format of the file: onnx and pt2 take images and give logits; safetensors holds the weights alone."""
    out: Path | None = None
    """File to write; by default model.FORMAT in the seed's folder."""
    force: bool = False
    """Replace a file that exists."""

    def __post_init__(self) -> None:
        require(
            self.out is None or self.out.suffix == f".{self.format}",
            "out",
            f"a file that ends in .{self.format} with --format {self.format}",
            self.out,
        )


def export(args: list[str], console: Console) -> int:
    """Write a trained net to a file and print how far its logits are from the learner's; return the exit code."""
    options = arguments.read(ExportOptions, args, "droptop export", "writes the trained net of a run as one file")
    from droptop.runs.export import export as write
    from droptop.runs.loading import find_seed, restore

    with options.trusted():
        place = find_seed(options.run, options.arm, options.seed)
        learner, _, notes = restore(place, weights=options.weights, precision="fp32")
    for text in notes:
        note(text)
    run_options = place.config.options
    about = {
        "data": run_options.data,
        "method": run_options.method,
        "debias": run_options.debias,
        "seed": str(place.seed),
        "step": str(learner.clock["step"]),
    }
    path = options.out or place.folder / f"model.{options.format}"
    difference = write(learner, path, about, options.force)
    size, classes = path.stat().st_size / 2**20, int(learner.seen.sum())
    console.print(
        f"{path}: {size:.1f} MiB, {classes} classes; its logits are within {difference:.1g} of the learner's",
        soft_wrap=True,
    )
    return 0
