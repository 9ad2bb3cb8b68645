"""The runner of a recipe: it runs the cells that are missing and makes tables and figures of those that are there.

OUT is the folder of a study. A run can be killed at any moment and goes on where it was; finished cells are not run
again, and more seeds only add cells. Several recipes may share a folder: cells that they have in common run once.
"""

import re
import shlex
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest, require
from droptop.options import flatten
from droptop.paper import call_log
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Recipe, Scope
from droptop.paper.tables import Output, Table
from droptop.paper.write import Heading
from droptop.runs.config import resolve
from droptop.runs.environment import environment
from droptop.runs.folder import seed_folder
from droptop.runs.noted import environments
from droptop.streams import find as find_stream
from droptop.sweeps.grid import folder_name
from droptop.sweeps.sweep import Driver, Engine, Pack, sweep
from droptop.system.devices import is_cuda
from droptop.system.toml_files import parse_toml
from droptop.training.observer import Observer

NOT_OPTIONS = ("seeds", "methods", "data", "quick", "set")  # of a call: they make the scope, and are no cell's options
UNREMARKABLE = {"device", "precision", "threads", "root", "parallel", "first_seed"}  # options a reader need not know of
SEEDS, QUICK_SEEDS = 5, 2  # unless the call says otherwise; the paper has five


@dataclass(frozen=True)
class Call:
    """Hold a recipe, the options of its call, and the folder it writes to."""

    recipe: Recipe
    out: Path
    given: dict[str, Any]  # the options as typed, in this call or an earlier one
    scope: Scope
    left_out: tuple[str, ...] = ()  # why streams of the recipe are not in the scope

    @property
    def command(self) -> str:
        """Return the command that repeats this call."""
        words = ["droptop", "paper", self.recipe.name]
        for name, value in self.given.items():
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return shlex.join([*words, "--out", str(self.out)])


def call_for(recipe: Recipe, out: Path, options: dict[str, Any], run: bool = True) -> Call:
    """Return the call made of these options and, where they say nothing, of those of the last call in `out`.

    Raise BadRequest if the recipe cannot be run with them. With `run` false no data is needed.
    """
    given = call_log.last_options(out, recipe.name) | options
    given = {name: value for name, value in given.items() if value is not False}  # --no-quick takes a --quick back
    if out.is_dir() and any(out.iterdir()) and not any((out / name).exists() for name in ("study.toml", call_log.NAME)):
        raise BadRequest(f"--out takes a new folder or that of a study; {out} holds something else")
    scope = scope_for(recipe, given)
    call = Call(recipe, out, given, scope)
    if split(given.get("data", "")):
        return call
    return with_data_on_disk(call) if run else with_results(call)


def scope_for(recipe: Recipe, given: dict[str, Any]) -> Scope:
    """Return what the given options ask of a recipe; raise BadRequest if the recipe does not have it."""
    quick = bool(given.get("quick", False))
    methods = tuple(split(given.get("methods", ""))) or recipe.methods
    for method in methods:
        require(method in recipe.methods, "methods", f"some of {', '.join(recipe.methods)} with {recipe.name}", method)
    data = tuple(split(given.get("data", "")))
    takes = f"some of {', '.join(recipe.data)} with {recipe.name}"
    require(recipe.stand_in or set(data) <= set(recipe.data), "data", takes, ", ".join(data))
    for name in data:
        find_stream(name)
    defaults = recipe.quick_options() if quick else {}
    if data:
        defaults.pop("split", None)  # it names classes of the built-in streams
    more = settings(given.get("set", ""))
    options = defaults | {name: value for name, value in given.items() if name not in NOT_OPTIONS} | more
    seeds = given.get("seeds", QUICK_SEEDS if quick else SEEDS)
    scope = Scope(methods, data or (recipe.quick_data if quick else recipe.data), seeds, quick, options)
    check_names(recipe, scope, more)
    return scope


def check_names(recipe: Recipe, scope: Scope, options: dict[str, Any]) -> None:
    """Raise BadRequest if no cell of the recipe has one of these options."""
    configs = CellResults(recipe, scope, Path()).configs
    known = {path.rpartition(".")[2] for config in configs for path in flatten(config)}
    for name in options.keys() - known if configs else ():
        resolve(name, configs[-1], "--set: ")


def with_data_on_disk(call: Call) -> Call:
    """Return the call without streams whose data is not on this disk, unless all their cells are finished.

    Raise BadRequest if no stream is left.
    """
    kept, why = [], []
    for name in call.scope.data:
        results = results_of_stream(call, name)
        try:
            if not results.configs or results.missing:
                find_stream(name).data.where(root_of(call.scope))
            kept.append(name)
        except BadRequest as error:
            why.append(str(error))
    if not kept and why:
        raise BadRequest(why[0])
    return replace(call, scope=replace(call.scope, data=tuple(kept)), left_out=tuple(why))


def with_results(call: Call) -> Call:
    """Return the call without streams of which no cell is finished; with all of them if none has a finished cell."""
    names = call.scope.data
    kept = tuple(name for name in names if any(results_of_stream(call, name).finished.values())) or names
    why = tuple(f"nothing of {name} is there" for name in names if name not in kept)
    return replace(call, scope=replace(call.scope, data=kept), left_out=why)


def results_of_stream(call: Call, data: str) -> CellResults:
    """Return the results of the call's cells on one stream."""
    return CellResults(call.recipe, replace(call.scope, data=(data,)), call.out)


