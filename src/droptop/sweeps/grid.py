"""A study is a grid, written in TOML: an option with a list of values varies, one with a single value is fixed.

    seeds = 5                                  # of every configuration
    data = ["fashion-sticker", "fashion"]
    method = ["er", "derpp"]
    debias = ["none", "droptop"]
    lr = [0.03, 0.1]

    [[also]]                                   # more cells: what stands here replaces what stands above
    method = "er"
    debias = "droptop"
    gamma = [2.5, 10.0]

Where several grids have little in common, each stands in a table headed [[grid]], and the top only says what holds for
all of them.

Options that a combination does not have (gamma without debiasing, candidates with other methods than MIR) are left out
of it, and combinations that come to the same are one. A cell is a configuration and a seed.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest, typed
from droptop.runs.config import PLACES, Config, absolute, defaults, override, resolve
from droptop.sweeps.study_folder import Cell
from droptop.system.toml_files import leaves, read_tables, toml_line

NAMES = {"data": "fashion-sticker", "method": "er", "debias": "droptop"}
FIXED = ("seeds", "first_seed", "device", "threads")  # of a whole study, on which machines it runs depends
Grid = dict[str, Any]  # options by path, a list of values where one varies
MEANT = {"grid": "grids of their own stand", "also": "what is to be added stands"}


def read_study(path: Path) -> list[Config]:
    """The configurations that a study asks for, each with its seeds."""
    top, own, also = tables_of(path)
    if odd := [name for name in FIXED for table in (*own, *also) if name in table]:
        raise BadRequest(f"{path}: {odd[0]} is one for the whole study and stands at its top")
    found, idle = list[Config](), set(top)
    try:
        for table in (*(own or [{}]), *also):
            configs, unknown = expanded(top | table)
            found += configs
            idle &= unknown
            for name in unknown & table.keys():
                resolve(name, configs[0])  # says what it may have meant
        for name in idle:
            resolve(name, found[0])
    except BadRequest as error:
        error.args = (f"{path}: {error}",)
        raise
    return list({config.fingerprint(): config for config in found}.values())


def tables_of(path: Path) -> tuple[Grid, list[Grid], list[Grid]]:
    """What a study says at its top, its own grids and what is to be added."""
    tables = read_tables(path)
    if (command := tables.get("command")) in ("run", "compare"):
        raise BadRequest(
            f"{path} is no study but what one {typed(command)} was asked for: "
            f"{typed('resume', path.parent)} continues that, "
            f"{typed(command, '--config', path, '--out', 'FOLDER')} runs it again"
        )
    own, also = (tables.pop(name, []) for name in ("grid", "also"))
    for name, part in (("grid", own), ("also", also)):
        if not isinstance(part, list) or not all(isinstance(table, dict) for table in part):
            raise BadRequest(f"{path}: {MEANT[name]} in tables headed [[{name}]]")
    return leaves(tables), [leaves(table) for table in own], [leaves(table) for table in also]


def settled(path: Path) -> str:
    """A study's text, which asks for the same from whatever folder it is read: as it is where it names no place, or
    does by a whole path."""
    top, own, also = tables_of(path)
    parts = [("", top), *(("\n[[grid]]\n", part) for part in own), *(("\n[[also]]\n", part) for part in also)]
    if all(placed(part) == part for _, part in parts):
        return path.read_text("utf-8")
    return "".join(
        head + "".join(toml_line(name, value) for name, value in placed(part).items()) for head, part in parts
    )


def placed(part: Grid) -> Grid:
    """Options with whole paths."""

    def whole(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [whole(name, one) for one in value]
        return absolute(name, value) if name in PLACES and isinstance(value, str) else value

    return {name: whole(name, value) for name, value in part.items()}


def expand(grid: Grid) -> list[Config]:
    """Every combination of a grid's values."""
    configs, unknown = expanded(grid)
    for name in unknown:
        resolve(name, configs[0])  # nobody has it: says what it may have meant
    return configs


def expanded(grid: Grid) -> tuple[list[Config], set[str]]:
    """Every combination of a grid's values, and the options that none of them has."""
    for name in FIXED:
        if isinstance(grid.get(name), list):
            raise BadRequest(f"{name} is one for the whole study, not a list")
    varied = {name: value if isinstance(value, list) else [value] for name, value in (NAMES | grid).items()}
    if empty := [name for name, values in varied.items() if not values]:
        raise BadRequest(f"{empty[0]} has no values")
    configs, used = [], set[str]()
    for values in itertools.product(*varied.values()):
        chosen = dict(zip(varied, values))
        data, method, debias = (str(chosen.pop(name)) for name in NAMES)
        base = defaults(data, method, debias)
        known = {name: value for name, value in chosen.items() if has(base, name)}
        used |= known.keys()
        paths = {"root": Path(str(known["root"]))} if "root" in known else {}
        configs.append(override(base, known | paths))
    return configs, grid.keys() - used - NAMES.keys()


def has(config: Config, name: str) -> bool:
    try:
        resolve(name, config)
    except BadRequest:
        return False
    return True


def folder_name(config: Config) -> str:
    """Where a configuration's cells lie: the same wherever and whenever it is asked for."""
    options = config.options
    words = "-".join((options.data, options.method, options.debias))
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in words)
    return f"{plain[-80:]}-{config.fingerprint()[:10]}"


def cells_of(configs: Iterable[Config]) -> list[Cell]:
    """Return the cells of some configurations."""
    return [Cell(folder_name(config), seed) for config in configs for seed in config.seeds]
