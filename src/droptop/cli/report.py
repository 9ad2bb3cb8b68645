"""`droptop report`: a run, a comparison or a study as one HTML page."""

import shlex
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from droptop.cli import arguments, run_flags
from droptop.errors import BadRequest, require
from droptop.methods import from_file
from droptop.options import flatten
from droptop.runs.config import Config, defaults
from droptop.runs.requests import load


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    folder: Annotated[Positional[Path], arg(metavar="FOLDER", help="A run, comparison or study, finished or not.")]
    out: Path | None = None
    """File to write; report.html in the folder unless told."""
    open: bool = False
    """Open the page in the browser."""
    watch: bool = False
    """Serve the page on 127.0.0.1 and keep it up to date, until Ctrl-C."""
    port: int | None = None
    """Port to serve it on; a free one unless told."""

    def __post_init__(self) -> None:
        require(
            self.port is None or (self.watch and 1 <= self.port <= 65535),
            "port",
            "a number from 1 to 65535, and --watch beside it",
            self.port,
        )
        require(self.out is None or not self.watch, "out", "a file to write, which --watch does not", self.out)


def report(args: list[str], console: Console) -> int:
    options = arguments.read(ReportOptions, args, "droptop report", "a run, comparison or study as one HTML page")
    folder, out = options.folder, options.out or options.folder / "report.html"
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not a folder")
    again = command(folder)
    require(out.parent.is_dir() and not out.is_dir(), "out", "a file in an existing folder", out)
    try:
        from droptop.report.page import render
    except ModuleNotFoundError as error:
        raise BadRequest(f"the report needs {error.name}: pip install 'droptop[report]'") from None
    if options.watch:
        return watch(folder, again, options.port or 0, options.open, console)
    try:
        render.write_report(folder, out, again)
    except PermissionError as error:
        raise BadRequest(f"{out} cannot be written ({error.strerror}): --out names another file") from None
    console.print(f"report in {out}", highlight=False, markup=False, soft_wrap=True)
    if options.open:
        webbrowser.open(out.resolve().as_uri())
    return 0


def watch(folder: Path, again: str, port: int, show: bool, console: Console) -> int:
    """Serves the page until somebody has seen enough."""
    from droptop.report.page.render import describe, render
    from droptop.report.page.serve import Pages, server

    pages = Pages(folder, lambda version: render(describe(folder, again), version))
    pages.html()  # whatever is wrong with the folder is said now
    with server(pages, port) as serving:
        address = f"http://127.0.0.1:{serving.server_port}/"
        console.print(f"report at {address} (Ctrl-C ends it)", highlight=False, markup=False, soft_wrap=True)
        if show:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            serving.serve_forever()
    return 0


def command(folder: Path) -> str:
    """What to type to make the same again, in a folder of its own."""
    if (folder / "study.toml").is_file():
        return shlex.join(["droptop", "sweep", str(folder / "study.toml"), "--out", f"{folder}-again"])
    name, config = load(folder)
    return shlex.join(["droptop", name, *flags_of(config), "--out", f"{folder}-again"])


def flags_of(config: Config) -> list[str]:
    """The flags of a configuration: its three names, and whatever is not as they say; whatever there is where nobody
    can tell what they say, since the method's file is gone."""
    options = config.options
    named = {"data": options.data, "method": options.method, "debias": options.debias}
    known = from_file.is_there(options.method)
    base = defaults(options.data, options.method, options.debias) if known else config
    usual = flatten(base) if known else named
    idle = ("stream.tasks", "stream.class_order") if config.stream.split else ()  # nor are they taken beside it
    others = {
        path: value
        for path, value in flatten(config).items()
        if value not in (None, usual.get(path)) and path not in idle
    }
    return [token for path, value in (named | others).items() for token in run_flags.as_tokens(path, value, base)]
