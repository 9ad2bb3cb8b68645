"""Which study a command line of `droptop stress` asks for, as TOML: a new one, or more of one that is there."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from droptop.cli import run_flags
from droptop.data.image_cache import sharing_reads
from droptop.errors import BadRequest, meant, typed
from droptop.options import NO_DEBIAS, ending_in, flag_of
from droptop.results.stress import CUE
from droptop.runs.build import build_stream
from droptop.runs.config import Config, override
from droptop.runs.flags import unusual
from droptop.runs.on_cpu import lighter
from droptop.runs.plan import Plan
from droptop.runs.run_options import absolute
from droptop.streams.cues import CUES
from droptop.sweeps.grid import Grid, absolute_text, cells_of, names_in, read_study, tables_of
from droptop.sweeps.study_folder import requested_cells
from droptop.system.short_names import short_name
from droptop.system.terminal import Console
from droptop.system.toml_files import toml_line

USUAL = ("--seeds", "5", "--limit", "1000", "--maps", "0")  # before what the user sets, which wins
REFUSED = ("--shortcut", "--against", "--equal-cost", "--config")
VARIED = ("debias", CUE)  # what a study of cues has lists of


def study_text(args: list[str], console: Console, usual: Sequence[str] = USUAL) -> str:
    """Return the study that a command line asks for, as TOML; refuse what it cannot be.

    `usual` are the options that stand before what the user sets.
    """
    for token in args:
        if token.partition("=")[0] in REFUSED:
            raise BadRequest(f"{token.partition('=')[0]} is no option of stress, which takes --cues and those of run")
    if run_flags.last(args, "--data") is None:
        raise BadRequest(f"--data names the stream to paint on, as in {typed('stress', '--data', 'fashion')}")
    cues, rest = cues_of(args)
    given = [*usual, "--shortcut", next(iter(cues or CUES)), *rest]  # the others take its place below
    with naming_the_flag():
        if run_flags.last(args, "--debias") in (None, NO_DEBIAS):
            plan = run_flags.parse("run", [*given, "--debias", NO_DEBIAS]).plan
        else:
            plan = run_flags.parse("compare", given).plan
        with sharing_reads():
            taken = cues_taken(next(iter(plan.arms.values())), cues, console)
    if plan.note:
        console.print(f"note: {plan.note}", soft_wrap=True)
    return as_toml(plan, taken)


def cues_of(args: list[str]) -> tuple[list[str], list[str]]:
    """Return the cues that a command line names, none if it does not, and the rest of it; refuse an unknown cue."""
    named = run_flags.last(args, "--cues")
    if named is None:
        return [], args
    cues = [cue.strip() for cue in named.split(",")]
    for cue in cues:
        if cue not in CUES:
            raise BadRequest(f"--cues takes {', '.join(CUES)}, not {cue or 'an empty name'}{meant(cue, CUES)}")
    return list(dict.fromkeys(cues)), run_flags.without(args, "--cues")


@contextmanager
def naming_the_flag() -> Iterator[None]:
    """Let refusals of `--shortcut` name the flag of this command, which says it for several cues."""
    try:
        yield
    except BadRequest as error:
        raise BadRequest(flag_named(error)) from None


def flag_named(error: BadRequest) -> str:
    """Return a refusal as it reads with `--cues` in place of `--shortcut`."""
    return re.sub(r"--shortcut(?![\w-])", "--cues", str(error))


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
        console.print(f"note: without {cue}: {flag_named(reason)}", soft_wrap=True)
    return taken


def as_toml(plan: Plan, cues: list[str]) -> str:
    """Return a study over cues and the arms of a plan."""
    light = {path: default.here for arm in plan.arms.values() for path, default in lighter(arm, ()).items()}
    options = light | {path: value for arm in plan.arms.values() for path, value in unusual(arm).items()}
    names = {"data": plan.options.data, "method": plan.options.method}
    varied = {"debias": [arm.options.debias for arm in plan.arms.values()], CUE: cues}
    asked = {"seeds": plan.options.seeds} | names | options | varied
    return "".join(toml_line(path, str(value) if isinstance(value, Path) else value) for path, value in asked.items())


# -- More of a study that is there ------------------------------------------------------------------------------------


def check_cues(out: Path) -> None:
    """Refuse a study that varies no cue."""
    if not any(ending_in(name, [CUE]) for name in names_in(out / "study.toml")):
        raise BadRequest(f"{out} is a study without cues, which {typed('sweep', '--out', out)} continues")


def grown(out: Path, args: list[str], console: Console) -> str:
    """Return the study of a folder with the seeds, cues and arms that a command line adds, as TOML.

    What it does not set is as it was. Refuse whatever would lose a cell that was asked for before, and a study of
    another kind.
    """
    before, grids, also = tables_of(out / "study.toml")
    if grids or also or not all(isinstance(before.get(name), list) for name in VARIED):
        raise BadRequest(f"{out} is a study that stress did not make, and cannot add to: choose another --out")
    for name in ("data", "method"):
        asked = run_flags.last(args, f"--{name}")
        if asked is not None and absolute(name, asked) != before[name]:
            raise another(out, before, before | {name: asked})
    cues, rest = cues_of(args)
    arms = [absolute("debias", arm) for arm in (run_flags.last(rest, "--debias") or NO_DEBIAS).split(",")]
    varied = [
        *("--cues", ",".join(dict.fromkeys([*before[CUE], *cues]))),
        *("--debias", ",".join(dict.fromkeys([*before["debias"], *arms]))),
    ]
    known = [token for name, value in before.items() if name not in VARIED for token in (flag_of(name), str(value))]
    text = study_text([*known, *run_flags.without(rest, "--debias"), "--out", str(out), *varied], console, ())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "study.toml"
        file.write_text(text, "utf-8")
        file.write_text(absolute_text(file), "utf-8")
        after, *_ = tables_of(file)
        cells = cells_of(read_study(file))
    if set(requested_cells(out)) - set(cells):
        raise another(out, before, after)
    return text


def another(out: Path, before: Grid, after: Grid) -> BadRequest:
    """Return the refusal of a study in the folder of another one, with the options in which they differ."""
    names = [name for name in before | after if name not in VARIED and before.get(name) != after.get(name)]

    def told(study: Grid) -> str:
        text = f"{short_name(study['data'])} by {short_name(study['method'])}"
        others = [said(name, study.get(name)) for name in names if name not in ("data", "method")]
        return f"{text} with {', '.join(others)}" if others else text

    return BadRequest(
        f"{out} is a study of {told(before)}, not of {told(after)}: choose another --out; "
        "only more seeds, cues and arms can be added"
    )


def said(name: str, value: Any) -> str:
    """Return an option and its value, or that it has its usual one."""
    word = flag_of(name).removeprefix("--")
    return f"the usual {word}" if value is None else f"{word} {value}"
