"""`droptop report`: a run, a comparison or a study as one HTML page.

Loads neither torch nor a learner where the folder records the flags of its run, as newer folders do.
"""

import shlex
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from tyro.conf import Positional, arg

from droptop.cli import arguments
from droptop.cli.arguments import names
from droptop.errors import BadRequest, require
from droptop.runs.folder import read_request
from droptop.runs.noted import recorded_flags
from droptop.sweeps.tuning.tune_json import is_tuning, read_found
from droptop.system.files import write_atomic
from droptop.system.terminal import Console, note


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Hold the options of `droptop report`."""

    folder: Annotated[
        Positional[Path], arg(metavar="FOLDER", help="A run, comparison, study or tuning, finished or not.")
    ]
    out: Path | None = None
    """File to write; by default report.html in the folder."""
    by: str | None = None
    """Options to group a study by, separated by commas, such as lr,debias: of a numeric one, accuracy is shown over its
    values. By default method and debiasing."""
    against: str | None = None
    """Reference of a study's differences: a debiasing, a method, or an option with its value (lr=0.1); by default the
    same without debiasing."""
    open: bool = False
    """Open the page in the browser."""
    watch: bool = False
    """Serve the page on 127.0.0.1 and keep it up to date, until Ctrl-C."""
    port: int | None = None
    """Port on which the page is served, beside --watch; by default a free one."""

    def __post_init__(self) -> None:
        require(
            self.port is None or (self.watch and 1 <= self.port <= 65535),
            "port",
            "a number from 1 to 65535, and --watch beside it",
            self.port,
        )
        require(self.out is None or not self.watch, "out", "a file to write, which --watch does not", self.out)


def report(args: list[str], console: Console) -> int:
    """Write or serve the page of a folder; return the exit code."""
    options = arguments.read(ReportOptions, args, "droptop report", "shows a run, comparison or study as one HTML page")
    folder, out = options.folder, options.out or options.folder / "report.html"
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not a folder")
    again, by, is_study = command(folder), names(options.by), (folder / "study.toml").is_file()
    require(is_study or options.by is None, "by", "a study's folder", folder)
    require(is_study or options.against is None, "against", "a study's folder", folder)
    require(out.parent.is_dir() and not out.is_dir(), "out", "a file in an existing folder", out)
    try:
        from droptop.report.page import render
    except ModuleNotFoundError as error:
        raise BadRequest(f"the report needs {error.name}: pip install 'droptop[report]'") from None
    if options.watch:
        page = partial(render.describe, folder, again, by, options.against)
        return watch(folder, page, options.port or 0, options.open, console)
    try:
        written = render.describe(folder, again, by, options.against)
        write_atomic(out, render.render(written).encode())
    except PermissionError as error:
        raise BadRequest(f"{out} cannot be written ({error.strerror}): --out names another file") from None
    for line in written.unfit:
        note(line)
    console.print(f"report in {out}", soft_wrap=True)
    if options.open:
        webbrowser.open(out.resolve().as_uri())
    return 0


def watch(folder: Path, page: Callable[[], Any], port: int, show: bool, console: Console) -> int:
    """Serve the page that a function describes, and keep it up to date until Ctrl-C; return the exit code."""
    from droptop.report.page.render import render
    from droptop.report.page.serve import Pages, server

    pages = Pages(folder, lambda version: render(page(), version))
    pages.html()  # refuses a folder that cannot be shown, before anything is served
    with server(pages, port) as serving:
        address = serving.address
        console.print(f"report at {address} (Ctrl-C ends it)", soft_wrap=True)
        with suppress(KeyboardInterrupt), TemporaryDirectory() as own:
            if show:  # by a file that only this user can read: commands, with a token in them, can be read by all
                leads = Path(own) / "report.html"
                leads.write_text(f'<meta http-equiv="refresh" content="0; url={address}">')
                webbrowser.open(leads.as_uri())
            serving.serve_forever()
    return 0


def command(folder: Path) -> str:
    """Return the command that makes the same again, in a folder of its own."""
    if is_tuning(folder):
        return shlex.join([*read_found(folder)["command"], "--out", f"{folder}-again"])
    if (folder / "study.toml").is_file():
        return shlex.join(["droptop", "sweep", str(folder / "study.toml"), "--out", f"{folder}-again"])
    request, flags = read_request(folder), recorded_flags(folder)
    if flags is None:
        from droptop.runs.flags import flags_of  # these load torch and every learner
        from droptop.runs.requests import load

        flags = flags_of(load(folder)) or ["--config", str(folder / "config.toml")]
    return shlex.join(["droptop", request.command, *flags, "--out", f"{folder}-again"])
