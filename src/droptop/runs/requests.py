"""A request on disk: claim a folder for what the user asks for, and read back what a folder was asked to hold.

`begin` writes config.toml, `load` turns it into a `Plan` again, and `record_environment` keeps environment.json, by
which a later command sees that it continues the same run.
"""

from collections.abc import Callable, Mapping
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from droptop import trackers
from droptop.data.columns import Columns
from droptop.data.image_cache import sharing_reads
from droptop.debias.debiaser import NoSettings
from droptop.errors import BadRequest, no_memory, require, typed
from droptop.learner import LearnerConfig
from droptop.memory.buffer import check_room
from droptop.nets import NetConfig, ViTConfig, library_of
from droptop.nets.weights import describe
from droptop.options import NO_DEBIAS
from droptop.runs import manifest
from droptop.runs.build import build_learner, build_stream, model_sha256, refuse_spec
from droptop.runs.config import Config, defaults, override, settings_of
from droptop.runs.environment import environment
from droptop.runs.folder import CONFIG, TUNING, is_done, read_request
from droptop.runs.kept_files import keep
from droptop.runs.noted import environments
from droptop.runs.plan import Plan
from droptop.runs.run_options import RunOptions
from droptop.runs.trust import remember_places
from droptop.runs.whole_batches import left_out_note
from droptop.streams import StreamConfig, StreamKind, find
from droptop.system import devices, locks, user_files
from droptop.system.files import remove_left_over, write_atomic, write_json, write_new
from droptop.system.json_files import read_json
from droptop.system.toml_files import seal_holds

Settings = TypeVar("Settings", NetConfig, ViTConfig, StreamConfig, LearnerConfig, NoSettings)
FileHash = Callable[[str, str | None, Columns], str | None]  # the name of an option, its value, columns -> SHA-256
CLAIM = "config.toml"  # whoever writes it has the folder
HASHED = ("weights", "method", "debias", "data")  # options that may name files


def check(plan: Plan, out: Path) -> list[str]:
    """Return what the user should know of a plan; raise BadRequest if it cannot start in a folder.

    The folder is to be new or empty. Every arm's stream and learner is built once, so that impossible options are
    refused before anything is written.
    """
    if out.exists() and not out.is_dir():
        raise BadRequest(f"--out takes a folder; {out} is a file")
    claim = out / CLAIM
    if out.is_dir() and not all(path.name.startswith(f"{CLAIM}.") for path in out.iterdir()):  # half written
        begun = (claim.exists() and claim.stat().st_size) or (out / TUNING).is_dir()
        hint = f"{typed('resume', out)} continues it" if begun else "choose another"
        raise BadRequest(f"--out takes a new or empty folder; {out} holds something already: {hint}")
    notes = []
    with sharing_reads():
        for arm in plan.arms.values():
            trackers.check(arm.options.log)
            seed = arm.options.first_seed
            try:
                stream = build_stream(arm, seed)
                learner = build_learner(arm, stream, seed, device="cpu")  # workers start their GPU
            except (MemoryError, RuntimeError) as error:
                if (text := no_memory(error)) is None:
                    raise
                raise BadRequest(text) from None
            row = {name: column[0] for name, column in learner.memory.rows.items()}
            check_room(learner.memory.capacity, row, devices.first_of(arm.options.device))
            notes += left_out_note(stream)
    return list(dict.fromkeys(notes))


def begin(plan: Plan, out: Path, tuned: bool = False) -> list[str]:
    """Claim a new or empty folder by writing config.toml; return what the user should know.

    Places of data that it names are the user's from then on. Raise BadRequest before that if the run cannot start.
    Where arms were `tuned`, the folder holds that already.
    """
    notes = [] if tuned else check(plan, out)
    text = plan.toml().encode()
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_new(out / CLAIM, text)
    except FileExistsError:
        raise BadRequest(f"--out takes a new or empty folder; another command has just begun in {out}") from None
    except OSError as error:
        raise BadRequest(f"--out takes a folder that can be written; {out}: {error.strerror}") from None
    remember_places(arm.noted() for arm in plan.arms.values())
    return notes


def load(out: Path, file: str = CONFIG) -> Plan:
    """Return what a folder was asked to hold, as a file in it says; raise BadRequest if it is no run folder."""
    request = read_request(out, file)
    return Plan(request.command, {arm.name: config_of(arm.options, out) for arm in request.arms})


