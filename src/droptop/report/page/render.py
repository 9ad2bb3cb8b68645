"""From a folder to one HTML file that needs nothing else: style, script, charts and pictures are in it."""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from droptop.errors import BadRequest
from droptop.escapes import in_script, readable
from droptop.report.page.content import Page
from droptop.report.page.runs import page_of_runs
from droptop.report.page.study import page_of_study
from droptop.report.page.tuning import page_of_tuning
from droptop.runs.folder import read_request
from droptop.runs.noted import environments, recorded_flags
from droptop.sweeps.tuning.tune_json import is_tuning
from droptop.system.cache_folder import cache_folder
from droptop.system.files import write_atomic
from droptop.system.toml_files import without_seal


def describe(folder: Path, again: str, by: Sequence[str] | None = None, against: str | None = None) -> Page:
    """Return the page of a run, a comparison, a study or a tuning; `again` is the command that makes the same again.

    A study's is grouped by the options in `by`, and its differences are to what `against` says.
    """
    if (folder / "study.toml").is_file():
        runs = sorted(path.parent for path in (folder / "runs").glob("*/environment.json"))
        return page_of_study(folder, again, text_of(folder / "study.toml"), environment_of(runs), by, against)
    if is_tuning(folder):
        runs = sorted(path.parent for path in (folder / "runs").glob("*/environment.json"))
        return page_of_tuning(folder, again, environment_of(runs))
    request = read_request(folder)
    text = text_of(folder / "config.toml")
    page = page_of_runs(request, again, text, environment_of([folder]))
    if config_was_changed(folder):
        page.notes.append("config.toml was changed after the run began: neither it nor the command is what was run.")
    return page


def text_of(path: Path) -> str:
    """Return what a file of options says, without the seal at its end."""
    return without_seal(path.read_text("utf-8", errors="replace"))


def config_was_changed(folder: Path) -> bool:
    """Return whether config.toml no longer says what the run began with."""
    if recorded_flags(folder) is not None:  # for this very file, when it was what the run began with
        return False
    from droptop.runs.requests import load  # this loads torch and every learner

    return not all(map(load(folder).matches_environment, environments(folder)))


def environment_of(runs: list[Path]) -> dict[str, Any]:
    """Return where some runs ran: versions and machine by name; where they differ, all values, separated by commas."""
    recorded = [noted.pop("versions", {}) | noted for run in runs for noted in environments(run)]
    names = dict.fromkeys(
        name for noted in recorded for name in noted if name not in ("asked", "flags", "flags_hold_for", "files")
    )
    by_name = {name: list(dict.fromkeys(noted.get(name) for noted in recorded)) for name in names}
    return {name: values[0] if len(values) == 1 else ", ".join(map(str, values)) for name, values in by_name.items()}


def render(page: Page, newest: str = "") -> str:
    """Return the page as HTML; one with a version asks its server for newer ones."""
    environment = Environment(
        loader=PackageLoader("droptop.report.page", "assets"),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else readable(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    assets = files("droptop.report.page") / "assets"
    sections = [section for section in (page.answer, *page.sections) if section is not None]
    data = {
        section.name: {
            "columns": section.columns,
            "rows": section.rows,
            "charts": [chart.spec for chart in section.charts],
        }
        for section in sections
    }
    scripts = [bundle(), (assets / "page.js").read_text("utf-8")]
    return environment.get_template("page.html").render(
        page=page,
        version=newest,
        policy=policy(scripts, served=bool(newest)),
        style=Markup((assets / "page.css").read_text("utf-8")),
        scripts=[Markup(script) for script in scripts],
        data=Markup(in_script(data)),
        maps=Markup(in_script(page.attention)),
    )


def policy(scripts: Sequence[str], served: bool) -> str:
    """Return the page's Content-Security-Policy: of all scripts these alone run, and none makes text into code.

    Nothing is asked of any network; a page that is served asks its server for newer ones. Styles are let in wherever
    they stand, since charts have some of their own: the worst that a name could do by one is to look odd.
    """
    hashes = [f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts]
    return "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src", *hashes]),
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
            *(["connect-src 'self'"] if served else []),
        ]
    )


@lru_cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script.

    It takes seconds to put together, so it is kept in the cache folder, by the versions that made it.
    """
    language = "_".join(altair.SCHEMA_VERSION.split(".")[:2])  # vl-convert writes v6.4.1 as v6_4
    kept = cache_folder() / f"vega-lite-{language}-{version('vl-convert-python')}.js"
    try:
        if text := kept.read_text():
            return text
    except OSError:
        pass
    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=language)
    text = text.replace("</script", "<\\/script")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(kept, text.encode())
    except OSError:
        pass  # the next report puts it together again
    return text


def write_report(folder: Path, out: Path, again: str) -> Path:
    """Write the page of a folder to a file; return its path; refuse what is not a folder."""
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not a folder")
    write_atomic(out, render(describe(folder, again)).encode())
    return out
