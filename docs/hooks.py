"""What the pages take from the code instead of repeating it.

    [FILE](../FILE "include")     a Markdown file of the repository, its title left out and its links mended
    [FILE](../FILE "code")        a Python file of the repository, as a block; tests run these files
    <!-- options: METHOD -->      every option of a method on the default stream, from the dataclasses
    <!-- streams -->              every stream by name
    <!-- usage -->                what `droptop --help` prints

Where the pages are not built, as on GitHub, the first two are links to the files.
"""

import ast
import dataclasses
import inspect
import os
import re
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
HERE = {"REPRODUCTION.md": "docs/measured.md", "README.md": "docs/index.md"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    taken = re.sub(r'\[[^]]+\]\(\.\./(\S+) "(include|code)"\)', lambda found: globals()[found[2]](found[1]), markdown)
    if page.file.src_uri.startswith("evidence/"):
        taken = mended(taken, "docs/evidence", "docs/evidence")
    return re.sub(
        r"<!-- (options|streams|usage):? ?(\S*) -->",
        lambda found: globals()[found[1]](*filter(None, [found[2]])),
        taken,
    )


def include(name: str) -> str:
    """A file's text below its title, its links mended."""
    return mended((REPOSITORY / name).read_text().split("\n", 1)[1], str(Path(name).parent), "docs")


def mended(text: str, folder: str, page: str) -> str:
    """Points the links of a text in one folder at pages, seen from another folder; those to other files are named."""

    def mend(found: re.Match[str]) -> str:
        words, target, place = found.groups("")
        path = (REPOSITORY / folder / target).resolve().relative_to(REPOSITORY).as_posix()
        path = HERE.get(path, path)
        return f"[{words}]({os.path.relpath(path, page)}{place})" if path.startswith("docs/") else f"{words} (`{path}`)"

    return re.sub(r"(?<!!)\[([^]]+)\]\((?!http|#)([^)#]+)(#[^)]*)?\)", mend, text)


def code(name: str) -> str:
    return f"```python\n{(REPOSITORY / name).read_text()}```"


def options(method: str) -> str:
    """A table a section of the configuration: flag, default, what it does."""
    from droptop import configure

    config = configure("fashion-sticker", method, **({"weights": "random"} if method in ("l2p", "dualprompt") else {}))
    sections = {
        "What is run": config.options,
        "Stream": config.stream,
        "Net": config.net,
        "Learner": config.learner,
        "Debiasing": config.droptop,
        "Intensity": config.droptop.intensity,
    }
    tables = []
    for title, section in sections.items():
        about = docstrings(type(section))
        values = {field.name: getattr(section, field.name) for field in dataclasses.fields(section)}
        rows = [
            f"| `--{name.replace('_', '-')}` | {shown(value)} | {about[name]} |"
            for name, value in values.items()
            if not dataclasses.is_dataclass(value)
        ]
        tables.append(f"### {title}\n\n| option | default here | |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(tables)


def docstrings(kind: type) -> dict[str, str]:
    """The string under each field of a dataclass and of those that it extends."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body
        for field, string in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(string, ast.Expr):
                found[field.target.id] = " ".join(inspect.cleandoc(string.value.value).split())
    return found


def shown(value: Any) -> str:
    return "" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def streams() -> str:
    from droptop.streams import known_names

    return "| stream | |\n|---|---|\n" + "\n".join(f"| `{name}` | {about} |" for name, about in known_names().items())


def usage() -> str:
    from droptop.cli.main import USAGE

    return f"```text\n{USAGE}```"
