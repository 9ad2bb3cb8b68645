"""The lowest versions that pyproject.toml promises, as pins for pip: python .ci/lowest.py > lowest.txt"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
for bound in project["dependencies"]:
    print(re.sub(r">=([\d.]+).*", r"==\1", bound))
