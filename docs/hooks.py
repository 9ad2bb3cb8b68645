"""Fill the pages with what the code says, instead of repeating it there.

    [FILE](../FILE "include")     a Markdown file of the repository, its title left out and its links mended
    [FILE](../FILE "code")        a Python file of the repository, as a block; tests run these files
    <!-- options: METHOD -->      every option of a method on the default stream and of debiasers, from the dataclasses
    <!-- usage -->                what `droptop --help` prints

Where the pages are not built, as on GitHub, the first two are links to the files.
"""

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
HERE = {"REPRODUCTION.md": "docs/measured.md", "README.md": "docs/index.md"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page with its links and comments filled; MkDocs calls this for every page."""

    def file(link: re.Match[str]) -> str:
        return globals()[link[2]](link[1])

    def table(comment: re.Match[str]) -> str:
        return globals()[comment[1]](*filter(None, [comment[2]]))

    markdown = re.sub(r'\[[^]]+\]\(\.\./(\S+) "(include|code)"\)', file, markdown)
    if page.file.src_uri.startswith("evidence/"):
        markdown = mended(markdown, "docs/evidence", "docs/evidence")
    return re.sub(r"<!-- (options|usage):? ?(\S*) -->", table, markdown)


def include(name: str) -> str:
    """Return a file's text below its title, with its links mended."""
    return mended((REPOSITORY / name).read_text().split("\n", 1)[1], str(Path(name).parent), "docs")


def mended(text: str, folder: str, page: str) -> str:
    """Return a text of one folder with its links as seen from another; a file without a page is only named."""

    def mend(link: re.Match[str]) -> str:
        words, target, place = link.groups("")
        path = (REPOSITORY / folder / target).resolve().relative_to(REPOSITORY).as_posix()
        path = HERE.get(path, path)
        return f"[{words}]({os.path.relpath(path, page)}{place})" if path.startswith("docs/") else f"{words} (`{path}`)"

    return re.sub(r"(?<!!)\[([^]]+)\]\((?!http|#)([^)#]+)(#[^)]*)?\)", mend, text)


def code(name: str) -> str:
    """Return a file's text as a block of Python."""
    return f"```python\n{(REPOSITORY / name).read_text()}```"


def options(method: str) -> str:
    """Return a table per section of the configuration: flag, default, help."""
    from droptop import configure
    from droptop.debias import MEMBERS

    config = configure("fashion-sticker", method, **({"weights": "random"} if method in ("l2p", "dualprompt") else {}))
    sections = {
        "What is run": config.options,
        "Stream": config.stream,
        "Net": config.net,
        "Learner": config.learner,
        "Debiasing": config.droptop,
        "Intensity": config.droptop.intensity,
    }
    others = {kind.__name__: (name, kind.config_type()) for name, kind in MEMBERS.items() if name != "droptop"}
    tables = [options_table(title, section) for title, section in sections.items()]
    return "\n\n".join(
        [*tables, *(options_table(title, section, f"{name}.") for title, (name, section) in others.items())]
    )


def options_table(title: str, section: Any, prefix: str = "") -> str:
    """Return a table of a section's options, whose flags begin with a prefix."""
    from droptop.options import help_of_fields

    about = help_of_fields(type(section))
    values = {field.name: getattr(section, field.name) for field in dataclasses.fields(section)}
    rows = [
        f"| `--{prefix}{name.replace('_', '-')}` | {shown(value)} | {about[name]} |"
        for name, value in values.items()
        if not dataclasses.is_dataclass(value)
    ]
    return f"### {title}\n\n| option | default here | |\n|---|---|---|\n" + "\n".join(rows)


def shown(value: Any) -> str:
    """Return a default as it stands in a table."""
    return "" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def usage() -> str:
    """Return what `droptop --help` prints, as a block."""
    from droptop.cli.main import USAGE

    return f"```text\n{USAGE}```"
