"""The command line: its first word names a command, whose module is imported only then, since torch loads for seconds.

Exit codes: 0 done, 1 something failed while running, 2 the request cannot be met, 130 interrupted.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

from droptop import __version__
from droptop.errors import BadRequest, DroptopError, meant, telling_no_memory
from droptop.escapes import visible
from droptop.system.terminal import Console, note, say
from droptop.system.user_files import hidden

USAGE = """\
usage: droptop COMMAND ...

  run      trains one method on one stream
             droptop run --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/er
  compare  trains it with and without debiasing on the same seeds, and says whether that helped
             droptop compare --data fashion-sticker --method er --debias droptop --seeds 5 --out runs/first
  resume   continues either from where it stopped, or with more seeds
             droptop resume runs/first --seeds 20
  predict  names the most probable classes of images, by the learner of a run
             droptop predict runs/first photo.jpg more/photos --maps looks
  export   writes the trained net of a run as one file: onnx, pt2 or safetensors
             droptop export runs/first --format onnx
  bench    measures milliseconds per step of every method, with and without debiasing, on this machine
             droptop bench --methods er,mir --steps 30
  sweep    runs a grid of methods, data, options and seeds; called again, it runs what is missing
             droptop sweep examples/study.toml --out studies/first
  stress   paints cues on your images, and says what each costs and what debiasing gives back
             droptop stress --data folder:my/images --method er --out studies/cues
  tune     finds options for a method on training images that are held out; test sets are not looked at
             droptop tune --data fashion --method er --over lr=log:0.005:0.5 --trials 20 --out tunes/first
  status   shows how far a run, comparison or study is
             droptop status studies/first
  results  shows what a study found, grouped by any of its options
             droptop results studies/first --by data,method,debias
  report   shows a run, comparison or study as one HTML page; --watch keeps it up to date while it goes on
             droptop report runs/first --open
  verify   checks that the files of a run, comparison or study are what was written
             droptop verify runs/first
  paper    runs the paper's tables and figures, and shows them beside the paper's values
             droptop paper list
  data     lists the streams and what is on this disk; downloads, checks, makes and draws data
             droptop data list

`droptop COMMAND --help` shows the options of a command. `run` and `compare` have more: --help-all shows every option of
the stream, method and debiasing named beside it.
"""


# The module of droptop.cli that has a function of the command's name.
COMMANDS = {
    "run": "run",
    "compare": "run",
    "resume": "run",
    "predict": "predict",
    "export": "export",
    "sweep": "sweep",
    "stress": "stress",
    "tune": "tune",
    "status": "status",
    "results": "results",
    "report": "report",
    "verify": "verify",
    "paper": "paper",
    "data": "data",
    "bench": "bench",
}
LOOKING = ("status", "results", "report")  # commands that run nothing of the user's own


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; print what goes wrong in one line; return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=140)  # a log has no edge to wrap at
    warnings.simplefilter("once")
    warnings.filterwarnings("ignore", "Image size .* exceeds limit")  # by Pillow; such an image is refused by name
    warnings.showwarning = Notes()
    try:
        with telling_no_memory():
            return serve(args, console)
    except KeyboardInterrupt as error:
        return ended("interrupted", error, 130)
    except DroptopError as error:
        return ended(str(error), error, 2 if isinstance(error, BadRequest) else 1)
    except BrokenPipeError:  # `droptop ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return ended(visible(f"{place}{error.strerror or error}"), error, 1)


def serve(args: list[str], console: Console) -> int:
    """Call the command that the first word names; return the exit code."""
    if not args or args[0] in ("-h", "--help", "--help-all"):
        say(*USAGE.splitlines())
        return 0 if args else 2
    name, *rest = args
    if name == "--version":
        say(f"droptop {__version__}")
        return 0
    if name not in COMMANDS:
        raise BadRequest(f"unknown command {name}: there are {', '.join(COMMANDS)}{meant(name, COMMANDS)}")
    command = getattr(import_module(f"droptop.cli.{COMMANDS[name]}"), name)
    with hidden() if name in LOOKING else nullcontext():
        return int(command(rest, console))


class Notes:
    """Print warnings as notes, each text once: Python forgets what it showed whenever its filters change."""

    def __init__(self) -> None:
        self.shown = set[str]()

    def __call__(self, message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in self.shown:
            self.shown.add(str(message))
            note(str(message))


def ended(text: str, error: BaseException, code: int) -> int:
    """Print what is wrong, as a rule in one line, with the notes that were added to the error; return the exit code."""
    *lines, last = f"droptop: {text}".split("\n")
    say(*lines, "; ".join([last, *getattr(error, "__notes__", [])]), file=sys.stderr)
    return code
