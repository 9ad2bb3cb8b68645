"""Where droptop keeps what can be made again: decoded images, the script that draws a report's charts."""

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the folder of what can be made again: $DROPTOP_CACHE, else the user's cache as the system has it."""
    if chosen := os.environ.get("DROPTOP_CACHE"):
        return Path(chosen)
    return platformdirs.user_cache_path("droptop", appauthor=False)
