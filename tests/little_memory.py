"""Read files in a process that may have little more memory than it has, and a minute of its processor."""

import subprocess
import sys

MEBIBYTES = 400  # more than a process has before it reads a file; what it reads would be gigabytes
LIMITED = """
import resource, sys
from pathlib import Path
{imports}
from droptop.errors import BadRequest
have = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (have + {mebibytes} * 2**20,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for path in map(Path, sys.argv[1:]):
    try:
        {read}
    except BadRequest as error:
        print(error)
    else:
        print(path, "is read")
"""


def refusals(imports, read, *paths, mebibytes=MEBIBYTES):
    """What a process of little memory says of each file: a line each."""
    code = LIMITED.format(imports=imports, read=read, mebibytes=mebibytes)
    done = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for line, path in zip(lines, paths):
        assert line.startswith(str(path)) or f" {path}" in line, line
    return [line.replace(str(path), "IT") for line, path in zip(lines, paths)]
