"""A study is a grid, written in TOML: an option with a list of values varies, one with a single value is fixed.

    seeds = 5                                  # per configuration
    data = ["fashion-sticker", "fashion"]
    method = ["er", "derpp"]
    debias = ["none", "droptop"]
    lr = [0.03, 0.1]

    [[also]]                                   # more cells: what stands here replaces what stands above
    method = "er"
    debias = "droptop"
    gamma = [2.5, 10.0]

Where several grids have little in common, each stands in a table headed [[grid]], and the top holds only the options
that all of them share.

An option that a combination does not have (gamma without debiasing, candidates with methods other than MIR) is left
out of it, and combinations that come to the same are one. A cell is a configuration and a seed.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest, typed
from droptop.runs.config import Config, defaults, device_of, had, override, resolve
from droptop.runs.run_options import PLACES, absolute
from droptop.sweeps.study_folder import Cell
from droptop.system.toml_files import leaves, read_tables, toml_line, without_seal

NAMES = {"data": "fashion-sticker", "method": "er", "debias": "droptop"}
FIXED = ("seeds", "first_seed", "device", "threads")  # the same for a whole study
Grid = dict[str, Any]  # values by option, a list of them where the option varies
MEANINGS = {"grid": "grids of their own stand", "also": "what is to be added stands"}


def read_study(path: Path) -> list[Config]:
    """Return the configurations that a study asks for, each with its seeds; refuse an option that none of them has."""
    top, grids, also = tables_of(path)
    if misplaced := [name for name in FIXED for table in (*grids, *also) if name in table]:
        raise BadRequest(f"{path}: {misplaced[0]} is one for the whole study and stands at its top")
    configs, unused = list[Config](), set(top)
    try:
        for table in (*(grids or [{}]), *also):
            combinations, unknown = expanded(top | table)
            configs += combinations
            unused &= unknown
            for name in unknown & table.keys():
                resolve(name, combinations[0])  # refuses it, and names the option that may have been meant
        for name in unused:
            resolve(name, configs[0])
    except BadRequest as error:
        error.args = (f"{path}: {error}",)
        raise
    return list({config.fingerprint(): config for config in configs}.values())


def names_in(path: Path) -> set[str]:
    """Return the names of all options that a study sets somewhere."""
    top, grids, also = tables_of(path)
    return {name for table in (top, *grids, *also) for name in table}


def tables_of(path: Path) -> tuple[Grid, list[Grid], list[Grid]]:
    """Return the options at the top of a study, its [[grid]] tables and its [[also]] tables."""
    tables = read_tables(path)
    if (command := tables.get("command")) in ("run", "compare"):
        raise BadRequest(
            f"{path} is no study but what one {typed(command)} was asked for: "
            f"{typed('resume', path.parent)} continues that, "
            f"{typed(command, '--config', path, '--out', 'FOLDER')} runs it again"
        )
    grids, also = (tables.pop(name, []) for name in ("grid", "also"))
    for name, part in (("grid", grids), ("also", also)):
        if not isinstance(part, list) or not all(isinstance(table, dict) for table in part):
            raise BadRequest(f"{path}: {MEANINGS[name]} in tables headed [[{name}]]")
    return leaves(tables), [leaves(table) for table in grids], [leaves(table) for table in also]


def absolute_text(path: Path) -> str:
    """Return a study's text with absolute paths, so that it asks for the same from any working folder.

    A study without relative paths keeps its text, comments and all, but for a seal.
    """
    top, grids, also = tables_of(path)
    parts = [("", top), *(("\n[[grid]]\n", part) for part in grids), *(("\n[[also]]\n", part) for part in also)]
    if all(with_absolute_paths(part) == part for _, part in parts):
        return without_seal(path.read_text("utf-8"))
    return "".join(
        head + "".join(toml_line(name, value) for name, value in with_absolute_paths(part).items())
        for head, part in parts
    )


def with_absolute_paths(part: Grid) -> Grid:
    """Return options with every path made absolute."""

    def whole(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [whole(name, item) for item in value]
        return absolute(name, value) if name in PLACES and isinstance(value, str) else value

    return {name: whole(name, value) for name, value in part.items()}


def expand(grid: Grid) -> list[Config]:
    """Return a configuration per combination of a grid's values; refuse an option that none of them has."""
    configs, unknown = expanded(grid)
    for name in unknown:
        resolve(name, configs[0])  # refuses it, and names the option that may have been meant
    return configs


def expanded(grid: Grid) -> tuple[list[Config], set[str]]:
    """Return a configuration per combination of a grid's values, and the options that none of them has."""
    for name in FIXED:
        if isinstance(grid.get(name), list):
            raise BadRequest(f"{name} is one for the whole study, not a list")
    varied = {name: value if isinstance(value, list) else [value] for name, value in (NAMES | grid).items()}
    if empty := [name for name, values in varied.items() if not values]:
        raise BadRequest(f"{empty[0]} has no values")
    configs, used, bases = [], set[str](), dict[tuple[str, str, str], Config]()
    for values in itertools.product(*varied.values()):
        chosen = dict(zip(varied, values))
        data, method, debias = (str(chosen.pop(name)) for name in NAMES)
        if (data, method, debias) not in bases:
            bases[data, method, debias] = defaults(data, method, debias, device=device_of(grid))
        base = bases[data, method, debias]
        known = had(base, chosen)
        used |= known.keys()
        paths = {"root": Path(str(known["root"]))} if "root" in known else {}
        configs.append(override(base, known | paths))
    return configs, grid.keys() - used - NAMES.keys()


def folder_name(config: Config) -> str:
    """Return the name of a configuration's run folder in runs/: readable words, then a part of its fingerprint."""
    options = config.options
    words = "-".join((options.data, options.method, options.debias))
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in words)
    return f"{plain[-80:]}-{config.fingerprint()[:10]}"


def cells_of(configs: Iterable[Config]) -> list[Cell]:
    """Return the cells of some configurations, a cell per seed."""
    return [Cell(folder_name(config), seed) for config in configs for seed in config.seeds]
