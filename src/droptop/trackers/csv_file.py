"""`--log csv`: seed-K/scalars.csv, one line per value.

In pandas, `.pivot(index="step", columns="scalar", values="value")` makes one column per scalar.
"""

import csv
from pathlib import Path

from droptop.escapes import csv_cell
from droptop.system.plain_files import not_through_links
from droptop.trackers.tracker import Tracker


class CsvFile(Tracker):
    """Write every scalar to scalars.csv in the folder of the seed."""

    def __init__(self, folder: Path, group: str, name: str) -> None:
        super().__init__(folder, group, name)
        self.file = open(folder / "scalars.csv", "w", newline="", opener=not_through_links)  # noqa: SIM115
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(("step", "scalar", "value"))

    def scalars(self, step: int, values: dict[str, float]) -> None:
        self.writer.writerows((step, csv_cell(name), value) for name, value in values.items())
        self.file.flush()  # so that the file can be followed

    def close(self) -> None:
        self.file.close()
