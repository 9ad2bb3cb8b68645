"""`droptop paper list | NAME`: the tables and figures of the paper, run and shown beside the paper's values."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Column, Table

from droptop.cli import arguments, help
from droptop.cli.data import ListOptions
from droptop.cli.sweep import CellProgress, EngineOptions
from droptop.errors import BadRequest, require, typed
from droptop.nets import Precision
from droptop.runs.trust import named
from droptop.streams import find as find_stream
from droptop.sweeps.trust import trusted_cells
from droptop.system.terminal import Console, complain, folded, note, say
from droptop.system.user_files import hidden

if TYPE_CHECKING:
    from droptop.paper.recipe import Recipe

WIDE = 240  # columns of a log, which has no edge to wrap at

USAGE = """\
usage: droptop paper NAME --out FOLDER ...

  list    lists every table and figure of the paper, what it needs, and whether that is on this disk
            droptop paper list --root ~/data
  NAME    runs what is missing of it, and writes it beside the paper's figures as Markdown, CSV, LaTeX, PNG and PDF
            droptop paper table1 --seeds 10 --methods er,derpp --data split-cifar10 --out runs/table1
            droptop paper table1 --quick --out runs/look
            droptop paper table1 --out runs/table1 --no-run     writes what is there, also on a machine without the GPU

