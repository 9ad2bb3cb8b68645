"""What tuning found, from files alone: OUT/tune.json, which is written anew whenever a trial ends. Loads no torch.

trials      all of them, in the order in which they were asked for, with what they reached on held-out images
confirmed   the best of them and the usual options, each on the same fresh seeds
chosen      the best mean among these; never the luckiest trial
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from droptop.errors import BadRequest, typed
from droptop.options import name_of
from droptop.results.statistics import Effect, estimate, paired_effect, within_possible
from droptop.runs.folder import TUNE
from droptop.sweeps.study_folder import StudyFolder
from droptop.sweeps.tuning.tune_json_shape import check_found
from droptop.system.sealed_json import has_seal, read_sealed
from droptop.system.toml_files import seal_holds

FOUND, BEST = "tune.json", "best.toml"
FIGURE = "A_avg"
USUAL = "usual"  # names the options as they are without tuning


class Confirmed(NamedTuple):
    """Hold what some settings reach on fresh seeds."""

    name: str  # of the run folder: trial-3, or usual
    settings: dict[str, Any]
    trial_value: float | None  # what the trial had reached; None of usual options that were not among the trials
    values: list[float]  # per fresh seed
    eligible: bool = True  # False of usual options that lie outside of the space

    @property
    def mean(self) -> float:
        """Return the mean over fresh seeds."""
        return sum(self.values) / len(self.values)


def best_trials(trials: Iterable[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """Return the trials of highest value, the best first, each setting once; only those that came to their end."""
    done = sorted(
        (trial for trial in trials if trial["state"] == "done"), key=lambda trial: (-trial["value"], trial["number"])
    )
    unlike: dict[str, Mapping[str, Any]] = {}
    for trial in done:
        unlike.setdefault(json.dumps(trial["settings"], sort_keys=True), trial)
    return list(unlike.values())[:count]


def choose(confirmed: Sequence[Confirmed]) -> Confirmed:
    """Return the settings with the best mean over fresh seeds; what a trial had reached plays no part."""
    eligible = [each for each in confirmed if each.eligible]
    return max(eligible, key=lambda each: each.mean)


def gain(confirmed: Sequence[Confirmed], chosen: Confirmed, over: str) -> Effect | None:
    """Return what the choice adds to other settings on the same seeds; None where these are not there or the same."""
    other = next((each for each in confirmed if each.name == over), None)
    if other is None or other.name == chosen.name:
        return None
    before: list[float | None] = [*other.values]
    return within_possible(paired_effect(before, [*chosen.values]), before, FIGURE)


def as_dict(each: Confirmed) -> dict[str, Any]:
    """Return confirmed settings as tune.json has them."""
    return {**each._asdict(), "mean": each.mean, "error": estimate(each.values).error}


def figure(result: Mapping[str, Any]) -> float:
    """Return what a seed reached: its figure on the first test set, which is held-out images as in training."""
    return float(next(iter(result["tests"].values()))[FIGURE])


def trial_folder(out: Path, number: int) -> Path:
    """Return the run folder of a trial."""
    return out / "runs" / f"trial-{number}"


def edited_lines(out: Path) -> list[str]:
    """Return a line for what is to be tuned, and for the choice, where these are not as droptop wrote them."""
    edited = [out / name for name in (TUNE, BEST) if is_edited(out / name)]
    return [f"{path} has changed since droptop wrote it" for path in edited]


def lines_of(out: Path) -> list[str]:
    """Return what to say of a tuning besides what it found: what of its files is not what was written."""
    return edited_lines(out) + gone_lines(out) + StudyFolder(out).findings.lines()


def gone_lines(out: Path) -> list[str]:
    """Return a line where a tuning has made its choice, and what it found is gone."""
    return [f"{out / FOUND} is gone"] if (out / BEST).is_file() and not (out / FOUND).is_file() else []


def is_edited(file: Path) -> bool:
    """Return whether a file of a tuning is not as droptop wrote it; beside a sealed tune.json, it has a seal too."""
    held = seal_holds(file)
    return held is False or (held is None and file.is_file() and has_seal(file.parent / FOUND))


def is_tuning(folder: Path) -> bool:
    """Return whether a folder is that of `droptop tune`."""
    return (folder / TUNE).is_file()


def read_found(out: Path) -> dict[str, Any]:
    """Return what tune.json has; refuse a folder that has none, or a damaged one."""
    try:
        found = read_sealed(out / FOUND)
        check_found(found)
        found["confirmed"] = [
            Confirmed(**{name: each[name] for name in Confirmed._fields}) for each in found["confirmed"]
        ]
        return found
    except FileNotFoundError:
        raise BadRequest(f"{out} has no trial yet: {typed('tune', '--out', out)} goes on") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise BadRequest(f"{out / FOUND} is damaged: {typed('tune', '--out', out)} writes it anew") from None


# -- In words ---------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """Return a value as a list of `--over` has it."""
    return str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)


def short(value: Any) -> str:
    """Return a value in few digits."""
    return f"{value:.3g}" if isinstance(value, float) else text_of(value)


def in_words(settings: Mapping[str, Any]) -> str:
    """Return settings as people read them: lr 0.0312, momentum 0.9."""
    return ", ".join(f"{name_of(path)} {short(value)}" for path, value in settings.items())


def space_in_words(over: Mapping[str, str]) -> str:
    """Return a space as people read it: lr log:0.003:0.3, momentum 0,0.9."""
    return "; ".join(f"{name_of(path)} {text}" for path, text in over.items())
