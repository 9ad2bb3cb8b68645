"""What can go wrong, by what a caller should do about it."""

import difflib
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any


class DroptopError(Exception):
    """Anything droptop reports in one line instead of a traceback."""

    resumable = False  # would the same command do better a second time?


class BadRequest(DroptopError):
    """The request cannot be met; nothing was written (exit code 2)."""


class Damaged(BadRequest):
    """Several files that cannot be used, with a reason each."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        """All of them in one line."""
        first, more = self.reasons[0], len(self.reasons) - 1
        return f"{first}; and {more} more file{'s' if more > 1 else ''} like it"


class BadBatch(DroptopError, ValueError):
    """A batch that `Learner.observe` refuses; the learner is unchanged."""


class Diverged(DroptopError):
    """The loss was not finite; weights, statistics and memory are as they were before that batch."""


class WorkerDied(DroptopError):
    """A process was killed, or the machine could not give it what it needed."""

    resumable = True


class DownloadFailed(DroptopError):
    """A file did not come, or not the right one; what came of it is kept, and the next attempt goes on from there."""


class BadCheckpoint(DroptopError):
    """A checkpoint, or a learner's state, that is damaged or does not belong here."""


def refuse(errors: Sequence[BadRequest]) -> None:
    """Raises them, if there are any, as one; what two of them say alike, since a file was looked at twice, once."""
    by_reason = {
        reason: error for error in errors for reason in (error.reasons if isinstance(error, Damaged) else [str(error)])
    }
    if by_reason:
        raise Damaged(list(by_reason)) if len(by_reason) > 1 else errors[0]


@contextmanager
def all_refusals() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Gives what to try one file after another in: what is wrong with one is raised once all of them were tried."""
    errors: list[BadRequest] = []

    @contextmanager
    def trying() -> Iterator[None]:
        try:
            yield
        except BadRequest as error:
            errors.append(error)

    yield trying
    refuse(errors)


def typed(*words: str | Path) -> str:
    """A command of droptop's as a person would type it."""
    return f"`droptop {shlex.join(map(str, words))}`"


def is_text(name: str) -> bool:
    """Not so the name of a file that is not in UTF-8, whose bytes Python keeps as lone surrogates."""
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


def meant(name: str, known: Iterable[str], dashes: str = "") -> str:
    """What ends a complaint about a name that is not known, where a known one is close to it."""
    close = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"; did you mean {dashes}{close[0]}?" if close else ""


def wrong(loss: float) -> str:
    """What is not finite about a step that had this loss."""
    return f"gradient of the loss, {loss:.3g}, is not finite" if math.isfinite(loss) else f"loss is {loss}"


def require(met: bool, option: str, takes: str, value: Any) -> None:
    """One voice for every impossible value: the option, what it takes, what it was given."""
    if not met:
        raise BadRequest(f"--{option.replace('_', '-')} takes {takes}, not {value}")