A folder that was interrupted goes on where it was: droptop paper table1 --out runs/table1
"""


@dataclass(frozen=True, kw_only=True)
class PaperOptions(EngineOptions):
    """Hold the options of `droptop paper NAME`; one that is not given is as in the last call for this folder."""

    seeds: int | None = None
    """Number of seeds per configuration; by default the paper's 5, or 2 in a quick look."""
    first_seed: int | None = None
    """The first seed; by default 0."""
    methods: str | None = None
    """Some of the recipe's methods, separated by commas; by default all."""
    data: str | None = None
    """Streams, separated by commas: some of the recipe's, or others in their place, such as split-tiny-imagenet9; by
    default all of the recipe's."""
    quick: bool = False
    """Show what the recipe makes in about a minute on a CPU: built-in streams, small nets, a few steps."""
    root: Path | None = None
    """Folder of the data sets; by default the one that DROPTOP_DATA names, else ./data."""
    weights: str | None = None
    """Weights of the prompt learners' ViT: a safetensors file, hf:OWNER/NAME, or random; by default prompt learners are
    left out."""
    device: str | None = None
    """Device to train on; by default cpu."""
    precision: Precision | None = None
    """Precision of the net; by default tf32."""
    threads: int | None = None
    """Threads per process; by default 1."""
    limit: int | None = None
    """Training samples per task, at most; by default all."""
    parallel: int | None = None
    """Number of seeds that train at once on a GPU, at most; by default as many as are useful and fit in its memory."""
    run: bool = True
    """Run what is missing, then write the tables and figures of what is there."""
    set: str | None = None
    """More options of every cell, such as lr=0.03,width=20; by default none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.seeds is None or self.seeds >= 1, "seeds", "a number of seeds from 1", self.seeds)
        require(self.root is None or self.root.is_dir(), "root", "an existing folder", self.root)
        require(not self.out.exists() or self.out.is_dir(), "out", "a folder", self.out)

    def given(self, args: list[str]) -> dict[str, Any]:
        """Return the options that were given, as words and numbers, without those that hold for this call alone.

        A flag that is false may be given or not: only the arguments tell.
        """
        of_this_call = {"run", *EngineOptions.__dataclass_fields__}
        values = {
            name: value
            for name, value in vars(self).items()
            if name not in of_this_call and value is not None and (value is not False or f"--no-{name}" in args)
        }
        return {name: str(value.absolute()) if isinstance(value, Path) else value for name, value in values.items()}


def paper(args: list[str], console: Console) -> int:
    """List the recipes, or run what is missing of one and write its tables and figures; return the exit code."""
    if not args or args[0] in help.WORDS:
        say(*USAGE.splitlines())
        return 0 if args else 2
    if args[0] == "list":
        return show_list(
            arguments.read(ListOptions, args[1:], "droptop paper list", "lists every table and figure of the paper"),
            console,
        )
    from droptop.paper import find

    recipe = find(args[0])
    options = arguments.read(PaperOptions, args[1:], f"droptop paper {recipe.name}", f"{recipe.place}: {recipe.about}")
    from droptop.paper import call_log, runner

    given, again = options.given(args), typed("paper", *args, "--trust")
    if not options.run:
        with hidden():
            return made(recipe, given, options, console)
    named(given | runner.settings(given.get("set", "")))
    last = call_log.last_options(options.out, recipe.name)
    before = {name: value for name, value in last.items() if name not in given}
    noted = [before, runner.settings(before.get("set", ""))]
    with trusted_cells(options.out / call_log.NAME, options.out, noted, options.trust, again):
        return made(recipe, given, options, console)


def made(recipe: "Recipe", given: dict[str, Any], options: PaperOptions, console: Console) -> int:
    """Run what is missing of a recipe, if it is to be run, and write its tables and figures; return the exit code."""
    from droptop.paper import runner, write

    call, interrupted = runner.call_for(recipe, options.out, given, options.run), False
    for why in call.left_out:
        note(f"left out: {why}")
    try:
        with CellProgress(console) as observer:
            results = runner.run_missing(call, options.start(), observer) if options.run else runner.collect(call)
    except KeyboardInterrupt:
        interrupted, results = True, runner.collect(call)
    done = sum(len(seeds) for seeds in results.finished.values())
    shows = bool(done) or (not results.configs and (options.run or len(results.measurements) > 0))
    if not (options.run or shows):
        raise BadRequest(f"--no-run shows what is there; {options.out} has no finished cell of {recipe.name}")
    if shows:
        outputs = runner.outputs(results)
        files = write.write(outputs, runner.heading(call, results), options.out, recipe.name)
        wide = console if console.is_terminal else Console(width=WIDE)
        for table in write.rich_tables(outputs):
            wide.print(table)
        if call.scope.quick:
            console.print(
                "a quick look: small nets and a few steps, whose figures say nothing about the paper's", soft_wrap=True
            )
        console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True)
    if interrupted:
        complain(f"droptop: interrupted; {typed('paper', recipe.name, '--out', options.out)} continues")
        return 130
    if results.missing and options.run:
        complain(f"droptop: {results.missing} cells failed or are not done; {typed('status', options.out)} says why")
        return 1
    return 0


def show_list(options: ListOptions, console: Console) -> int:
    """Print every recipe, what it needs, and whether that is on this disk; return the exit code."""
    from droptop.paper import every_recipe

    rows = []
    for recipe in every_recipe().values():
        needs = [f"{name} ({'there' if is_there(name, options.root) else 'not on this disk'})" for name in recipe.data]
        needs += ["--weights of a ViT"] if recipe.prompts else []
        rows.append((recipe.name, recipe.place, recipe.about, ", ".join(needs) or "nothing", recipe.takes or "-"))
    if console.is_terminal:
        table = Table(Column("recipe", no_wrap=True), "in the paper", "what it shows", "needs", "takes, 5 seeds")
        for row in rows:
            table.add_row(*map(folded, row))
        console.print(table)
    else:  # a line per recipe, for other programs
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in rows:
            say("  ".join(f"{cell:{width}}" for cell, width in zip(row, (*widths, 0))).rstrip())
    console.print(
        "every recipe also takes --quick: a look at what it shows, in about a minute on a CPU, without data or weights",
        soft_wrap=True,
    )
    return 0


def is_there(stream: str, root: Path | None) -> bool:
    """Return whether the data of a stream is on this disk."""
    try:
        find_stream(stream).data.where(root)
    except BadRequest:
        return False
    return True
