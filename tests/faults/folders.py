"""The commands that harm is done to, what they leave when nothing happens, and how a folder is made whole again."""

import hashlib
import shlex
from pathlib import Path

from faults.commands import Done, run
from faults.injection import Fault, chances, harm, record

SMALL = shlex.split(
    "--data fashion-sticker --limit 64 --width 4 --memory 40 --seeds 1 --period 1 --history 2 --significance 0.49 "
    "--kappa-0 2 --tasks 2 --maps 2 --checkpoint-seconds 0"
)
RUN = ["run", "--method", "er", "--debias", "droptop", *SMALL]
COMPARE = ["compare", "--method", "er", "--debias", "droptop", *SMALL]


MOMENTARY = (".lock", ".sweep")  # the beginnings of what says who is at work


def whole(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file by its path, but for locks; nothing is allowed to be half written."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(MOMENTARY)]
    left = [path for path in paths if path.suffix == ".part"]
    assert not left, f"{left} are left"
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def straight(place: Path, args: list[str]) -> tuple[dict[str, str], list[tuple[str, str, int]]]:
    """Run a command undisturbed; return its files, and the calls at which it can be harmed."""
    out, log = place / "out", place / "log"
    done = run(place / "said", *args, "--out", out, prepare=record, given=(out, log))
    assert done.code == 0, done.err
    return whole(out), chances(log)


def harmed(place: Path, args: list[str], fault: Fault) -> tuple[Path, Done]:
    """Run a command with a fault; return its folder, and what became of it."""
    out, struck = place / "out", place / "struck"
    done = run(place / "said", *args, "--out", out, prepare=harm, given=(out, fault, struck))
    assert struck.exists(), f"{fault} was never reached: {done}"
    return out, done


def mended(out: Path, args: list[str]) -> Done:
    """Continue a folder, as its owner would: a study by `sweep`, a run by `resume` if it was begun, else as before."""
    if (out / "study.toml").exists():
        args = ["sweep"]
    elif (out / "config.toml").exists():
        return run(out.parent / "again", "resume", out)
    return run(out.parent / "again", *args, "--out", out)
