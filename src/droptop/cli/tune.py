"""`droptop tune`: finds options on training images that are held out, by Optuna, and confirms them on fresh seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from droptop.cli import arguments, help, run_flags
from droptop.cli.sweep import CellProgress, EngineOptions
from droptop.errors import typed
from droptop.options import flag_of
from droptop.report import file_progress as bars
from droptop.report.tuning import answer, confirmed_table
from droptop.sweeps.tuning.request import HOLD_OUT, SEED, By, Search, TuneRequest, load_request, tune_request
from droptop.sweeps.tuning.space import said_of
from droptop.sweeps.tuning.trial_run import TrialRun, number_of
from droptop.sweeps.tuning.tune_json import BEST, in_words, read_found
from droptop.sweeps.tuning.tuner import tune as run_tuning
from droptop.system.terminal import Console
from droptop.training.observer import Job

ABOUT = "finds options for a method on training images that are held out, and confirms them on fresh seeds"
BELOW = (
    f"Every option of `droptop run` goes as well; --hold-out is the percentage of training images to measure on, by "
    f"default {HOLD_OUT:g}. Test sets are not looked at."
)


@dataclass(frozen=True, kw_only=True)
class TuneOptions(EngineOptions):
    """Hold the options of `droptop tune` that are no options of a run."""

    out: Path
    """Folder of the tuning, new or one to continue."""
    over: Annotated[str | None, arg(metavar="NAME=VALUES")] = None
    """An option and its values: lr=log:0.003:0.3, gamma=lin:1:10, memory_batch=int:16:64 or momentum=0,0.9. Give it
    once per option; by default the learning rate around the usual one, and momentum."""
    trials: int | None = None
    """Number of trials. Default: 30."""
    by: By = "hold-out"
    """What trials are measured by: held-out images of all tasks, or of the first task, which is then learned alone."""
    confirm: int = Search.confirm
    """Number of trials that are run again on fresh seeds, the best ones; the best mean there is the choice."""
    confirm_seeds: int = Search.confirm_seeds
    """Number of fresh seeds."""
    tune_seed: int = SEED
    """Seed of the trials; those after it confirm."""
    at_once: int | None = None
    """Number of trials at once; by default as many as this machine or the cluster has room for, 5 on a GPU. With 1, the
    same command gives the same trials."""
    engine: Literal["local", "ray"] = "local"  # a trial needs the results of those before it, which Slurm's arrays lack
    """Where trials run: on this machine, or on a Ray cluster."""

    def search(self, hold_out: float) -> Search:
        """Return how options are searched for."""
        trials = Search.trials if self.trials is None else self.trials
        return Search(trials, self.by, hold_out or HOLD_OUT, self.confirm, self.confirm_seeds, self.tune_seed)


TRUST = "--trust"  # as of a run: files that only a TOML file names may be executed
EXECUTED = ("out", "at_once", "engine", "address", "cpus", "gpus", "minutes")  # no part of what is asked for


def tune(args: list[str], console: Console) -> int:
    """Run what is missing of a tuning, and show what it found; return the exit code."""
    if help.asked_for(args):
        listed = [each for each in help.options_of(TuneOptions) if each.path != "minutes"]
        where = [each for each in listed if each.path in EXECUTED[1:]]
        help.show("droptop tune", ABOUT, {"": [each for each in listed if each not in where], "where": where}, BELOW)
        return 0
    request, options = asked(args)
    try:
        with bars.decoding(), TrialProgress(console) as observer:
            found = run_tuning(request, options.out, options.start(), observer, options.at_once)
    except KeyboardInterrupt as error:
        error.add_note(f"{typed('tune', '--out', options.out)} continues")
        raise
    console.print(confirmed_table(found))
    for line in answer(found):
        console.print(line, soft_wrap=not console.is_terminal)
    page = write_page(options.out)
    again = typed("run", "--config", options.out / BEST, "--out", "FOLDER")
    console.print(f"{again} runs the choice; {page}", soft_wrap=True)
    return 0


def asked(args: Sequence[str]) -> tuple[TuneRequest, TuneOptions]:
    """Return what a command line asks to tune, and how to go about it.

    Where it names a folder and no option of a run, that goes on as it began, with perhaps more trials.
    """
    said = run_flags.values_of(args, "--over")
    own, rest = divided(run_flags.without(args, "--over"))
    options = arguments.read(TuneOptions, own, "droptop tune", ABOUT)
    given = {token.partition("=")[0] for token in own if token.startswith("--")}
    if not (said or set(rest) - {TRUST} or given - {flag_of(name) for name in (*EXECUTED, "trials")}):
        begun = load_request(options.out, TRUST in rest)
        trials = begun.search.trials if options.trials is None else options.trials
        return replace(begun, search=replace(begun.search, trials=trials)), options
    (config,) = run_flags.parse("run", [*rest, "--out", str(options.out)]).plan.arms.values()
    return tune_request(config, said_of(said), options.search(config.stream.hold_out)), options


def divided(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the tokens of a command line that are tune's own, and those that are a run's."""
    flags = {flag_of(field.name) for field in fields(TuneOptions)}
    own, rest, tokens = list[str](), list[str](), list(args)
    while tokens:
        token = tokens.pop(0)
        if token.partition("=")[0] not in flags:
            rest.append(token)
            continue
        own.append(token)
        if "=" not in token and tokens:
            own.append(tokens.pop(0))
    return own, rest


def write_page(out: Path) -> str:
    """Write the page of a tuning where what it takes is installed; return where it is, or how to get it."""
    from droptop.cli.report import command

    try:
        from droptop.report.page.render import write_report
    except ModuleNotFoundError as error:
        return f"the page needs {error.name}: pip install 'droptop[report]', then {typed('report', out)}"
    page = write_report(out, out / "report.html", command(out))
    return f"page in {page}"


class TrialProgress(CellProgress):
    """Show what each trial reached."""

    def done(self, job: Job) -> None:
        self.finished += 1
        if job.kind is not TrialRun:
            self.show(job, "done")
            return
        out, number = job.run.parent.parent, number_of(job.run)
        trial = next(each for each in read_found(out)["trials"] if each["number"] == number)
        reached = "ended early" if trial["value"] is None else f"{trial['value']:.1f}%"
        self.show(job, f"{reached} with {in_words(trial['settings'])}")
