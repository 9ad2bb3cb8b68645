"""`droptop stress`: what each painted cue costs a learner, and what debiasing gives back, as a study that resumes."""

import tempfile
from pathlib import Path

from rich.console import Console

from droptop.cli import help, run_flags
from droptop.cli.sweep import exit_code, run_cells
from droptop.data.image_cache import sharing_reads
from droptop.errors import BadRequest, meant, typed
from droptop.options import BIASED, NO_DEBIAS, RANDOM, REMOVED
from droptop.report import file_progress as bars
from droptop.report.stress import answer, stress_tables
from droptop.results.stress import CUE, stressed
from droptop.runs.build import build_stream
from droptop.runs.config import Config, override
from droptop.runs.flags import unusual
from droptop.runs.on_cpu import lighter
from droptop.runs.plan import Plan
from droptop.streams.cues import CUES
from droptop.sweeps.local import local
from droptop.sweeps.study_folder import StudyFolder, requested_cells
from droptop.system.short_names import short_name
from droptop.system.toml_files import toml_line

USUAL = ("--seeds", "5", "--limit", "1000", "--maps", "0")  # before what the user sets, which wins
REFUSED = ("--shortcut", "--against", "--equal-cost", "--config")
ABOUT = "paints cues on a stream, and says what each costs a learner and what debiasing gives back"
OPTIONS = (
    ("--out FOLDER", "Folder of the study; where it is there already, what is missing is run. Required."),
    ("--data NAME", "Stream to paint on. Required for a new folder."),
    ("--method NAME", "Method to learn by. Default: er."),
    ("--debias NAMES", "Debiasing to compare with none, separated by commas; by default nothing."),
    ("--cues NAMES", f"Cues, separated by commas; by default all that the images take, of {', '.join(CUES)}."),
    ("--seeds N", "Number of seeds. Default: 5."),
    ("--limit N", "Training samples per task, at most; None for all. Default: 1000."),
)


def stress(args: list[str], console: Console) -> int:
    """Run what is missing of a study of cues, and show what they cost; return the exit code."""
    if help.asked_for(args):
        listed = [help.Option(usage, usage, about) for usage, about in OPTIONS]
        help.show("droptop stress", ABOUT, {"": listed}, "Every option of `droptop run` goes as well.")
        return 0
    out = Path(run_flags.last(args, "--out") or "")
    if set(args) <= {"--out", str(out), f"--out={out}"} and (out / "study.toml").is_file():
        study = None  # to be continued
    else:
        study = study_text(args, console)
    with tempfile.TemporaryDirectory() as folder, bars.decoding():
        file = None if study is None else Path(folder) / "stress.toml"
        if file is not None and study is not None:
            file.write_text(study, "utf-8")
        counts = run_cells(file, out, local, console, typed("stress", "--out", out))
    show(out, console)
    return exit_code(counts, out)


def study_text(args: list[str], console: Console) -> str:
    """Return the study that a command line asks for, as TOML; refuse what it cannot be."""
    for token in args:
        if token.partition("=")[0] in REFUSED:
            raise BadRequest(f"{token.partition('=')[0]} is no option of stress, which takes --cues and those of run")
    if run_flags.last(args, "--data") is None:
        raise BadRequest(f"--data names the stream to paint on, as in {typed('stress', '--data', 'fashion')}")
    cues, rest = cues_of(args)
    given = [*USUAL, "--shortcut", next(iter(cues or CUES)), *rest]  # the others take its place below
    if run_flags.last(args, "--debias") in (None, NO_DEBIAS):
        plan = run_flags.parse("run", [*given, "--debias", NO_DEBIAS]).plan
    else:
        plan = run_flags.parse("compare", given).plan
    with sharing_reads():
        taken = cues_taken(next(iter(plan.arms.values())), cues, console)
    if plan.note:
        console.print(f"note: {plan.note}", highlight=False, markup=False, soft_wrap=True)
    return as_toml(plan, taken)


def cues_of(args: list[str]) -> tuple[list[str], list[str]]:
    """Return the cues that a command line names, none if it does not, and the rest of it; refuse an unknown cue."""
    named = run_flags.last(args, "--cues")
    if named is None:
        return [], args
    cues = [cue.strip() for cue in named.split(",")]
    for cue in cues:
        if cue not in CUES:
            raise BadRequest(f"--cues takes {', '.join(CUES)}, not {cue}{meant(cue, CUES)}")
    at = [place for place, token in enumerate(args) if token.partition("=")[0] == "--cues"]
    gone = {place + more for place in at for more in range(1 + ("=" not in args[place]))}
    return list(dict.fromkeys(cues)), [token for place, token in enumerate(args) if place not in gone]


def cues_taken(config: Config, named: list[str], console: Console) -> list[str]:
    """Return the cues that the images take; tell of others, or refuse them where they are named."""
    taken, refused = [], dict[str, BadRequest]()
    for cue in named or CUES:
        try:
            build_stream(override(config, {CUE: cue}), config.options.first_seed)
            taken.append(cue)
        except BadRequest as error:
            refused[cue] = error
    if refused and (named or not taken):
        raise next(iter(refused.values()))
    for cue, reason in refused.items():
        console.print(f"note: without {cue}: {reason}", highlight=False, markup=False, soft_wrap=True)
    return taken


def as_toml(plan: Plan, cues: list[str]) -> str:
    """Return a study over cues and the arms of a plan."""
    light = {path: default.here for arm in plan.arms.values() for path, default in lighter(arm, ()).items()}
    options = light | {path: value for arm in plan.arms.values() for path, value in unusual(arm).items()}
    names = {"data": plan.options.data, "method": plan.options.method}
    varied = {"debias": [arm.options.debias for arm in plan.arms.values()], CUE: cues}
    asked = {"seeds": plan.options.seeds} | names | options | varied
    return "".join(toml_line(path, str(value) if isinstance(value, Path) else value) for path, value in asked.items())


def show(out: Path, console: Console) -> None:
    """Print the table and the answer of a study of cues, and draw its heat map."""
    cells = set(requested_cells(out))
    values = [value for value in StudyFolder(out).values() if (value["run"], value["seed"]) in cells]
    rows = stressed(values)
    if not rows:
        raise BadRequest(f"{out} has no cell with a cue that is done")
    import matplotlib.pyplot as plt

    from droptop.figures.heat_map import heat_map
    from droptop.figures.style import STYLE, save

    for table in stress_tables(rows, console.width):
        console.print(table)
    console.print(" ".join(answer(rows)), highlight=False, markup=False)
    if further := sorted({value["test"] for value in values} - {BIASED, REMOVED, RANDOM}):
        told = f"also measured, without painted cues: {', '.join(further)}; {typed('results', out)} shows them"
        console.print(told, highlight=False, markup=False, soft_wrap=True)
    title = f"{short_name(rows[0].method)} on {short_name(rows[0].data)}"
    with plt.rc_context(STYLE):
        save(heat_map(rows, title), out, "stress")
    console.print(
        f"heat map in {out / 'figures/stress.png'}; {typed('report', out)} makes one page of it all",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
