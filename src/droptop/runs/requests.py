"""Requests: what is asked for becomes a folder, and a folder becomes what was asked for again."""

import json
from collections.abc import Callable
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from droptop import trackers
from droptop.data.folder import files_of
from droptop.errors import BadRequest, typed
from droptop.learner import LearnerConfig
from droptop.methods import from_file
from droptop.nets import NetConfig, ViTConfig
from droptop.nets.weights import describe
from droptop.options import NO_DEBIAS
from droptop.runs.build import build_learner, build_stream
from droptop.runs.config import Config, defaults, override, to_toml
from droptop.runs.environment import environment
from droptop.runs.folder import Command, is_done, read_request
from droptop.system import locks
from droptop.system.files import write_json

T = TypeVar("T", NetConfig, ViTConfig, LearnerConfig)


def arms(command: Command, config: Config, out: Path) -> dict[Path, Config]:
    """The run folders of a request and what each of them runs."""
    if command == "run":
        return {out: config}
    if config.options.debias == NO_DEBIAS:
        raise BadRequest("--debias takes something to compare with none")
    return {out / name: config.arm(name) for name in (NO_DEBIAS, config.options.debias)}


def begin(command: Command, config: Config, out: Path) -> None:
    """Claims the folder, once everything that can be refused beforehand has been."""
    if out.exists() and not out.is_dir():
        raise BadRequest(f"--out takes a folder; {out} is a file")
    if out.is_dir() and any(out.iterdir()):
        begun = (out / "config.toml").exists() and (out / "config.toml").stat().st_size
        hint = f"{typed('resume', out)} continues it" if begun else "choose another"
        raise BadRequest(f"--out takes a new or empty folder; {out} holds something already: {hint}")
    trackers.check(config.options.log)
    for arm in arms(command, config, out).values():
        seed = config.options.first_seed
        build_learner(arm, build_stream(arm, seed), seed, device="cpu")  # workers start their GPU themselves
    claim, text = out / "config.toml", to_toml(config, command).encode()
    beyond = f"--out takes a folder that can be written; {out}: "
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = claim.open("xb")
    except FileExistsError:
        raise BadRequest(f"--out takes a new or empty folder; another command has just begun in {out}") from None
    except OSError as error:
        raise BadRequest(f"{beyond}{error.strerror}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        claim.unlink()
        raise BadRequest(f"{beyond}{error.strerror}") from None


def load(out: Path) -> tuple[Command, Config]:
    """Return what a folder was asked to hold; refuse one that is no run folder."""
    request = read_request(out)
    options = dict(request.options)
    if from_file.is_file(str(options["method"])) and not Path(str(options["method"])).is_absolute():
        raise BadRequest(
            f"{out / 'config.toml'} takes an absolute path for a method that is a file, not {options['method']}"
        )
    paths = {"root": Path(str(options["root"]))} if "root" in options else {}
    data, method, debias = (str(options.pop(name)) for name in ("data", "method", "debias"))
    return request.command, override(read_anywhere(data, method, debias, options), options | paths)


def read_anywhere(data: str, method: str, debias: str, noted: dict[str, Any]) -> Config:
    """What the names of a run stand for; where its method's file is gone, ER with all options that the run noted."""
    if from_file.is_there(method):
        return defaults(data, method, debias)
    base = defaults(data, "er", debias)
    of_net, of_learner = (
        {path.partition(".")[2]: value for path, value in noted.items() if path.startswith(section)}
        for section in ("net.", "learner.")
    )
    is_vit = bool(of_net.keys() - NetConfig.__dataclass_fields__)
    return replace(
        base,
        options=replace(base.options, method=method),
        learner=with_more(LearnerConfig, of_learner),
        net=with_more(ViTConfig, of_net) if is_vit else with_more(NetConfig, of_net),
    )


def with_more(kind: type[T], options: dict[str, Any]) -> T:
    """Options of a kind, and of what is noted those that it does not have."""
    more = {name: value for name, value in options.items() if name not in kind.__dataclass_fields__}
    fields = [(name, type(value)) for name, value in more.items() if name.isidentifier()]
    made = make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True, kw_only=True)
    found: T = made(**{name: more[name] for name, _ in fields})
    return found


def with_seeds(command: Command, config: Config, out: Path, seeds: int | None) -> Config:
    """The configuration with another number of seeds, if that is asked for; none that was begun is given up."""
    if seeds is None:
        return config
    asked = override(config, {"seeds": seeds})
    there = [path for run in arms(command, config, out) for path in run.glob("seed-*") if path.name[5:].isdigit()]
    if any(map(locks.is_locked, there)):
        raise BadRequest(f"--seeds takes a folder that no other command is at work in, as one is in {out}")
    begun = [int(path.name[5:]) for path in there if any(file.name != locks.NAME for file in path.iterdir())]
    least = max((seed - config.options.first_seed + 1 for seed in begun), default=1)
    if seeds < least:
        raise BadRequest(f"--seeds takes at least the {least} that were begun, not {seeds}")
    if seeds > config.options.seeds:
        build_stream(asked, asked.seeds[-1])  # or it is refused, before anything is written
    return asked


def finished(command: Command, config: Config, out: Path) -> bool:
    return all(is_done(run, seed) for run in arms(command, config, out) for seed in config.seeds)


def files_behind(weights: str | None, method: str, data: str) -> dict[str, str | None]:
    """What a run knows the files by that its options name. Whoever asks for many runs keeps the answer: there may be a
    great many images."""
    return {"weights": describe(weights), "method": from_file.sha256(method), "data": files_of(data)}


def ignore(text: str) -> None:
    pass


def note_environment(
    run: Path,
    config: Config,
    unfinished: bool = True,
    note: Callable[[str], None] = ignore,
    behind: Callable[[str | None, str, str], dict[str, str | None]] = files_behind,
) -> None:
    """Writes environment.json or, where there is more to run and something has changed since, adds to it and tells;
    another configuration, other weights, or another method or other images in the same place are refused."""
    path, options = run / "environment.json", config.options
    files = behind(options.weights, options.method, options.data)
    now = environment(options.device, options.threads) | files | {"asked": config.fingerprint()}
    if not path.exists():
        write_json(path, now)
        return
    try:
        before = json.loads(path.read_text())
    except ValueError:
        raise BadRequest(f"{path} is damaged: remove it to go on without what it says") from None
    for name, value in files.items():
        if value is not None and before.get(name, value) != value:
            raise BadRequest(
                f"--{name} {getattr(options, name)} is not what {run} began with: its SHA-256 is another; "
                "take a new folder for it"
            )
    if not config.was_asked(before):
        raise BadRequest(f"{run / 'config.toml'} has changed since {run} began: take a new folder for other options")
    noted = ("python", "machine", "versions", "device_name", "commit")
    changed = {name: now[name] for name in noted if before.get(name) != now[name]}
    if unfinished and changed:
        note(
            f"{run}: {', '.join(changed)} changed since this run began; its bytes may differ from those of an "
            "uninterrupted one"
        )
        if changed not in before.setdefault("later", []):
            before["later"].append(changed)
            write_json(path, before)
