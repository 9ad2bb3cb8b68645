"""What a recipe measures itself, beside the cells of its study: measured once, then kept in a JSON file.

For example:

    def measure(results: CellResults, measurements: Measurements) -> None:
        for method in results.scope.methods:
            measurements.once(f"{method} step", lambda: time_of_a_step(method))

    results.measurements["er step"]      # in `show`

Every value has a name that says all that it depends on.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest
from droptop.system.files import write_json
from droptop.system.json_files import read_json


class Measurements(Mapping[str, Any]):
    """Keep values by name in a JSON file, saved as each is measured."""

    def __init__(self, path: Path) -> None:
        self.path, self.values_by_name = path, dict[str, Any]()
        if path.exists():
            try:
                self.values_by_name = dict(read_json(path))
            except (OSError, ValueError, TypeError) as error:
                raise BadRequest(f"{path} cannot be read ({error}); delete it to measure again") from None

    def once(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return the value of this name; measure and save it if it is not known yet."""
        if name not in self.values_by_name:
            self.values_by_name[name] = measure()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.path, self.values_by_name)
        return self.values_by_name[name]

    def __getitem__(self, name: str) -> Any:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)
