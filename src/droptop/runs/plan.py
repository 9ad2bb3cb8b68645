"""What a folder is asked to hold: a run, or a comparison of arms, each with a whole configuration.

    plan_of("compare", "fashion-sticker", "er", "droptop,robust", {"seeds": 10})    arms none, droptop and robust
    plan_of("compare", "fashion", "er", "none", {}, {"slow": {"lr": 0.01}})         arms none and slow
    plan_of("compare", "fashion", "derpp", "none", {}, against="er")                arms er and derpp

The first arm of a comparison is its reference, which all others are compared with: the plain arm, or what `--against`
says. In config.toml, options that all arms share stand at the top, and those of one arm below [arms.NAME].
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from droptop.errors import BadRequest, require
from droptop.options import NO_DEBIAS
from droptop.runs.config import Config, check_name, defaults, device_of, has, override, resolve
from droptop.runs.folder import Command
from droptop.runs.on_cpu import lighter, said_of
from droptop.runs.reference import arm_name, debias_name, differing, reference_options
from droptop.runs.run_options import RunOptions
from droptop.streams import StreamConfig
from droptop.system.toml_files import nested, sealed, toml_text

SHARED = ("data", "root", "seeds", "first_seed", "limit", "device", "threads", "parallel")  # the same for all arms
NAME = re.compile(r"\w[\w+=.-]*")  # of an arm, which names a folder and a table of TOML
REFERENCE = "--against"  # stands for the name of the arm that `--against` says until all arms are known


@dataclass(frozen=True)
class Plan:
    """Hold the arms of a comparison by name, the reference first; or the only arm of a run."""

    command: Command
    arms: dict[str, Config]
    note: str = field(default="", compare=False)  # what to say at the start: defaults that are the machine's

    @property
    def options(self) -> RunOptions:
        """Return the options of the last arm; those that `SHARED` names are the same in all."""
        return list(self.arms.values())[-1].options

    @property
    def stream(self) -> StreamConfig:
        """Return the options of the last arm's stream."""
        return list(self.arms.values())[-1].stream

    @property
    def seeds(self) -> range:
        """Return the seeds of every arm."""
        return next(iter(self.arms.values())).seeds

    @property
    def against(self) -> str | None:
        """Return the name of a reference that does not come by itself; None for a plain arm, or a run."""
        reference = next(iter(self.arms))
        return None if self.command == "run" or reference == NO_DEBIAS else reference

    def folders(self, out: Path) -> dict[Path, Config]:
        """Return the run folder of every arm: `out` itself for a run."""
        return {out if self.command == "run" else out / name: arm for name, arm in self.arms.items()}

    def with_options(self, options: dict[str, Any]) -> "Plan":
        """Return the plan with some options set in every arm, all of which have them."""
        return replace(self, arms={name: override(arm, options) for name, arm in self.arms.items()})

    def with_arms(self, arms: Mapping[str, Config]) -> "Plan":
        """Return the plan with more arms; refuse a name that it has already."""
        for name in arms:
            require(name not in self.arms, "arms", f"a name other than {name}, which is there already", name)
        return replace(self, arms=self.arms | dict(arms))

    def with_effective_kappa_0(self) -> "Plan":
        """Return the plan with the kappa_0 that is run, at most gamma."""
        return replace(self, arms={name: arm.with_effective_kappa_0() for name, arm in self.arms.items()})

    def fingerprint(self) -> str:
        """Return a hash by which plans differ; that of a run, or of an arm beside the plain one, is its last arm's."""
        prints = [arm.fingerprint() for arm in self.arms.values()]
        return (
            prints[-1]
            if len(prints) <= 2 and self.against is None
            else hashlib.sha256(" ".join(prints).encode()).hexdigest()
        )

    def matches_environment(self, environment: dict[str, Any]) -> bool:
        """Return whether a folder with this environment.json began with this plan; True where a user's file is gone."""
        there = all(arm.options.files_are_there for arm in self.arms.values())
        now = self.fingerprint()
        return not there or environment.get("asked", now) == now

    def toml(self) -> str:
        """Return the text of config.toml, sealed, which runs the plan again: `droptop COMMAND --config FILE`."""
        noted = {name: arm.noted() for name, arm in self.arms.items()}
        first = next(iter(noted.values()))
        if self.command == "run":
            return sealed(toml_text({"command": self.command} | first))
        shared = {
            path: value
            for path, value in first.items()
            if all(path in arm and arm[path] == value for arm in noted.values())
        }
        own = {
            name: nested({path: value for path, value in arm.items() if path not in shared})
            for name, arm in noted.items()
        }
        against = {} if self.against is None else {"against": self.against}
        return sealed(toml_text({"command": self.command} | against | shared, {"arms": own}))