def config_of(noted: Mapping[str, Any], out: Path) -> Config:
    """Return the configuration of an arm, by the options that the config.toml in `out` notes."""
    options = dict(noted)
    named = [(option, str(options[option])) for option in ("data", "method", "model") if option in options]
    for option, name in (*named, *(("debias", part) for part in str(options["debias"]).split("+"))):
        if user_files.is_file(name) and not Path(name).is_absolute():
            raise BadRequest(f"{out / 'config.toml'} takes an absolute path for a {option} that is a file, not {name}")
    paths = {"root": Path(str(options["root"]))} if "root" in options else {}
    data, method, debias = (str(options.pop(name)) for name in ("data", "method", "debias"))
    return override(config_from_names(data, method, debias, options), options | paths)


def config_from_names(data: str, method: str, debias: str, noted: dict[str, Any]) -> Config:
    """Return the default configuration of three names, on any machine.

    Where a user's file is gone, nobody knows its options: a method is then ER, and a debiaser one without settings,
    with a field for every option in `noted` that these do not have.
    """
    known = RunOptions(data, method, debias)
    if known.files_are_there:
        return defaults(data, method, debias)
    gone = [part for part in debias.split("+") if not user_files.is_there(part, "debias")]
    kept = "+".join(part for part in debias.split("+") if part not in gone) or NO_DEBIAS
    sections: dict[str, dict[str, Any]] = {}
    for path, value in noted.items():
        head, dot, name = path.partition(".")
        if dot:
            sections.setdefault(head, {})[name] = value
    stream, has_method = None, user_files.is_there(method, "method")
    if not user_files.is_there(data, "data"):
        of_stream = with_unknown_fields(StreamConfig, sections.get("stream", {}))
        stream = StreamKind(refuse_spec, lambda: of_stream, {}, "gone")
    base = defaults(data, method if has_method else "er", kept, stream)
    base = replace(base, options=replace(base.options, method=method, debias=debias))
    if not has_method:
        of_net, learner = sections.get("net", {}), with_unknown_fields(LearnerConfig, sections.get("learner", {}))
        is_vit = bool(of_net.keys() - NetConfig.__dataclass_fields__)
        net = with_unknown_fields(ViTConfig, of_net) if is_vit else with_unknown_fields(NetConfig, of_net)
        base = replace(base, learner=learner, net=net)
    lost = sections.keys() - {"stream", "net", "learner"} - vars(base.members).keys() if gone else ()
    members = vars(base.members) | {name: with_unknown_fields(NoSettings, sections[name]) for name in lost}
    return replace(base, members=settings_of(members))


def with_unknown_fields(kind: type[Settings], options: dict[str, Any]) -> Settings:
    """Return the default settings of a kind, extended by options that it has no field for, or none with that choice."""
    hints = get_type_hints(kind)
    choices = {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}
    unknown = {
        name: value
        for name, value in options.items()
        if name.isidentifier() and (name not in hints or value not in choices.get(name, (value,)))
    }
    fields = [(name, type(value)) for name, value in unknown.items()]
    extended = make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True, kw_only=True)
    settings: Settings = extended(**unknown)
    return settings


def refuse_at_work(plan: Plan, out: Path, option: str) -> list[Path]:
    """Return the folders of the seeds that were begun; raise BadRequest if another command is at work in one."""
    folders = [path for run in plan.folders(out) for path in run.glob("seed-*") if path.name[5:].isdigit()]
    if any(map(locks.is_locked, folders)):
        raise BadRequest(f"--{option} takes a folder that no other command is at work in, as one is in {out}")
    return folders


def with_seeds(plan: Plan, out: Path, seeds: int | None) -> Plan:
    """Return the plan with another number of seeds; unchanged for None.

    Raise BadRequest if that would give up a seed that was begun, if another command is at work in the folder, or if
    the stream has no such seeds.
    """
    if seeds is None:
        refuse_edited(plan, out)
        return plan
    changed = plan.with_options({"seeds": seeds})
    folders = refuse_at_work(plan, out, "seeds")
    begun = [int(path.name[5:]) for path in folders if any(file.name != locks.NAME for file in path.iterdir())]
    least = max((seed - plan.options.first_seed + 1 for seed in begun), default=1)
    if seeds < least:
        raise BadRequest(f"--seeds takes at least the {least} that were begun, not {seeds}")
    if seeds > plan.options.seeds:
        for arm in changed.arms.values():
            build_stream(arm, changed.seeds[-1])  # refuses a seed that the stream does not have
    return changed


def with_device(plan: Plan, out: Path, device: str | None) -> Plan:
    """Return the plan on another device, which the folder notes from then on; unchanged for None.

    Raise BadRequest if it is of another kind than the one that the folder began on, where results would be others, or
    if another command is at work in the folder.
    """
    if device is None:
        return plan
    devices.check_form(device)
    kind = devices.kind_of(plan.options.device)
    require(devices.kind_of(device) == kind, "device", f"a device of the kind that {out} began on, {kind}", device)
    if device != plan.options.device:
        refuse_at_work(plan, out, "device")
    return plan.with_options({"device": device})


