"""What `--preset tuned` stands for: options that `droptop tune` found for a method on a stream.

An entry is added by a study whose table is committed with it; there is none without.
"""

from typing import Any, NamedTuple

from droptop.errors import BadRequest, typed
from droptop.system.short_names import short_name

PAPER, TUNED = "paper", "tuned"  # the presets that every method has


class TunedPreset(NamedTuple):
    """Hold options by name, and the page with the study that found them."""

    options: dict[str, Any]
    page: str  # such as docs/evidence/tuned.md


PRESETS: dict[tuple[str, str], TunedPreset] = {}  # by method and stream


def tuned_options(method: str, data: str) -> dict[str, Any]:
    """Return the options that were tuned for a method on a stream; refuse a pair that nobody has tuned."""
    if (found := PRESETS.get((method, data))) is not None:
        return found.options
    known = ", ".join(f"{method} on {data}" for method, data in PRESETS) or "none"
    own = typed("tune", "--data", data, "--method", method, "--out", "FOLDER")
    raise BadRequest(
        f"--preset tuned takes a method and a stream that were tuned ({known}), not {short_name(method)} on "
        f"{short_name(data)}: {own} tunes them"
    )
