"""`--log tensorboard`: event files in seed-K/tensorboard, for `tensorboard --logdir runs`."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from droptop.trackers.tracker import Tracker


class TensorBoard(Tracker):
    """Write scalars, options and figures as event files of TensorBoard."""

    def __init__(self, folder: Path, group: str, name: str) -> None:
        super().__init__(folder, group, name)
        from torch.utils.tensorboard import SummaryWriter

        place = folder / "tensorboard"
        earlier = list(place.glob("events.out.tfevents.*"))
        for file in earlier:
            file.unlink()
        # A TensorBoard that is running then drops the earlier files as well.
        self.writer = SummaryWriter(str(place), purge_step=0 if earlier else None)
        self.last, self.end = 0, None

    def hyperparameters(self, values: dict[str, Any]) -> None:
        from torch.utils.tensorboard.summary import hparams

        plain = {name: value if isinstance(value, bool | int | float) else str(value) for name, value in values.items()}
        _, start, self.end = hparams(plain, {})  # the first part would tell the HParams tab that nothing is measured
        self.writer._get_file_writer().add_summary(start)
        rows = "\n".join(f"| {name} | {value} |" for name, value in plain.items())
        self.writer.add_text("options", f"| option | value |\n|---|---|\n{rows}")

    def scalars(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.last = step

    def figure(self, name: str, picture: Image.Image) -> None:
        self.writer.add_image(name, np.asarray(picture.convert("RGB")), self.last, dataformats="HWC")

    def close(self) -> None:
        if self.end is not None:
            self.writer._get_file_writer().add_summary(self.end)
        self.writer.close()
