"""The files of a seed, read so that nobody has to ask again whether they are what they should be."""

from pathlib import Path
from typing import Any

from droptop.results.checks import check_line, check_result
from droptop.runs.manifest import Manifest, Unfit, read_manifest
from droptop.system.json_files import parse_json, read_bytes

Lines = list[dict[str, Any]]  # of a metrics.jsonl


def lines_of(data: bytes) -> tuple[Lines, str]:
    """Return the lines that bytes of a metrics.jsonl have, up to the first that is damaged, and what is wrong there."""
    lines, shape = list[dict[str, Any]](), None
    for text in data.splitlines():
        try:
            line = parse_json(text)
            check_line(line)
            if "eval" in line or "task_end" in line:
                now = {test: len(next(iter(groups.values()))["n"]) for test, groups in line["eval"].items()}
                if now != (shape := shape or now):
                    raise ValueError("it has other test sets than the lines before")
        except (ValueError, KeyError) as error:
            return lines, str(error) or "it is damaged"
        lines.append(line)
    return lines, ""


def verified_result(folder: Path, seed: int, configuration: str | None = None) -> dict[str, Any] | None:
    """Return the result in a seed's folder, None where there is none; raise Unfit if it is not what was written.

    Raise Elsewhere if it is of another seed or, where that is given, of another configuration.
    """
    manifest = read_manifest(folder)
    result = checked_result(folder, manifest)
    if manifest is not None:
        manifest.check_seed(folder, seed, configuration=configuration)
    return result


def checked_result(folder: Path, manifest: Manifest | None, whole: bool = False) -> dict[str, Any] | None:
    """Return the result in a folder, None where there is none; raise Unfit if it is damaged or not the manifest's.

    A seed without a manifest is of an earlier version: then nobody can tell more than whether it looks like a result,
    as a `whole` one with all that pages show.
    """
    path = folder / "result.json"
    try:
        data = read_bytes(path)
        if manifest is not None:
            manifest.check(path, "result.json", data)
        result: dict[str, Any] = parse_json(data)
        check_result(result, whole)
        return result
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unfit(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Unfit(f"{path} is damaged: {error}") from None
