"""Links to files that are no pages, such as benchmarks/index.csv, work on GitHub; in the built pages they are names.

What the pages hold of code and of other files is written into them by scripts/pages.py, so that they read the same on
GitHub.
"""

import os
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
HERE = {"REPRODUCTION.md": "docs/measured.md", "README.md": "docs/index.md"}  # files that are pages too
BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^]]+)\]\((?!http|#)([^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page as it is built; MkDocs calls this for every page."""
    return mended(markdown, f"docs/{Path(page.file.src_uri).parent}")


def mended(text: str, folder: str) -> str:
    """Return the text of a page in a folder, whose links lead to pages; other files are only named."""

    def mend(link: re.Match[str]) -> str:
        words, target, place = link.groups("")
        path = (REPOSITORY / folder / target).resolve().relative_to(REPOSITORY).as_posix()
        path = HERE.get(path, path)
        if path.startswith("docs/"):
            return f"[{words}]({os.path.relpath(path, folder)}{place})"
        return words if words.strip("`") == path else f"{words} (`{path}`)"

    return "".join(part if part.startswith("```") else LINK.sub(mend, part) for part in BLOCK.split(text))
