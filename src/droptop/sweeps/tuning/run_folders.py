"""Run folders of trials: made like any other, but that nothing in them is known of test sets."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from droptop.data.columns import Columns
from droptop.runs.config import Config
from droptop.runs.requests import file_hash
from droptop.streams import user_stream
from droptop.sweeps.sweep import prepare
from droptop.system import user_files
from droptop.training.observer import Observer


def prepared_by(observer: Observer) -> Callable[[Path, Config], Config]:
    """Return what makes the run folder of a configuration, and hashes each of the user's files once."""
    hashed = cache(without_tests)
    return lambda run, config: prepare(run, config, observer.note, hashed)


def without_tests(option: str, value: str | None, columns: Columns = Columns()) -> str | None:
    """Return the SHA-256 of what an option names, as `file_hash` does; of a user's own stream without its test sets."""
    if option == "data" and value is not None and user_files.is_own(value):
        return user_stream.sha256(user_stream.maker(value), tests=False) if user_files.is_there(value, option) else None
    return file_hash(option, value, columns)
