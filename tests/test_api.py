"""The main jobs as functions, in a file as people write it."""

import subprocess
import sys


def test_a_file_without_a_guard_is_told_so(tmp_path):
    """Seeds' processes import the file, and would begin the same run again."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import droptop\ndroptop.run('fashion', 'er', 'none', seeds=1, out='out', limit=32, width=4, memory=20)\n"
    )
    done = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert 'BadRequest: runs are started under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]