def plan_of(
    command: Command,
    data: str,
    method: str,
    debias: str,
    options: Mapping[str, Any],
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    against: str | None = None,
) -> Plan:
    """Return the plan that names and options stand for.

    Args:
        command: `run`, which has one arm, or `compare`, which has a reference besides those it is asked for.
        data: Name of the stream.
        method: Name of the learner, or a Python file that defines one.
        debias: Debiasing of the arm; in a comparison also several, separated by commas, an arm each.
        options: Options by name or path, for every arm that has them.
        arms: Options of single arms, by the arms' names; an arm without `debias` has the one above.
        against: The reference, as `--against` says it: by default the plain arm.

    Returns:
        The plan.

    Raises:
        BadRequest: If an option is known to no arm, or the arms do not make a comparison.
    """
    check_name("method", method)
    check_name("debias", debias)
    wanted = arms_wanted(command, debias, arms, against)
    made = arms_made(wanted, data, method, debias, options)
    light = {
        path: values for name, arm in made.items() for path, values in lighter(arm, {*options, *wanted[name]}).items()
    }
    if REFERENCE in made and against is not None:
        made = with_names(made, reference_options(against), keep=bool(arms))
    return Plan(command, made, said_of(light))


def arms_made(
    wanted: Mapping[str, Mapping[str, Any]], data: str, method: str, debias: str, options: Mapping[str, Any]
) -> dict[str, Config]:
    """Return the arms that are wanted, each with a whole configuration; refuse an option that none of them has."""
    made, unused, device = dict[str, Config](), set(options), device_of(options)
    for name, own in wanted.items():
        where = "--against: " if name == REFERENCE else f"[arms.{name}]: "
        if wrong := [option for option in own if option.rpartition(".")[2] in SHARED]:
            raise BadRequest(
                f"{where}{wrong[0]} is one for all arms{'' if name == REFERENCE else ' and stands at the top'}"
            )
        base = defaults(data, str(own.get("method", method)), str(own.get("debias", debias)), device=device)
        own = {option: value for option, value in own.items() if option not in ("method", "debias")}
        known = {resolve(option, base): value for option, value in options.items() if has(base, option)}
        known |= {resolve(option, base, where): value for option, value in own.items()}
        unused -= {option for option in options if has(base, option)}
        made[name] = override(base, known)
        made[name].check_kappa_0(base)
        made[name].check_model(base)
    for option in unused:
        resolve(option, made[list(made)[-1]])  # refuses it, and names the option that may have been meant
    return made


def arms_wanted(
    command: Command, debias: str, arms: Mapping[str, Mapping[str, Any]] | None, against: str | None = None
) -> dict[str, Mapping[str, Any]]:
    """Return the options of every arm by its name, the reference of a comparison first."""
    several = debias.split(",")
    if command == "run":
        require(len(several) == 1 and not arms, "debias", "one with run; `droptop compare` takes several arms", debias)
        return {debias_name(debias): {"debias": debias}}
    if arms:
        require(len(several) == 1, "debias", "one beside arms of their own, or the place of these", debias)
        wanted = dict(arms)
        for name in wanted:
            require(bool(NAME.fullmatch(name)), "arms", "names of letters, digits, _, +, =, . and -", name)
    else:
        wanted = {debias_name(each): {"debias": each} for each in several}
        require(len(wanted) == len(several), "debias", "every arm once", debias)
    if NO_DEBIAS in wanted:
        wanted[NO_DEBIAS] = {"debias": NO_DEBIAS} | dict(wanted[NO_DEBIAS])
    if against is None or against == NO_DEBIAS:
        reference = {NO_DEBIAS: wanted.get(NO_DEBIAS, {"debias": NO_DEBIAS})}
    elif against in (arms or {}):
        reference = {against: wanted[against]}
    else:
        said = reference_options(against)
        if len(several) > 1 and "debias" not in said:
            raise BadRequest(f"--against takes a debiasing too where --debias has several: {against},debias=none")
        reference = {REFERENCE: {"debias": several[0]} | said}
    others = {name: own for name, own in wanted.items() if name not in reference}
    if not others:
        raise BadRequest(f"--debias takes something to compare with {next(iter(reference))}")
    return reference | others


def with_names(made: Mapping[str, Config], said: Iterable[str], keep: bool) -> dict[str, Config]:
    """Return the arms of a comparison by their final names: what `--against` says, and without what equals it.

    Arms are named by the options in which they differ, unless they are to keep their names.
    """
    reference = made[REFERENCE]
    others = {name: arm for name, arm in made.items() if arm != reference}
    if not others:
        raise BadRequest("--against takes an arm that differs from those that are compared with it")
    told_apart = differing({"method", "debias", *(resolve(name, reference) for name in said)}, made.values())
    named = {arm_name(reference, told_apart): reference}
    for name, arm in others.items():
        final = name if keep else arm_name(arm, told_apart)
        require(final not in named, "against", "an arm with another name than the others", final)
        named[final] = arm
    return named
