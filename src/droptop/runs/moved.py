"""Images that have moved: go on with a run from another place, where its images are the same."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from droptop.data.columns import Columns
from droptop.errors import BadRequest, typed
from droptop.runs import checkpoint
from droptop.runs.config import Config
from droptop.runs.folder import read_request, seed_folder
from droptop.runs.kept_files import kept
from droptop.runs.kept_files import noted as files_noted
from droptop.runs.manifest import Unfit, read_manifest
from droptop.runs.plan import Plan
from droptop.runs.requests import config_of, file_hash, refuse_at_work, write_config
from droptop.runs.trust import remember_places
from droptop.system.files import write_json
from droptop.system.json_files import read_json


def with_data(plan: Plan, out: Path, data: str | None) -> Plan:
    """Return the plan of a folder with its images in another place, which the folder notes from then on.

    Raise BadRequest if the images are not those that it began with, by their hash, or nobody knows that, or if another
    command is at work in the folder. Nothing changes where the place is the one that is noted.
    """
    if data is None:
        return plan
    other = BadRequest(f"--data {data} does not have the images that {out} began with, by their SHA-256")
    try:
        arms = {arm.name: config_of(dict(arm.options) | {"data": data}, out) for arm in read_request(out).arms}
    except BadRequest:  # a stream of another kind, without the options of this one
        raise other from None
    moved = Plan(plan.command, arms)
    if moved.options.data == plan.options.data:
        return plan
    refuse_at_work(plan, out, "data")
    places: dict[Path, Config | Plan] = dict(moved.folders(out)) | {out: moved}
    noted = {place: read_json(place / "environment.json") for place in places if begun(place)}
    for arm in moved.arms.values():
        now = file_hash("data", arm.options.data, getattr(arm.stream, "columns", Columns()))
        if now is None or any(before.get("data") != now for before in noted.values()):
            raise other
    before_of = {run: arm.configuration() for run, arm in plan.folders(out).items()}
    for run, arm in moved.folders(out).items():
        for seed in arm.seeds:
            for header in checkpoint.newest_first(seed_folder(run, seed) / "checkpoints"):
                checkpoint.change(header, {"config": arm.fingerprint()})
            with suppress(Unfit):  # a damaged one stays so
                folder = seed_folder(run, seed)
                if (manifest := read_manifest(folder)) and manifest.configuration == before_of[run]:
                    replace(manifest, configuration=arm.configuration()).write(folder)
    for place, before in noted.items():
        anew = {"asked": places[place].fingerprint()}
        if copies := kept(place):
            paths = {plan.options.data.partition(":")[0]: moved.options.data.partition(":")[0]}
            anew["files"] = files_noted(copy._replace(path=paths.get(copy.path, copy.path)) for copy in copies)
        write_json(place / "environment.json", before | anew)
    for place, asked in places.items():
        if begun(place):
            write_config(place, asked if isinstance(asked, Plan) else Plan("run", {"": asked}))
    remember_places(arm.noted() for arm in moved.arms.values())
    return moved


@contextmanager
def saying_where(out: Path, data: str | None) -> Iterator[None]:
    """Add to a refusal that images may have moved, where a folder's are not there and no `data` says where they are."""
    try:
        yield
    except BadRequest as error:
        kind = "" if data is not None else kind_of_lost_images(out)
        if kind:
            error.add_note(f"if the images have moved: {typed('resume', out, '--data', f'{kind}:NEW')}")
        raise


def kind_of_lost_images(out: Path) -> str:
    """Return folder, csv or hf where a folder began with such images and they are not there now; else nothing."""
    with suppress(BadRequest, OSError, ValueError):
        arm = read_request(out).arms[-1]
        config = config_of(dict(arm.options), out)
        kind, _, place = config.options.data.partition(":")
        before = read_json(out / "environment.json").get("data")
        columns = getattr(config.stream, "columns", Columns())
        own = bool(place) and kind in ("folder", "csv", "hf")
        if own and before is not None and before != file_hash("data", config.options.data, columns):
            return kind
    return ""


def begun(place: Path) -> bool:
    """Return whether a folder notes what it began with."""
    return (place / "environment.json").is_file()