def write_config(place: Path, plan: Plan) -> None:
    """Write config.toml unless it is there; forget the manifest of what was finished with another one."""
    path, data = place / "config.toml", plan.toml().encode()
    remove_left_over(path)
    if not (path.is_file() and path.read_bytes() == data):
        (place / manifest.NAME).unlink(missing_ok=True)
        write_atomic(path, data)


def refuse_edited(plan: Plan, out: Path) -> None:
    """Raise BadRequest if config.toml is not as droptop wrote it, though the run could go on by it.

    Its number of seeds may be another, or what else can change on the way; a slip there can cost days.
    """
    file = out / "config.toml"
    if seal_holds(file) is False and all(map(plan.matches_environment, environments(out)[:1])):
        again = typed("resume", out, "--seeds", str(plan.options.seeds))
        raise BadRequest(f"{file} has changed since droptop wrote it: if that was you, {again} goes on by it as it is")


def finished(plan: Plan, out: Path) -> bool:
    """Return whether every seed of every arm has its result."""
    arms = [(run, arm.configuration()) for run, arm in plan.folders(out).items()]
    return all(is_done(run, seed, configuration) for run, configuration in arms for seed in plan.seeds)


def file_hash(option: str, value: str | None, columns: Columns = Columns()) -> str | None:
    """Return the SHA-256 of the file that an option names, or of all its files; None where it names none.

    Data of the hub have their version in words instead. Where data is a table, `columns` says what is taken of it.
    Hashing many images takes long: a caller with many runs caches the answer.
    """
    if option == "weights":
        return describe(value)
    if option == "data":
        return find(str(value)).data.version(columns) if user_files.is_there(str(value), "data") else None
    if option == "model":
        return model_sha256(value)
    return user_files.sha256(*str(value).split("+" if option == "debias" else None))


def ignore(text: str) -> None:
    """Take a note and do nothing."""


def record_environment(
    run: Path,
    asked: Config | Plan,
    unfinished: bool = True,
    note: Callable[[str], None] = ignore,
    hashed: FileHash = file_hash,
) -> None:
    """Write environment.json, or check the one that is there against what is asked for and this machine.

    A new one has copies of the user's own files beside it. Where the run is unfinished and the machine or the versions
    have changed, add what changed to the file and tell `note`. Raise BadRequest if the options, the weights, the
    method's file or the images are not those it began with.
    """
    path, options = run / "environment.json", asked.options
    columns = getattr(asked.stream, "columns", Columns())
    hashable = [*HASHED, *(["model"] if options.model is not None else [])]
    shown = () if unfinished else options.user_files().keys() & {"data", "model"}  # it would run the user's code
    files = {option: hashed(option, getattr(options, option), columns) for option in hashable if option not in shown}
    arms = list(asked.arms.values()) if isinstance(asked, Plan) else [asked]
    libraries = tuple(sorted({library for arm in arms if (library := library_of(arm.net.net)) is not None}))
    now = environment(options.device, options.threads, libraries) | files | {"asked": asked.fingerprint()}
    if not path.exists():
        names = (name for arm in arms for of_option in arm.options.user_files().values() for name in of_option)
        kept = keep(run, names)
        border = find(options.data).border if user_files.is_own(options.data) else 0
        write_json(path, now | ({"files": kept} if kept else {}) | ({"border": str(border)} if border else {}))
        return
    try:
        before = read_json(path)
    except ValueError:
        raise BadRequest(f"{path} is damaged: remove it to go on without what it says") from None
    for name, value in files.items():
        if value is not None and (began := before.get(name, value)) != value:
            change = f"it is {value}, not {began}" if " " in value else "its SHA-256 is another"
            raise user_files.Changed(
                f"--{name} {getattr(options, name)} is not what {run} began with: {change}; take a new folder for it"
            )
    if not asked.matches_environment(before):
        raise BadRequest(f"{run / 'config.toml'} has changed since {run} began: take a new folder for other options")
    watched = ("python", "machine", "versions", "device_name", "commit")
    changed = {name: now[name] for name in watched if before.get(name) != now[name]}
    if unfinished and changed:
        note(
            f"{run}: {', '.join(changed)} changed since this run began; its bytes may differ from those of an "
            "uninterrupted one"
        )
        if changed not in before.setdefault("later", []):
            before["later"].append(changed)
            write_json(path, before)
