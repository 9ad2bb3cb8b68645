"""Runs what is missing of a recipe, and shows what is there.

OUT is the folder of a study: it can be killed at any moment and goes on where it was, cells that are done are not run
again, more seeds add cells. Several recipes may share a folder; cells that they have in common are then run once.
"""

import re
import shlex
import tempfile
import time
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest, require
from droptop.options import flatten
from droptop.paper import call_log as call_log
from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Recipe, Scope
from droptop.paper.tables import Output, Table
from droptop.paper.write import Heading
from droptop.runs.config import resolve
from droptop.runs.environment import environment
from droptop.runs.folder import environments, seed_folder
from droptop.streams import find as find_stream
from droptop.sweeps.grid import folder_name
from droptop.sweeps.sweep import Driver, Engine, Pack, sweep
from droptop.training.observer import Observer

AS_BEFORE = {"device", "precision", "threads", "root", "parallel", "first_seed"}  # nothing that a reader must be told
SEEDS, QUICK_SEEDS = 5, 2  # unless told; the paper has five


@dataclass(frozen=True)
class Order:
    """A recipe, what is asked of it, and where."""

    recipe: Recipe
    out: Path
    asked: dict[str, Any]  # the options as they were given, now and before
    scope: Scope
    left_out: tuple[str, ...] = ()  # why streams of the recipe are not in the scope

    @property
    def command(self) -> str:
        """What to type to have the same again."""
        words = ["droptop", "paper", self.recipe.name]
        for name, value in self.asked.items():
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return shlex.join([*words, "--out", str(self.out)])


def order_for(recipe: Recipe, out: Path, given: dict[str, Any], run: bool = True) -> Order:
    """An order from the options given now and, where they say nothing, from those given before; if it is not to be run,
    no data is needed."""
    asked = call_log.asked(out, recipe.name) | given
    asked = {name: value for name, value in asked.items() if value is not False}  # --no-quick takes a --quick back
    if out.is_dir() and any(out.iterdir()) and not any((out / name).exists() for name in ("study.toml", call_log.NAME)):
        raise BadRequest(f"--out takes a new folder or that of a study; {out} holds something else")
    quick = bool(asked.get("quick", False))
    methods = tuple(split(asked.get("methods", ""))) or recipe.methods
    for method in methods:
        require(method in recipe.methods, "methods", f"some of {', '.join(recipe.methods)} with {recipe.name}", method)
    data = tuple(split(asked.get("data", "")))
    require(
        recipe.stand_in or set(data) <= set(recipe.data),
        "data",
        f"some of {', '.join(recipe.data)} with {recipe.name}",
        ", ".join(data),
    )
    for name in data:
        find_stream(name)
    own = {name: value for name, value in asked.items() if name not in ("seeds", "methods", "data", "quick", "set")}
    hurried = recipe.quickly() if quick else {}
    if data:
        hurried.pop("split", None)  # which is by the classes of the built-in streams
    options = hurried | own | settings(asked.get("set", ""))
    seeds = asked.get("seeds", QUICK_SEEDS if quick else SEEDS)
    scope = Scope(methods, data or (recipe.quick_data if quick else recipe.data), seeds, quick, options)
    check_names(recipe, scope, settings(asked.get("set", "")))
    order = Order(recipe, out, asked, scope)
    if data:
        return order
    return available(order) if run else begun(order)


def check_names(recipe: Recipe, scope: Scope, wanted: dict[str, Any]) -> None:
    """Refuses options that no cell of the recipe has."""
    configs = CellResults(recipe, scope, Path()).configs
    known = {path.rpartition(".")[2] for config in configs for path in flatten(config)}
    for name in wanted.keys() - known if configs else ():
        resolve(name, configs[-1], "--set: ")


def available(order: Order) -> Order:
    """The order without the streams whose data is not on this disk, unless their cells are done anyway."""
    kept, why = [], []
    for name in order.scope.data:
        results = CellResults(order.recipe, replace(order.scope, data=(name,)), order.out)
        try:
            if not results.configs or results.missing:
                find_stream(name).data.where(root_of(order.scope))
            kept.append(name)
        except BadRequest as error:
            why.append(str(error))
    if not kept and why:
        raise BadRequest(why[0])
    return replace(order, scope=replace(order.scope, data=tuple(kept)), left_out=tuple(why))


def begun(order: Order) -> Order:
    """The order without the streams of which no cell is done, unless there is none of any."""
    there = [
        name
        for name in order.scope.data
        if any(collect(replace(order, scope=replace(order.scope, data=(name,)))).results.values())
    ]
    kept = tuple(there) or order.scope.data
    why = tuple(f"nothing of {name} is there" for name in order.scope.data if name not in kept)
    return replace(order, scope=replace(order.scope, data=kept), left_out=why)


def root_of(scope: Scope) -> Path | None:
    return Path(scope.options["root"]) if "root" in scope.options else None


