"""Data sets of the Hugging Face hub, and folders of parquet or arrow files, opened by the library `datasets`.

    hf:OWNER/NAME             once it is in the library's cache, no network is needed
    hf:OWNER/NAME:CONFIG      where it has several configurations
    hf:FOLDER                 what `to_parquet` or `save_to_disk` wrote, or the files of a repository

The library is imported where it is used, since it is an extra: pip install 'droptop[hub]'.
"""

import hashlib
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from droptop.data.parquet_files import check_folder
from droptop.errors import BadRequest, DownloadFailed
from droptop.system.files import sha256

REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w.-]+")
SECONDS = 10.0  # to wait for the hub
ELSEWHERE = "a folder with its files works without a network: hf:FOLDER"


class HubName(NamedTuple):
    """Hold the parts of a name."""

    place: str  # OWNER/NAME, or a folder
    config: str | None


class HubData(NamedTuple):
    """Hold an opened data set."""

    splits: dict[str, Any]  # of the library, by name
    version: str  # by which a run knows it: the commit of a repository, or a hash of the files of a folder


def parts_of(name: str) -> HubName:
    """Return the parts of a name, an absolute path for a folder; a folder wins over a repository of the same name."""
    head, _, last = name.rpartition(":")
    for place, config in ((name, None), (head, last)):
        if place and (path := Path(place).expanduser()).is_dir():
            return HubName(str(path.absolute()), config)
    place, _, last = name.partition(":")
    return HubName(place, last or None)


def open_data(name: str, revision: str | None = None) -> HubData:
    """Return the data set of a name, from the library's cache or else from the hub; refuse one that cannot be had."""
    place, config = parts_of(name)
    with quiet(imported(name)):
        if Path(place).is_dir():
            if revision is not None:
                raise BadRequest(f"--revision is for repositories of the hub, and {place} is a folder")
            return HubData(in_folder(place, config), f"fingerprint {hash_of(Path(place))}")
        if not REPOSITORY.fullmatch(place):
            raise BadRequest(f"hf:{name}: hf: takes OWNER/NAME or an existing folder, not {place}")
        splits = in_cache(place, config, revision) or from_hub(place, config, revision)
    folder = Path(next(iter(splits.values())).cache_files[0]["filename"]).parent
    return HubData(splits, f"revision {folder.name}")  # by which the library names its folders


def imported(name: str) -> Any:
    """Return the library; refuse where it is not installed."""
    try:
        import datasets
    except ImportError:
        raise BadRequest(f"hf:{name} takes the library datasets: pip install 'droptop[hub]'") from None
    return datasets


@contextmanager
def quiet(library: Any) -> Iterator[None]:
    """Keep the library's notes to itself meanwhile, and its bars where nobody watches."""
    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub", "httpx")]
    levels, bars = [logger.level for logger in loggers], library.is_progress_bar_enabled()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    if not sys.stderr.isatty():
        library.disable_progress_bars()
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
        if bars:
            library.enable_progress_bars()


def one_line(error: BaseException) -> str:
    """Return what an error says as one line, its first hundred words or so."""
    text = " ".join(str(error).split())
    return (text[:300] + " ...") if len(text) > 300 else text or type(error).__name__


# -- A folder ---------------------------------------------------------------------------------------------------------


def in_folder(place: str, config: str | None) -> dict[str, Any]:
    """Return the splits in a folder; refuse one that the library cannot read."""
    import datasets

    folder = Path(place)
    try:
        if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
            saved = datasets.load_from_disk(place)
            return dict(saved) if isinstance(saved, datasets.DatasetDict) else {"train": saved}
        check_folder(folder)
        return dict(datasets.load_dataset(place, config))
    except Exception as error:  # of many types, by format
        raise BadRequest(f"hf:{place} cannot be opened: {one_line(error)}") from None


def hash_of(folder: Path) -> str:
    """Return the SHA-256 of the names and bytes of the files in a folder, hidden ones left out."""
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    digests = {}
    for name in files:
        if not any(part.startswith(".") for part in Path(name).parts):
            digests[name] = sha256(folder / name)
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


# -- A repository -----------------------------------------------------------------------------------------------------


def in_cache(place: str, config: str | None, revision: str | None) -> dict[str, Any] | None:
    """Return the splits of a repository that the library has in its cache, the latest ones; None where there are none.

    Refuse several configurations of which none is asked for or called default.
    """
    import datasets
    from datasets.naming import camelcase_to_snakecase
    from datasets.packaged_modules.cache.cache import Cache

    owner, name = place.split("/")
    home = Path(datasets.config.HF_DATASETS_CACHE).expanduser() / f"{owner}___{camelcase_to_snakecase(name)}"
    there = [path for path in home.glob("*/*/*") if (path / "dataset_info.json").is_file()]  # CONFIG/VERSION/COMMIT
    there = [path for path in there if not path.name.endswith(".incomplete") and revision in (None, path.name)]
    configs = sorted({path.parent.parent.name for path in there})
    wanted = config or (configs[0] if len(configs) == 1 else "default")
    fitting = [path for path in there if path.parent.parent.name == wanted]
    if there and not fitting and config is None:
        raise BadRequest(f"hf:{place} has several configurations, {', '.join(configs)}: hf:{place}:{configs[0]} is one")
    if not fitting:
        return None
    latest = max(fitting, key=lambda path: path.stat().st_mtime)
    version, commit = latest.parts[-2:]
    try:
        return dict(
            Cache(repo_id=place, dataset_name=name, config_name=wanted, version=version, hash=commit).as_dataset()
        )
    except Exception as error:  # what is there is damaged
        raise BadRequest(f"hf:{place}: {latest} cannot be opened, remove it: {one_line(error)}") from None


def from_hub(place: str, config: str | None, revision: str | None) -> dict[str, Any]:
    """Return the splits of a repository, which is fetched; raise DownloadFailed where the hub cannot be reached."""
    import datasets
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:  # one question, which fails at once where there is no network; the library asks for half a minute
        commit = HfApi().dataset_info(place, revision=revision, timeout=SECONDS).sha
        return dict(datasets.load_dataset(place, config, revision=commit))
    except GatedRepoError:
        raise BadRequest(
            f"hf:{place} asks for your consent: give it on the repository's page, then `hf auth login`"
        ) from None
    except RepositoryNotFoundError:
        raise BadRequest(f"hf:{place} is neither a folder here nor a public data set of the hub") from None
    except RevisionNotFoundError:
        raise BadRequest(f"--revision takes a revision of {place}; {revision} is none") from None
    except OfflineModeIsEnabled:
        raise DownloadFailed(
            f"hf:{place} is not in the cache, and HF_HUB_OFFLINE keeps it from being fetched; {ELSEWHERE}"
        ) from None
    except ValueError as error:  # such as a configuration that is missing
        raise BadRequest(f"hf:{place}: {one_line(error)}; a configuration is named by hf:{place}:CONFIG") from None
    except Exception as error:  # of many types: the network, the disk, a format
        raise DownloadFailed(f"hf:{place} could not be fetched: {one_line(error)}; {ELSEWHERE}") from None
