"""The run folder: what a run leaves on disk, and how everybody reads it back. Imports neither torch nor a learner.

From a folder to numbers: `read_request(out)` gives a `Request`, whose `arms` are the run folders (one, or all of a
comparison). `RunFolder.summary()` has every figure of every test set, a value per seed; `read_result(run, seed)` has
the figures of one seed, `read_metrics(run, seed)` its steps.

    request = read_request(Path("runs/first"))
    for arm in request.arms:
        print(arm.name, arm.summary()["tests"]["removed"]["A_avg"])

While seeds are still running, `whole_result` and `whole_lines` give what is there. The files:

    OUT/config.toml          runs again: droptop run --config OUT/config.toml
    OUT/environment.json     versions, threads, device, commit; what of it was another when the run went on later;
                             the flags that make the run again; what files/ has
    OUT/files/               copies of the user's own Python files (kept_files.py)
    OUT/summary.json         the figures of every seed, once all are done
    OUT/figures/             PNG files
    OUT/seed-K/metrics.jsonl     a line per step; no clock time, so that equal runs have equal files
    OUT/seed-K/checkpoints/
    OUT/seed-K/{maps,confusion}/ what pictures are drawn from (records.py)
    OUT/seed-K/spec.json         the Spec of its images, so that its learner can be loaded where the data is not
    OUT/seed-K/manifest.json     the SHA-256 of all these, and what they are of (manifest.py)
    OUT/seed-K/result.json       there once the seed is done

A comparison's folder has config.toml, compare.json and cost.json, and in it a run folder per arm; where its arms were
tuned, tuned.json and the folder tuning. What is shown comes through `SeedFiles` (seed_files.py), which leaves out what
does not fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from droptop.errors import BadRequest, typed
from droptop.options import MOST_SEEDS, NO_DEBIAS, younger_of
from droptop.runs.manifest import Elsewhere, Unfit, configuration_of
from droptop.runs.mending import way_on
from droptop.runs.verified import Lines, lines_of, verified_result
from droptop.system.json_files import is_number
from droptop.system.plain_files import bytes_of, open_to_read
from droptop.system.short_names import short_name
from droptop.system.toml_files import leaves, read_tables

CONFIG, TUNE = "config.toml", "tune.toml"  # what a run or a comparison was asked for, and what a tuning was
TUNING, TUNED = "tuning", "tuned.json"  # of a comparison whose arms were tuned: their folders, and what they were given
Command = Literal["run", "compare"]


@dataclass(frozen=True)
class RunFolder:
    """Read one arm by the options that its config.toml notes."""

    path: Path
    options: Mapping[str, Any]  # by path; only those that are set
    arm: str = ""  # its name in a comparison

    @property
    def name(self) -> str:
        """Return what people call it: the name of the arm or, of a run, of its debiasing."""
        return self.arm or short_name(self.debias)

    @property
    def data(self) -> str:
        """Return the name of the stream."""
        return str(self.options["data"])

    @property
    def method(self) -> str:
        """Return the method as people are told of it: of a file, its name without its folder."""
        return Path(str(self.options["method"])).name

    @property
    def debias(self) -> str:
        """Return the name of the debiasing, or "none"."""
        return str(self.options["debias"])

    @property
    def seeds(self) -> range:
        """Return the seeds that the run has, or will have."""
        first = int(self.options.get("first_seed", 0))
        return range(first, first + int(self.options.get("seeds", 1)))

    @cached_property
    def configuration(self) -> str:
        """Return the hash of its options by which its seeds' manifests say that they belong here."""
        return configuration_of(self.options)

    @property
    def adapts(self) -> bool:
        """Return whether its intensities can change."""
        return self.debias != NO_DEBIAS and self.options.get("droptop.drop") == "adaptive"

    @property
    def per_class(self) -> bool:
        """Return whether every class has an intensity of its own."""
        return self.options.get("droptop.intensity.per") == "class"

    @property
    def gamma(self) -> float:
        """Return the percent of the first map that is dropped."""
        return float(self.options["droptop.gamma"])

    @property
    def start(self) -> float:
        """Return the intensity that its classes begin with, in percent."""
        return float(min(self.options["droptop.kappa_0"], self.options["droptop.gamma"]))

    def summary(self, seeds: Sequence[int] | None = None) -> dict[str, Any]:
        """Return every figure of every test set, a value per seed; by default of all seeds."""
        chosen = self.seeds if seeds is None else seeds
        return self.summary_of({seed: read_result(self.path, seed) for seed in chosen})

    def summary_of(self, by_seed: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
        """Return the summary of results, which are given by seed."""
        results = list(by_seed.values())
        tests = {
            test: {figure: [result["tests"][test][figure] for result in results] for figure in figures}
            for test, figures in results[0]["tests"].items()
        }
        summary: dict[str, Any] = {"data": self.data, "method": self.method, "debias": self.debias}
        summary |= {"seeds": list(by_seed), "tests": tests}
        if "limit" in self.options:  # a quick look
            summary["limit"] = self.options["limit"]
        if all("guesses" in result for result in results):  # older results have none
            summary["guesses"] = {
                test: {name: [result["guesses"][test][name] for result in results] for name in ("chance", "constant")}
                for test in tests
            }
        if "cue" in results[0]:
            summary["cue"] = results[0]["cue"]
        if all("dropped" in result for result in results):
            names = ("share", "chance")
            summary["dropped"] = {name: [result["dropped"][name] for result in results] for name in names}
        if self.adapts:
            summary["kappa"] = [result.get("kappa", {}) for result in results]
        return summary


@dataclass(frozen=True)
class Request:
    """Say what a folder was asked to hold: a run, or the arms of a comparison, the reference first."""

    command: Command
    arms: list[RunFolder]
    out: Path


def read_request(out: Path, file: str = CONFIG) -> Request:
    """Return what a folder was asked to hold, as a file in it says; raise BadRequest if it is no run folder."""
    if not (out / file).is_file():
        if (out / "study.toml").is_file():
            raise BadRequest(f"{out} is a study: {typed('sweep', '--out', out)} continues it")
        if (out / TUNE).is_file():
            raise BadRequest(f"{out} is a tuning: {typed('tune', '--out', out)} continues it")
        if (out / TUNING).is_dir():
            raise BadRequest(f"{out} is a comparison whose arms are being tuned: {typed('resume', out)} continues it")
        why = f"it has no {file}" if out.is_dir() else "it is a file" if out.exists() else "it is not there"
        raise BadRequest(f"{out} is not a run folder: {why}")
    try:
        return _request(out, file)
    except BadRequest as error:
        if file != CONFIG:
            raise
        raise BadRequest(f"{error}; {way_on(out / file)}") from None


def _request(out: Path, file: str) -> Request:
    tables = read_tables(out / file)
    command, against, own = tables.pop("command", None), tables.pop("against", None), tables.pop("arms", {})
    if command not in ("run", "compare"):
        raise BadRequest(f"{out / file} says neither run nor compare")
    tables.pop("tune", None)
    shared = leaves(tables)
    if command == "run":
        arms = [RunFolder(out, shared)]
    elif own:
        if not isinstance(own, dict) or not all(isinstance(table, dict) for table in own.values()):
            raise BadRequest(f"{out / file} takes a table per arm, headed [arms.NAME]")
        if wrong := [name for name in own if "/" in name or name.startswith(".") or not name.isprintable()]:
            raise BadRequest(f"{out / file} takes names of folders for arms, not {wrong[0]!a}")
        arms = [RunFolder(out / name, shared | leaves(table), name) for name, table in own.items()]
        arms.sort(key=lambda arm: against is not None and arm.name != against)
    else:  # before 0.3: the debiased arm's options, of which the plain arm has all but DropTop's
        plain = {path: value for path, value in shared.items() if not path.startswith("droptop.")}
        pair = {NO_DEBIAS: plain | {"debias": NO_DEBIAS}, str(shared.get("debias")): shared}
        arms = [RunFolder(out / name, options, name) for name, options in pair.items()]
    if command == "compare" and len(arms) < 2:
        raise BadRequest(f"{out / 'config.toml'} has one arm, and nothing to compare it with")
    for arm in arms:
        check_options(arm, out)
    return Request(command, [replace(arm, options=with_younger(arm)) for arm in arms], out)


def check_options(arm: RunFolder, out: Path) -> None:
    """Raise BadRequest if an option that readers need is missing, or is not of its type."""
    options, file = arm.options, out / "config.toml"
    for name in ("data", "method", "debias"):
        if not isinstance(options.get(name), str):
            raise BadRequest(f"{file} does not say which {name} it is of")
    if not isinstance(options.get("device", ""), str):
        raise BadRequest(f"{file} takes a text for device, not {options['device']!a}")
    for path, value in options.items():
        if not isinstance(value, str | bool) and not is_number(value):
            raise BadRequest(f"{file} takes a number, a text or a truth value for {path}")
    for path, low in (("seeds", 1), ("first_seed", 0), ("limit", 1)):
        if type(value := options.get(path, low)) is not int or value < low:
            raise BadRequest(f"{file} takes a whole number from {low} for {path}, not {value!a}")
    if options.get("seeds", 1) > MOST_SEEDS:
        raise BadRequest(f"{file} takes at most {MOST_SEEDS:,} seeds, not {options['seeds']}")
    needed = ("droptop.gamma", "droptop.kappa_0") if "droptop.drop" in options else ()
    if not all(is_number(options.get(path)) for path in needed):
        raise BadRequest(f"{file} takes numbers for droptop.gamma and droptop.kappa_0")


def with_younger(arm: RunFolder) -> dict[str, Any]:
    """Return an arm's options with those that are younger than its folder."""
    younger = younger_of(arm.options)
    return {path: value for path, value in younger.items() if value is not None} | dict(arm.options)


def seed_folder(run: Path, seed: int) -> Path:
    """Return the folder of a seed."""
    return run / f"seed-{seed}"


# -- One seed ---------------------------------------------------------------------------------------------------------


def read_metrics(run: Path, seed: int, tasks: int = 0) -> Lines:
    """Return the lines of metrics.jsonl; raise BadRequest if it is missing, damaged or lacks the end of a task."""
    path = seed_folder(run, seed) / "metrics.jsonl"
    try:
        lines, why = lines_of(bytes_of(path))
    except FileNotFoundError:
        raise BadRequest(f"{path} is not there") from None
    if why:
        raise BadRequest(f"{path} is damaged in line {len(lines) + 1}: {why}")
    if (ended := sum("task_end" in line for line in lines)) < tasks:
        raise BadRequest(f"{path} is damaged: it has the ends of {ended} tasks, not of {tasks}")
    return lines


def whole_lines(run: Path, seed: int) -> Lines:
    """Return the whole lines of a seed's metrics.jsonl, which may be missing or half written while the seed runs."""
    path = seed_folder(run, seed) / "metrics.jsonl"
    return lines_of(bytes_of(path))[0] if path.exists() else []


def fewest_steps(run: Path, seed: int) -> int | None:
    """Return the steps of a seed's shortest task, of those that have ended; None where none has."""
    ends = [0, *(line["step"] for line in whole_lines(run, seed) if "task_end" in line)]
    return min((after - before for before, after in pairwise(ends)), default=None)


def step_count(run: Path, seed: int) -> int:
    """Return how many steps a seed's metrics have; 0 where there are none."""
    try:
        with open_to_read(seed_folder(run, seed) / "metrics.jsonl") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def is_done(run: Path, seed: int, configuration: str | None = None) -> bool:
    """Return whether a seed's result is there, whole; remove a damaged one, so that it will be made anew.

    Raise Elsewhere, and remove nothing, where it is of another seed, or of another `configuration` than the given one.
    """
    path = seed_folder(run, seed) / "result.json"
    if not path.exists():  # nothing to remove, then: somebody may be about to write it
        return False
    try:
        verified_result(seed_folder(run, seed), seed, configuration)
    except Elsewhere as error:
        raise Elsewhere(f"{error}; put it back, or remove it to make the seed anew") from None
    except Unfit:
        path.unlink(missing_ok=True)
        return False
    return True


def whole_result(run: Path, seed: int) -> dict[str, Any] | None:
    """Return a seed's result, or None where it is missing or not what was written."""
    try:
        return verified_result(seed_folder(run, seed), seed)
    except Unfit:
        return None


def read_result(run: Path, seed: int) -> dict[str, Any]:
    """Return a seed's result: its classes, its tasks and, by test set, its figures; raise Unfit without one."""
    if (result := verified_result(seed_folder(run, seed), seed)) is None:
        raise Unfit(f"{seed_folder(run, seed) / 'result.json'} is not there")
    return result
