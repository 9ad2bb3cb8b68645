"""Tune the arms of a comparison alike: the same trials, space and held-out images for each, then fresh seeds for all.

    OUT/tuning/compare.toml    what was asked for: the arms as they are without tuning, and how they are tuned
    OUT/tuning/ARM/            a tuning as `droptop tune` makes it
    OUT/tuned.json             what every arm was given in the end, which compare.json and the page state

OUT becomes the folder of a comparison once all arms are tuned; until then `droptop resume OUT` goes on with the tuning.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from droptop.errors import BadRequest, require, typed
from droptop.options import flatten
from droptop.results.statistics import estimate
from droptop.runs.config import Config, override
from droptop.runs.folder import TUNED, TUNING, read_request
from droptop.runs.plan import Plan
from droptop.runs.requests import load
from droptop.runs.trust import admit
from droptop.sweeps.sweep import Engine
from droptop.sweeps.tuning.request import Search, TuneRequest, refuse_edited
from droptop.sweeps.tuning.space import read_space, usual_space
from droptop.sweeps.tuning.tune_json import in_words
from droptop.sweeps.tuning.tuner import check, tune
from droptop.system.files import write_changed
from droptop.system.sealed_json import write_sealed
from droptop.system.toml_files import read_tables, sealed
from droptop.training.observer import Observer

ASKED = f"{TUNING}/compare.toml"


class Alike(NamedTuple):
    """Say how the arms of a comparison are to be tuned."""

    trials: int  # per arm
    over: Mapping[str, str] = {}  # what may vary, as --over says it; by default the usual space
    only: str | None = None  # the arm that alone is tuned, whose options all others get


@dataclass(frozen=True)
class TunedArms:
    """Hold a comparison whose arms are to be tuned."""

    plan: Plan  # the arms without tuning
    over: dict[str, str]  # the space, the same for all
    search: Search
    only: str | None = None  # the arm that alone is tuned, whose options all others get

    def requests(self) -> dict[str, TuneRequest]:
        """Return what is tuned, by the arm's name."""
        return {
            name: TuneRequest(arm, self.over, self.search)
            for name, arm in self.plan.arms.items()
            if self.only in (None, name)
        }

    def toml(self) -> str:
        """Return the text of compare.toml."""
        own: dict[str, Any] = {"only": self.only} if self.only is not None else {}
        tune = tomli_w.dumps({"tune": own | asdict(self.search) | {"over": self.over}})
        return sealed(f"{self.plan.toml()}\n{tune}")


def tuned_arms(plan: Plan, wanted: Alike) -> TunedArms:
    """Return a comparison whose arms are to be tuned; refuse what would not be fair, or cannot be tuned.

    Raise BadRequest for a space that is not every arm's, arms that differ in nothing but what is tuned, and images that
    are held out already.
    """
    trials, over, only = wanted
    arms = list(plan.arms.values())
    require(plan.command == "compare", "tune", "a comparison; `droptop tune` is for one arm", plan.command)
    require(only is None or only in plan.arms, "tune_for", f"an arm to tune for all: {', '.join(plan.arms)}", only)
    if plan.stream.hold_out:
        raise BadRequest("--tune holds out images of its own: leave out --hold-out, which would compare on the same")
    said = dict(over) or usual_space(arms)
    paths = dict(zip(read_space(said, arms), said.values()))
    without: dict[str, str] = {}
    for name, arm in plan.arms.items():
        rest = str(sorted((path, str(value)) for path, value in flatten(arm).items() if path not in paths))
        if (other := without.setdefault(rest, name)) != name:
            raise BadRequest(
                f"--over takes options other than those in which arms differ: {other} and {name} would be one"
            )
    return TunedArms(plan, paths, Search(trials=trials), only)


def check_all(asked: TunedArms) -> list[str]:
    """Return what the user should know; raise BadRequest if a tuning cannot be run."""
    return list(dict.fromkeys(note for request in asked.requests().values() for note in check(request)))


def begin_tuning(asked: TunedArms, out: Path) -> None:
    """Write what is asked for into a folder."""
    try:
        (out / TUNING).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"--out takes a folder that can be written; {out}: {error.strerror}") from None
    write_changed(out / ASKED, asked.toml().encode())


def awaits_tuning(out: Path) -> bool:
    """Return whether a folder is that of a comparison whose arms are not all tuned yet."""
    return (out / ASKED).is_file() and not (out / "config.toml").is_file()


def load_arms(out: Path, trust: bool = False) -> TunedArms:
    """Return the comparison that a folder was asked to tune and make; refuse files that the user has not named.

    With `trust`, files that only the folder names may be executed.
    """
    refuse_edited(out / ASKED)
    asked = dict(read_tables(out / ASKED).get("tune", {}))
    arms = [arm.options for arm in read_request(out, ASKED).arms]
    admit(out / ASKED, arms, trust, typed("resume", out, "--trust"))
    try:
        only, over = asked.pop("only", None), asked.pop("over")
        return TunedArms(load(out, ASKED), over, Search(**asked), only)
    except (KeyError, TypeError):
        raise BadRequest(f"{out / ASKED} does not say what to tune") from None


def tune_all(asked: TunedArms, out: Path, engine: Engine, observer: Observer) -> Plan:
    """Tune what is missing of every arm; return the comparison with the options that were found."""
    found: dict[str, dict[str, Any]] = {}
    later = f"then the best {asked.search.confirm} and the usual options on {asked.search.confirm_seeds} fresh seeds"
    for name, request in asked.requests().items():
        observer.note(f"tuning {name}: {asked.search.trials} trials on held-out training images; {later}")
        found[name] = tune(request, out / TUNING / name, engine, observer)
        observer.note(f"tuned {name}: {in_words(found[name]['chosen']['settings'])}")
    chosen = {name: found[asked.only or name]["chosen"]["settings"] for name in asked.plan.arms}
    write_sealed(out / TUNED, statement(asked, found, chosen))
    arms: dict[str, Config] = {name: override(arm, chosen[name]) for name, arm in asked.plan.arms.items()}
    return replace(asked.plan, arms=arms)


def statement(
    asked: TunedArms, found: Mapping[str, dict[str, Any]], chosen: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return what compare.json and the page say of the tuning."""
    search = asked.search
    return {
        "trials": search.trials,
        "over": asked.over,
        "by": search.by,
        "hold_out": search.hold_out,
        "seeds": list(search.seeds),
        "confirm": search.confirm,
        "confirm_seeds": search.confirm_seeds,
        "for": asked.only,
        "arms": {
            name: {"settings": settings, "usual": usual_of(asked.plan.arms[name], settings)}
            | ({"confirmed": confirmed_of(found[name])} if name in found else {})
            for name, settings in chosen.items()
        },
    }


def usual_of(arm: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an arm would have without tuning."""
    values = flatten(arm)
    return {path: values[path] for path in settings}


def confirmed_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the chosen settings of an arm reached on fresh seeds of held-out images."""
    chosen = next(each for each in found["confirmed"] if each.name == found["chosen"]["name"])
    mean = estimate(chosen.values)
    return {"mean": mean.mean, "error": mean.error, "n": mean.n}