def collect(order: Order) -> CellResults:
    """What there is."""
    return CellResults(order.recipe, order.scope, order.out)


def run_missing(order: Order, engine: Engine, observer: Observer) -> CellResults:
    """Runs the cells that are missing, measures what is no cell, and gives what there is."""
    results = collect(order)
    if results.missing:

        def noted(packs: list[Pack], driver: Driver) -> None:
            note(order, running=True)
            engine(packs, driver)

        with tempfile.TemporaryDirectory() as place:
            study = Path(place) / "study.toml"
            study.write_text(order.scope.toml(order.recipe.study(order.scope)), "utf-8")
            sweep(study, order.out, noted, observer)
        results = collect(order)
    if order.recipe.measure is not None and not results.missing:
        known = len(results.notes)
        order.recipe.measure(results, results.notes)
        if len(results.notes) > known and not results.configs:
            note(order, running=True)
    if call_log.asked(order.out, order.recipe.name) != order.asked:
        note(order)
    return results


def note(order: Order, running: bool = False) -> None:
    """Puts the order into the folder's call_log and, where something runs, when and where it does."""
    here = environment(order.scope.options.get("device", "cpu"), order.scope.options.get("threads", 1))
    run = {"date": time.strftime("%Y-%m-%d"), "machine": machine(here)}
    call_log.note(order.out, order.recipe.name, order.asked, run if running else None)


def outputs(results: CellResults) -> list[Output]:
    """What the recipe shows: p-values corrected and, of a quick look, nothing beside the paper's figures."""
    shown: list[Output] = []
    for output in results.recipe.show(results):
        if isinstance(output, Table):
            output = output.corrected()
            output = output.measured() if results.scope.quick else output
        shown.append(output)
    return shown


# -- Where it comes from ----------------------------------------------------------------------------------------------


def heading(order: Order, results: CellResults) -> Heading:
    """Command, machine and date of the runs, and whatever a reader must know of them."""
    runs = call_log.runs(order.out, order.recipe.name)
    dates = sorted({run["date"] for run in runs} or set(file_dates(results)))
    when = "" if not dates else f" {dates[0]}" if len(dates) == 1 else f" {dates[0]} to {dates[-1]}"
    where = unique([*machines(results), *(run["machine"] for run in runs)])  # seeds added later may have run elsewhere
    facts = [f"Run{when} on {'; '.join(where)}."]
    if order.scope.quick:
        facts.append(
            "**A quick look**: small nets and a few steps on built-in images. It shows that the recipe runs "
            "and what comes of it; its figures say nothing about the paper's, of which none is quoted."
        )
    elif changed := {name: value for name, value in order.scope.options.items() if name not in AS_BEFORE}:
        facts.append(f"Every cell with {', '.join(f'{name} = {value}' for name, value in changed.items())}.")
    if order.recipe.prompts and not order.scope.quick:
        facts.append("The paper's prompt learners stand on a pretrained ViT-B/16.")
    if results.missing:
        total = sum(len(config.seeds) for config in results.configs)
        facts.append(f"**Not complete**: {results.missing} of {total} cells are not done; n is what there is.")
    facts += [f"Left out: {why}." for why in order.left_out]
    return Heading(f"{order.recipe.place}: {order.recipe.about}", [order.command], facts)


def machines(results: CellResults) -> list[str]:
    """The machines that cells ran on, as their environment.json names them."""
    texts = []
    for config in results.configs:
        if results.results[folder_name(config)]:
            with suppress(KeyError):  # of somebody's own making
                texts += [machine(noted) for noted in environments(results.folder(config))]
    return unique(texts)


def machine(here: dict[str, Any]) -> str:
    versions = here["versions"]
    commit = f" at {here['commit'][:7]}" if here.get("commit") else ""
    threads = "" if here["device"] == "cuda" else f", {here['threads']} thread{'s' * (here['threads'] > 1)} a seed"
    return (
        f"{here['device_name'] or here['device']}{threads}, Python {here['python']}, torch {versions['torch']}, "
        f"droptop {versions['droptop']}{commit}"
    )


def file_dates(results: CellResults) -> Iterable[str]:
    """When results were written, by their files."""
    for config in results.configs:
        for seed in results.results[folder_name(config)]:
            written = (seed_folder(results.folder(config), seed) / "result.json").stat().st_mtime
            yield time.strftime("%Y-%m-%d", time.localtime(written))


def unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


# -- Options as people type them --------------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def settings(text: str) -> dict[str, Any]:
    """`--set lr=0.03,split=0,1/2,3`: options of every cell, values as TOML has them, or words, commas included."""
    results: dict[str, Any] = {}
    for part in filter(None, re.split(r"\s*,\s*(?=[\w-]+=)", text.strip(", "))):
        name, equals, value = part.partition("=")
        require(bool(name and equals and value), "set", "options such as lr=0.03,width=20", part)
        try:
            results[name.replace("-", "_")] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            results[name.replace("-", "_")] = value
    return results
