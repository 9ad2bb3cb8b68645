"""What a folder is asked to tune, on disk as tune.toml: options as they will run, the space, and how it is searched."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import tomli_w

from droptop.errors import BadRequest, require, typed
from droptop.runs.build import build_stream
from droptop.runs.config import Config, override
from droptop.runs.flags import flags_of
from droptop.runs.folder import TUNE
from droptop.runs.plan import Plan
from droptop.runs.requests import config_of
from droptop.runs.trust import admit
from droptop.streams import Stream
from droptop.sweeps.tuning.space import Space, read_space, usual_space
from droptop.sweeps.tuning.tune_json import is_edited
from droptop.system.toml_files import leaves, read_tables, sealed

By = Literal["hold-out", "first-task"]
SEED = 10_000  # of the trials; those after it confirm. Far from the seeds that people run
HOLD_OUT = 10.0  # percent of each class's training images


@dataclass(frozen=True)
class Search:
    """Hold how options are searched for."""

    trials: int = 30
    by: By = "hold-out"
    hold_out: float = HOLD_OUT
    confirm: int = 5  # trials that are run again, the best ones
    confirm_seeds: int = 5
    seed: int = SEED

    def __post_init__(self) -> None:
        require(self.trials >= 1, "trials", "a number of trials from 1", self.trials)
        require(self.by in get_args(By), "by", f"one of {', '.join(get_args(By))}", self.by)
        require(0 < self.hold_out < 100, "hold_out", "a percentage above 0 and below 100", self.hold_out)
        require(self.confirm >= 1, "confirm", "a number of trials from 1", self.confirm)
        require(self.confirm_seeds >= 1, "confirm_seeds", "a number of seeds from 1", self.confirm_seeds)
        require(self.seed >= 0, "tune_seed", "a number from 0", self.seed)

    @property
    def fresh(self) -> range:
        """Return the seeds that confirm."""
        return range(self.seed + 1, self.seed + 1 + self.confirm_seeds)

    @property
    def seeds(self) -> range:
        """Return all seeds that are used up by tuning."""
        return range(self.seed, self.fresh.stop)


@dataclass(frozen=True)
class TuneRequest:
    """Hold what is tuned: a configuration as it will run, on test sets and on seeds that tuning does not see."""

    config: Config
    over: dict[str, str]  # what may vary, as --over says it
    search: Search = Search()

    def __post_init__(self) -> None:
        require(
            set(self.config.seeds).isdisjoint(self.search.seeds),
            "tune_seed",
            f"seeds other than those of the run; trials take {self.search.seed} to {self.search.seeds[-1]}",
            self.search.seed,
        )
        require(
            self.config.stream.hold_out == 0,
            "hold_out",
            "its place in a configuration that is run in the end, which learns from all images: 0",
            self.config.stream.hold_out,
        )

    @property
    def space(self) -> Space:
        """Return what may vary, between which values."""
        return read_space(self.over, [self.config])

    def on_held_out(self, settings: dict[str, Any], first_task: str | None, seeds: range) -> Config:
        """Return the configuration of a trial: it learns from a part of the training images, and is tested on the rest.

        `first_task` has the classes of the only task, where that is learned alone.
        """
        options: dict[str, Any] = {"stream.hold_out": self.search.hold_out, "maps": 0, "log": None}
        options |= {} if first_task is None else {"stream.split": first_task}
        options |= {"first_seed": seeds.start, "seeds": len(seeds)}
        return override(self.config, settings | options)

    def with_settings(self, settings: dict[str, Any]) -> Config:
        """Return the configuration with some settings, as it will run."""
        return override(self.config, settings)

    def first_task(self) -> str | None:
        """Return the classes of the first task as `--split` has them, where that alone is learned; else None."""
        if self.search.by != "first-task":
            return None
        if (split := self.config.stream.split) is not None:
            return split.partition("/")[0]
        alone = self.on_held_out({}, None, range(self.search.seed, self.search.seed + 1))
        return names_of(build_stream(alone, self.search.seed))

    def toml(self) -> str:
        """Return the text of tune.toml."""
        tune = tomli_w.dumps({"tune": asdict(self.search) | {"over": self.over}})
        return sealed(f"{Plan('run', {'': self.config}).toml()}\n{tune}")

    def command(self) -> list[str]:
        """Return the command that asks for the same, but for its folder."""
        search = self.search
        flags = flags_of(Plan("run", {"": self.config})) or []
        over = [token for path, text in self.over.items() for token in ("--over", f"{path}={text}")]
        own = {"trials": search.trials, "by": search.by, "hold-out": search.hold_out, "confirm": search.confirm}
        own |= {"confirm-seeds": search.confirm_seeds, "tune-seed": search.seed}
        words = [
            token
            for name, value in own.items()
            for token in (f"--{name}", f"{value:g}" if isinstance(value, float) else str(value))
        ]
        return ["droptop", "tune", *flags, *over, *words]

    def best(self, settings: dict[str, Any]) -> str:
        """Return the text of best.toml, which `droptop run --config` runs."""
        return Plan("run", {"": self.with_settings(settings)}).toml()

    def goes_on(self, other: "TuneRequest") -> bool:
        """Return whether another request asks for the same, with perhaps another number of trials."""
        mine, theirs = (replace(each.search, trials=1) for each in (self, other))
        same_space = {path: str(values) for path, values in self.space.items()} == {
            path: str(values) for path, values in other.space.items()
        }
        return self.config.fingerprint() == other.config.fingerprint() and mine == theirs and same_space


def tune_request(config: Config, over: Mapping[str, str], search: Search) -> TuneRequest:
    """Return the request to tune a configuration, which may have images held out as a trial has; by default the usual
    space is searched.
    """
    as_run = override(config, {"stream.hold_out": 0.0})
    said = dict(over) or usual_space([as_run])
    return TuneRequest(as_run, dict(zip(read_space(said, [as_run]), said.values())), search)


def names_of(stream: Stream) -> str:
    """Return the classes of a stream's first task as `--split` has them: by name, where names can be listed."""
    names = [stream.spec.classes[label] for label in stream.tasks[0]]
    listable = not any(mark in name for name in names for mark in ",/") and all(name == name.strip() for name in names)
    return ",".join(names if listable else map(str, stream.tasks[0]))


def refuse_edited(file: Path) -> None:
    """Raise BadRequest if a file of what is to be tuned is not as droptop wrote it: its trials would be of another."""
    if is_edited(file):
        raise BadRequest(f"{file} has changed since droptop wrote it: put it back, or tune in another folder")


def load_request(out: Path, trust: bool = False) -> TuneRequest:
    """Return what a folder was asked to tune; refuse a folder that is none, and files that the user has not named.

    With `trust`, files that only the folder names may be executed.
    """
    if not (out / TUNE).is_file():
        raise BadRequest(f"{out} is no folder of {typed('tune')}: it has no {TUNE}")
    refuse_edited(out / TUNE)
    tables = read_tables(out / TUNE)
    asked = tables.pop("tune", {})
    tables.pop("command", None)
    try:
        over = asked.pop("over")
        search = Search(**asked)
    except (KeyError, TypeError, AttributeError):
        raise BadRequest(f"{out / TUNE} does not say what to tune") from None
    options = leaves(tables)
    admit(out / TUNE, [options], trust, typed("tune", "--out", out, "--trust"))
    return TuneRequest(config_of(options, out), over, search)
