"""`droptop stress`: what each painted cue costs a learner, and what debiasing gives back, as a study that resumes."""

import tempfile
from pathlib import Path

from droptop.cli import help, run_flags
from droptop.cli.stress_study import check_cues, grown, study_text
from droptop.cli.sweep import exit_code, run_cells
from droptop.errors import BadRequest, typed
from droptop.options import BIASED, RANDOM, REMOVED
from droptop.report import file_progress as bars
from droptop.report.stress import answer, stress_tables
from droptop.results.stress import stressed
from droptop.streams.cues import CUES
from droptop.sweeps.local import local
from droptop.sweeps.study_folder import StudyFolder, recorded_cells, requested_cells
from droptop.sweeps.trust import trusted_study
from droptop.system.short_names import short_name
from droptop.system.terminal import Console, note
from droptop.system.user_files import hidden

ABOUT = "paints cues on a stream, and says what each costs a learner and what debiasing gives back"
OPTIONS = (
    ("--out FOLDER", "Folder of the study. One that is there goes on, and takes more seeds, cues and arms. Required."),
    ("--data NAME", "Stream to paint on. Required for a new folder."),
    ("--method NAME", "Method to learn by. Default: er."),
    ("--debias NAMES", "Debiasing to compare with none, separated by commas; by default nothing."),
    ("--cues NAMES", f"Cues, separated by commas; by default all that the images take, of {', '.join(CUES)}."),
    ("--seeds N", "Number of seeds. Default: 5."),
    ("--limit N", "Training samples per task, at most; None for all. Default: 1000."),
    ("--trust", "Execute Python files that only the folder names, and its copies of others. Read them first."),
)
TRUST = "--trust"
BY_CUE = "data,method,debias,shortcut"  # what `results` groups by, so that no mean is of several cues


def stress(args: list[str], console: Console) -> int:
    """Run what is missing of a study of cues, and show what they cost; return the exit code."""
    if help.asked_for(args):
        listed = [help.Option(usage, usage, about) for usage, about in OPTIONS]
        help.show("droptop stress", ABOUT, {"": listed}, "Every option of `droptop run` goes as well.")
        return 0
    out, trust, given = Path(run_flags.last(args, "--out") or ""), TRUST in args, args
    args = [word for word in args if word != TRUST]
    added = run_flags.without(args, "--out")
    begun = (out / "study.toml").is_file()
    if begun:
        check_cues(out)
    if begun and not added and (done := cells_if_done(out)):
        console.print(f"{done} of {done} cells are done")
        with hidden():
            show(out, console)
        return 0
    with trusted_study(out / "study.toml", out, trust, typed("stress", *given, TRUST)):
        return run_study(out, args, begun, console)


def run_study(out: Path, args: list[str], begun: bool, console: Console) -> int:
    """Run what is missing of a study, new or begun and grown by a command line; show it, and return the exit code."""
    added = run_flags.without(args, "--out")
    with tempfile.TemporaryDirectory() as folder, bars.decoding():
        file = None
        if added or not begun:
            file = Path(folder) / "stress.toml"
            file.write_text(grown(out, added, console) if begun else study_text(args, console), "utf-8")
        counts = run_cells(file, out, local, console, typed("stress", "--out", out))
    show(out, console)
    return exit_code(counts, out)


def cells_if_done(out: Path) -> int:
    """Return how many cells a study asks for if all of them are done, else 0; no image or file of code is looked at.

    0 where cells.json does not say what it asks for.
    """
    cells = recorded_cells(out) or []
    return len(cells) if StudyFolder(out).counts(cells)["done"] == len(cells) else 0


def show(out: Path, console: Console) -> None:
    """Print the table and the answer of a study of cues, and draw its heat map."""
    cells = set(requested_cells(out))
    study = StudyFolder(out, note)
    for line in study.lines():
        note(line)
    values = [value for value in study.values() if (value["run"], value["seed"]) in cells]
    rows = stressed(values, (guess for guess in study.guesses() if (guess["run"], guess["seed"]) in cells))
    if not rows:
        raise BadRequest(f"{out} has no cell with a cue that is done")
    import matplotlib.pyplot as plt

    from droptop.figures.heat_map import heat_map
    from droptop.figures.style import STYLE, save

    for table in stress_tables(rows, console.width):
        console.print(table)
    console.print(" ".join(answer(rows)))
    if further := sorted({value["test"] for value in values} - {BIASED, REMOVED, RANDOM}):
        shown = typed("results", out, "--by", BY_CUE)
        told = f"also measured, without painted cues: {', '.join(further)}; {shown} shows them"
        console.print(told, soft_wrap=True)
    title = f"{short_name(rows[0].method)} on {short_name(rows[0].data)}"
    with plt.rc_context(STYLE):
        save(heat_map(rows, title), out, "stress")
    console.print(
        f"heat map in {out / 'figures/stress.png'}; {typed('report', out)} makes one page of it all", soft_wrap=True
    )
