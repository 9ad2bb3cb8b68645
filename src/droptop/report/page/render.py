"""A folder -> one HTML file that needs nothing else: style, script, charts and pictures are in it."""

import json
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from droptop.data import image_cache as cache
from droptop.errors import BadRequest
from droptop.report.page.content import Page
from droptop.report.page.runs import page_of_runs
from droptop.report.page.study import page_of_study
from droptop.runs.folder import environments, read_request
from droptop.runs.requests import load
from droptop.system.files import write_atomic


def describe(folder: Path, again: str) -> Page:
    """What a run, a comparison or a study found; `again` is the command that makes it anew."""
    if (folder / "study.toml").is_file():
        runs = sorted(path.parent for path in (folder / "runs").glob("*/environment.json"))
        return page_of_study(folder, again, (folder / "study.toml").read_text("utf-8"), environment_of(runs))
    request = read_request(folder)
    text = (folder / "config.toml").read_text("utf-8")
    page = page_of_runs(request, again, text, environment_of([folder]))
    _, config = load(folder)
    if not all(map(config.matches_environment, environments(folder))):
        page.notes.append("config.toml was changed after the run began: neither it nor the command is what was run.")
    return page


def environment_of(runs: list[Path]) -> dict[str, Any]:
    """Where they ran, versions beside the rest; what was not the same everywhere has all of its values."""
    noted = [noted.pop("versions", {}) | noted for run in runs for noted in environments(run)]
    names = dict.fromkeys(name for each in noted for name in each if name != "asked")
    values = {name: list(dict.fromkeys(each.get(name) for each in noted)) for name in names}
    return {name: found[0] if len(found) == 1 else ", ".join(map(str, found)) for name, found in values.items()}


def render(page: Page, newest: str = "") -> str:
    """The page; with a version it asks whoever serves it for newer ones."""
    environment = Environment(
        loader=PackageLoader("droptop.report.page", "assets"),
        autoescape=True,
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
    return environment.get_template("page.html").render(
        page=page,
        version=newest,
        style=Markup((assets / "page.css").read_text()),
        script=Markup((assets / "page.js").read_text()),
        bundle=Markup(bundle()),
        data=in_script(data),
        maps=in_script(page.attention),
    )


def in_script(value: Any) -> Markup:
    """JSON that no text within can end or leave."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


@lru_cache
def bundle() -> str:
    """Vega, Vega-Lite and its embedding as one script. It takes seconds to put together, so that it is kept."""
    language = "_".join(altair.SCHEMA_VERSION.split(".")[:2])  # as vl-convert writes v6.4
    kept = cache.cache_folder() / f"vega-lite-{language}-{version('vl-convert-python')}.js"
    try:
        if text := kept.read_text():
            return text
    except OSError:
        pass
    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", language).replace("</script", "<\\/script")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(kept, text.encode())
    except OSError:
        pass  # it will be put together again
    return text


def write_report(folder: Path, out: Path, again: str) -> Path:
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not a folder")
    write_atomic(out, render(describe(folder, again)).encode())
    return out