def root_of(scope: Scope) -> Path | None:
    """Return the folder of the data sets, None for the default one."""
    return Path(scope.options["root"]) if "root" in scope.options else None


def collect(call: Call) -> CellResults:
    """Return the results of the cells that are finished."""
    return CellResults(call.recipe, call.scope, call.out)


def run_missing(call: Call, engine: Engine, observer: Observer) -> CellResults:
    """Run the cells that are missing, measure what no cell records, and return the results."""
    results = collect(call)
    if results.missing:

        def record_and_run(packs: list[Pack], driver: Driver) -> None:
            record(call, running=True)
            engine(packs, driver)

        with tempfile.TemporaryDirectory() as folder:
            study = Path(folder) / "study.toml"
            study.write_text(call.scope.toml(call.recipe.study(call.scope)), "utf-8")
            sweep(study, call.out, record_and_run, observer)
        results = collect(call)
    if call.recipe.measure is not None and not results.missing:
        known = len(results.measurements)
        call.recipe.measure(results, results.measurements)
        if len(results.measurements) > known and not results.configs:
            record(call, running=True)
    if call_log.last_options(call.out, call.recipe.name) != call.given:
        record(call)
    return results


def record(call: Call, running: bool = False) -> None:
    """Write the call into the folder's log and, where something is run, its date and machine."""
    here = environment(call.scope.options.get("device", "cpu"), call.scope.options.get("threads", 1))
    run = {"date": time.strftime("%Y-%m-%d"), "machine": machine(here)}
    call_log.record(call.out, call.recipe.name, call.given, run if running else None)


def outputs(results: CellResults) -> list[Output]:
    """Return what the recipe shows: p-values corrected and, in a quick look, nothing that the paper says."""
    shown: list[Output] = []
    for output in results.recipe.show(results):
        if isinstance(output, Table):
            output = output.corrected()
            output = output.without_paper() if results.scope.quick else output
        shown.append(output)
    return shown


# -- Where it comes from ----------------------------------------------------------------------------------------------


def heading(call: Call, results: CellResults) -> Heading:
    """Return command, machine and date of the runs, and whatever a reader must know of them."""
    runs = call_log.runs(call.out, call.recipe.name)
    dates = sorted({run["date"] for run in runs} or set(file_dates(results)))
    when = "" if not dates else f" {dates[0]}" if len(dates) == 1 else f" {dates[0]} to {dates[-1]}"
    where = unique([*machines(results), *(run["machine"] for run in runs)])  # seeds added later may have run elsewhere
    facts = [f"Run{when} on {'; '.join(where)}."]
    if call.scope.quick:
        facts.append(
            "**A quick look**: small nets and a few steps on built-in images. It shows that the recipe runs "
            "and what comes of it; its figures say nothing about the paper's, of which none is quoted."
        )
    elif changed := {name: value for name, value in call.scope.options.items() if name not in UNREMARKABLE}:
        facts.append(f"Every cell with {', '.join(f'{name} = {value}' for name, value in changed.items())}.")
    if call.recipe.prompts and not call.scope.quick:
        facts.append("The paper's prompt learners stand on a pretrained ViT-B/16.")
    if results.missing:
        total = sum(len(config.seeds) for config in results.configs)
        facts.append(f"**Not complete**: {results.missing} of {total} cells are not done; n is what there is.")
    facts += [f"Left out: {why}." for why in call.left_out]
    return Heading(f"{call.recipe.place}: {call.recipe.about}", [call.command], facts)


def machines(results: CellResults) -> list[str]:
    """Return the machines that cells ran on, from their environment.json."""
    texts = []
    for config in results.configs:
        if results.finished[folder_name(config)]:
            with suppress(KeyError):  # a file that was not written by us
                texts += [machine(recorded) for recorded in environments(results.folder(config))]
    return unique(texts)


def machine(here: dict[str, Any]) -> str:
    """Return an environment in words: device, threads, versions, commit."""
    versions = here["versions"]
    commit = f" at {here['commit'][:7]}" if here.get("commit") else ""
    threads = "" if is_cuda(here["device"]) else f", {here['threads']} thread{'s' * (here['threads'] > 1)} per seed"
    return (
        f"{here['device_name'] or here['device']}{threads}, Python {here['python']}, torch {versions['torch']}, "
        f"droptop {versions['droptop']}{commit}"
    )


def file_dates(results: CellResults) -> Iterable[str]:
    """Yield the dates on which results were written, according to their files."""
    for config in results.configs:
        for seed in results.finished[folder_name(config)]:
            written = (seed_folder(results.folder(config), seed) / "result.json").stat().st_mtime
            yield time.strftime("%Y-%m-%d", time.localtime(written))


def unique(texts: Iterable[str]) -> list[str]:
    """Return the texts in their order, each once."""
    return list(dict.fromkeys(texts))


# -- Options as people type them --------------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    """Return the names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def settings(text: str) -> dict[str, Any]:
    """Return the options in a text such as `lr=0.03,split=0,1/2,3`; raise BadRequest if it is no such list.

    A value is read as TOML, else it is a word; it may contain commas.
    """
    options: dict[str, Any] = {}
    for part in filter(None, re.split(r"\s*,\s*(?=[\w-]+=)", text.strip(", "))):
        name, equals, value = part.partition("=")
        require(bool(name and equals and value), "set", "options such as lr=0.03,width=20", part)
        try:
            options[name.replace("-", "_")] = parse_toml(f"value = {value}")["value"]
        except ValueError:
            options[name.replace("-", "_")] = value
    return options
