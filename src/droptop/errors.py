"""The errors that droptop raises, by what a caller should do about them, and helpers that word their messages."""

import difflib
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from droptop.escapes import visible


class DroptopError(Exception):
    """An error that is reported in one line instead of a traceback; of several arguments, each is a line."""

    resumable = False  # True where the same command may succeed when it is given again
    resumed = "continues"  # what `droptop resume` then does

    def __str__(self) -> str:
        """Return the message; no name in it can add a line, or steer a terminal."""
        return "\n".join(visible(str(line)) for line in self.args)


class BadRequest(DroptopError):
    """A request that cannot be met; nothing was written (exit code 2)."""


class Damaged(BadRequest):
    """Several files that cannot be used, each with its reason."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        """Return the first reason and how many more there are, in one line."""
        first, more = self.reasons[0], len(self.reasons) - 1
        return f"{visible(str(first))}; and {more} more file{'s' if more > 1 else ''} like it"


class BadBatch(DroptopError, ValueError):
    """A batch that `Learner.observe` refuses; the learner is unchanged."""


class Diverged(DroptopError):
    """A loss that is not finite; weights, statistics and memory are as they were before that batch."""


class WorkerDied(DroptopError):
    """A process that was killed, or that lacked something of the machine, such as memory."""

    resumable = True


class DiedAtOnce(WorkerDied):
    """A process that died before it had saved anything of its seed."""

    resumed = "begins the seed again"


class DownloadFailed(DroptopError):
    """A file that did not arrive, or is not the right one; the next attempt continues where this one stopped."""


class BadCheckpoint(DroptopError):
    """A checkpoint, or the state of a learner, that is damaged or belongs to something else."""


def no_memory(error: BaseException) -> str | None:
    """Return in a line that memory was lacking, if that is what an error of Python or torch says."""
    text = str(error)
    if not isinstance(error, MemoryError) and not (isinstance(error, RuntimeError) and "alloc" in text):
        return None
    return "this machine has not the memory for it" + (f": {text.splitlines()[0]}" if text else "")


@contextmanager
def telling_no_memory() -> Iterator[None]:
    """Raise WorkerDied, which is told in a line, where memory is lacking inside this context."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if (text := no_memory(error)) is None:
            raise
        raise WorkerDied(text) from None


def refuse(errors: Sequence[BadRequest]) -> None:
    """Raise these errors, if there are any, as one error that gives every reason once."""
    by_reason = {
        reason: error for error in errors for reason in (error.reasons if isinstance(error, Damaged) else [str(error)])
    }
    if by_reason:
        raise Damaged(list(by_reason)) if len(by_reason) > 1 else errors[0]


@contextmanager
def all_refusals() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Collect refusals, so that one bad file does not hide the others.

    Gives a context manager, `trying`. What raises BadRequest inside `with trying():` is skipped, and all refusals are
    raised together at the end.
    """
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
    """Return a command of droptop as a person would type it, in backquotes."""
    return f"`droptop {shlex.join(map(str, words))}`"


def is_text(name: str) -> bool:
    """Return whether a file's name is UTF-8; Python keeps the bytes of other names as lone surrogates."""
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


def a_kind(kind: type) -> str:
    """Return the name of a type with its article: an int, a list."""
    return f"a{'n' * (kind.__name__[0] in 'aeiouAEIOU')} {kind.__name__}"


def meant(name: str, known: Iterable[str], dashes: str = "") -> str:
    """Return "; did you mean NAME?" where a known name is close to this unknown one, else nothing."""
    close = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"; did you mean {dashes}{close[0]}?" if close else ""


def wrong(loss: float) -> str:
    """Return a few words on a step that failed: its loss is not finite, or else the gradient of its loss."""
    return f"gradient of the loss, {loss:.3g}, is not finite" if math.isfinite(loss) else f"loss is {loss}"


def require(met: bool, option: str, takes: str, value: Any) -> None:
    """Raise BadRequest unless the condition is met: name the option, what it takes, and the value it was given."""
    if not met:
        raise BadRequest(f"--{option.replace('_', '-')} takes {takes}, not {value}")
