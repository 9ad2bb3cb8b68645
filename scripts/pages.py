"""Write the parts of docs/*.md that stand elsewhere already, in code or in other files, in place.

    python scripts/pages.py           writes the pages
    python scripts/pages.py --check   writes nothing, names the pages that are old, and exits 1

A page holds markers; what stands between a marker and `<!-- end -->` is written.

    <!-- usage -->                        what `droptop --help` prints
    <!-- options: METHOD -->              every option of a method on the default stream, and of all debiasers
    <!-- code: FILE -->                   a Python file of the repository; tests run these files
    <!-- include: FILE -->                a Markdown file of the repository below its title, its links mended
    <!-- api: NAME MEMBER MEMBER ... -->  a function or class of droptop: signature and docstring; of a class the
                                          members that are named, or all that are public
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from pages_api import described
from pages_tables import table

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs"
MARKER = re.compile(r"(<!-- (usage|options|code|include|api)(?:: (.+?))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)
HERE = {"REPRODUCTION.md": "docs/measured.md", "README.md": "docs/index.md"}  # files that are pages too


def main() -> int:
    old = []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        if (now := written(text)) != text:
            old.append(page)
            if "--check" not in sys.argv:
                page.write_text(now)
    if old and "--check" in sys.argv:
        print(f"old: {', '.join(str(page.relative_to(ROOT)) for page in old)}; make pages writes them anew")
        return 1
    return 0


def written(text: str) -> str:
    """Return the text of a page with its parts as they are now."""

    def part(marker: re.Match[str]) -> str:
        head, kind, what, _, end = marker.groups("")
        return f"{head}\n{globals()[kind](*what.split())}\n\n{end}"

    return MARKER.sub(part, text)


def usage() -> str:
    """Return what `droptop --help` prints, as a block."""
    from droptop.cli.main import USAGE

    return f"```text\n{USAGE}```"


def code(name: str) -> str:
    """Return a Python file as a block."""
    return f'```python title="{Path(name).name}"\n{(ROOT / name).read_text()}```'


def include(name: str) -> str:
    """Return a Markdown file below its title: without comments, its links as seen from docs/."""

    def mended(link: re.Match[str]) -> str:
        target, place = link.groups("")
        path = (ROOT / name).parent.joinpath(target).resolve().relative_to(ROOT).as_posix()
        return f"]({os.path.relpath(ROOT / HERE.get(path, path), PAGES)}{place})"

    text = re.sub(r"<!--.*?-->\n+", "", (ROOT / name).read_text().split("\n", 1)[1])
    return re.sub(r"\]\((?!http|#)([^)#]+)(#[^)]*)?\)", mended, text).strip()


def options(method: str) -> str:
    """Return a table per section of a configuration, and one per other debiaser: option, default, meaning."""
    from droptop import configure
    from droptop.debias import MEMBERS

    config = configure("fashion-sticker", method)
    parts: list[tuple[str, Any, str]] = [
        ("What is run", config.options, ""),
        ("Stream", config.stream, "stream."),
        ("Net", config.net, "net."),
        ("Learner", config.learner, "learner."),
    ]
    for name, kind in MEMBERS.items():
        settings = config.droptop if name == "droptop" else kind.config_type()
        parts.append((f"Debiasing: {name}", settings, f"{name}."))
    return "\n\n".join(table(*part) for part in parts)


def api(name: str, *members: str) -> str:
    """Return what a public name of droptop is: its signature, its docstring, its members."""
    return described(name, members)


if __name__ == "__main__":
    sys.exit(main())
