"""`--log wandb`: Weights & Biases, offline in seed-K/wandb unless WANDB_MODE says otherwise; `wandb sync` uploads it.

The project is droptop unless WANDB_PROJECT names another; the seeds of a run form a group. A resumed seed keeps its id.
Offline, its earlier part is written again, so that one folder holds all of it; online, W&B has that part already.
"""

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import Image

from droptop.system.files import write_atomic
from droptop.system.plain_files import bytes_of
from droptop.trackers.tracker import Tracker


def run_id(noted: Path) -> str:
    """Return the id that a file notes, a new one where it notes none; what is no id could lead out of the folder."""
    with suppress(OSError, ValueError):
        if re.fullmatch("[0-9a-f]{8}", number := bytes_of(noted).decode()):
            return number
    number = secrets.token_hex(4)
    write_atomic(noted, number.encode())
    return number


class WeightsAndBiases(Tracker):
    """Log scalars, options and figures to a run of Weights & Biases."""

    def __init__(self, folder: Path, group: str, name: str) -> None:
        super().__init__(folder, group, name)
        import wandb

        place = folder / "wandb"
        place.mkdir(exist_ok=True)
        number = run_id(place / "run-id")
        for earlier in place.glob(f"offline-run-*-{number}"):
            shutil.rmtree(earlier)
        quiet = wandb.Settings(silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True)
        self.run = wandb.init(
            mode=None if "WANDB_MODE" in os.environ else "offline",
            group=group,
            name=name,
            id=number,
            project=os.environ.get("WANDB_PROJECT", "droptop"),
            resume="allow",
            dir=folder,
            reinit="create_new",
            settings=quiet,
        )  # several seeds may share a process
        self.known = self.run.step  # steps that W&B has already, and refuses to take again
        self.last = 0

    def hyperparameters(self, values: dict[str, Any]) -> None:
        self.run.config.update(values, allow_val_change=True)

    def scalars(self, step: int, values: dict[str, float]) -> None:
        self.last = step
        if step >= self.known:
            self.run.log(values, step=step)

    def figure(self, name: str, picture: Image.Image) -> None:
        import wandb

        self.run.log({name: wandb.Image(picture)}, step=self.last)

    def close(self) -> None:
        self.run.finish()
