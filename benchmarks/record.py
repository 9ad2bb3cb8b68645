"""Record what studies found: their seeds, the effects, and in benchmarks/index.csv how these were made.

    python benchmarks/record.py COMMIT benchmarks/stress/tiny.toml stress-tiny.csv

Takes the commit that ran, and of each study its TOML and what `droptop results STUDY --by ...,seed --export FILE`
wrote. Writes benchmarks/h200/seeds/FILE of each and, by the effects.py beside the first TOML, benchmarks/h200/FILE of
all together, named as the first; replaces these files and their rows of the index. Of studies on a CPU, the files are
in benchmarks/cpu. Then `make evidence` renders the pages.
"""

import csv
import datetime
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INDEX = "benchmarks/index.csv"
GPU, CPU = ("h200", "NVIDIA H200"), ("cpu", "CPU, 2 cores")
Row = dict[str, str]


def main(commit: str, *pairs: str) -> None:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    told, tables = list[Row](), list[str]()
    for toml, export in zip(pairs[::2], pairs[1::2], strict=True):
        text, by = Path(toml).read_text(), grouping(Path(export))
        asked = tomllib.loads(text)
        folder_of_data, machine = GPU if asked.get("device", "cpu").startswith("cuda") else CPU
        device = asked.get("precision", "one thread per seed")
        of_study = by_seed(Path(export), by)
        tables.append(f"benchmarks/{folder_of_data}/seeds/{Path(export).name}")
        (ROOT / tables[-1]).parent.mkdir(exist_ok=True)
        write(ROOT / tables[-1], of_study)
        sweep, folder = re.findall(r"^# +(droptop sweep \S+) --out (\S+)", text, re.MULTILINE)[0]
        made = f"droptop results {folder} --by {','.join(by)} --export FILE ({sweep})"
        how = {"rows": "", "machine": machine, "device": device, "commit": commit}
        told.append({"file": tables[-1], "command": made, "date": today, "seeds": seeds_of(of_study, by)} | how)
    script = f"{Path(pairs[0]).resolve().parent.relative_to(ROOT)}/effects.py"
    done = subprocess.run([sys.executable, script, *tables], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    effects, made = tables[0].replace("/seeds/", "/"), f"python {script} {' '.join(tables)}"
    (ROOT / effects).write_text(done.stdout)
    seeds = [f"{Path(row['file']).name}: {row['seeds']}" for row in told] if len(told) > 1 else [told[0]["seeds"]]
    told.insert(0, told[0] | {"file": effects, "command": made, "seeds": "; ".join(seeds)})
    into_index(told)
    print("\n".join(f"{row['file']}: seeds {row['seeds']}" for row in told))


def grouping(export: Path) -> list[str]:
    """Return what a table of `droptop results` is grouped by; refuse one that has no row per seed."""
    with export.open(newline="") as file:
        names = next(csv.reader(file))
    by = names[: names.index("test")]
    if "seed" not in by:
        sys.exit(f"{export} is not grouped by seed, but by {', '.join(by)}")
    return by


def by_seed(export: Path, by: Sequence[str]) -> list[Row]:
    """Return the rows of a table without what one seed does not have."""
    with export.open(newline="") as file:
        return [{name: row[name] for name in (*by, "test", "figure", "n", "mean")} for row in csv.DictReader(file)]


def seeds_of(rows: Iterable[Row], by: Sequence[str]) -> str:
    """Return the seeds of most groups of rows, and by name those of groups that have others."""
    names = [name for name in by if name != "seed"]
    groups: dict[tuple[str, ...], set[int]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), set()).add(int(row["seed"]))
    spans = {group: span(seeds) for group, seeds in groups.items()}
    usual = Counter(spans.values()).most_common(1)[0][0]
    varied = [at for at in range(len(names)) if len({group[at] for group in groups}) > 1]
    others = [
        f"{' '.join(in_words(names[at], group[at]) for at in varied)}: {seeds}"
        for group, seeds in spans.items()
        if seeds != usual
    ]
    return "; ".join([usual, *others])


def in_words(name: str, value: str) -> str:
    """Return an option's value as text: a name as it is, a number behind what it is of."""
    return value if value[:1].isalpha() else f"{name} {value}"


def span(seeds: Iterable[int]) -> str:
    """Return numbers as text, such as "100 to 104, 107"."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def into_index(told: Sequence[Row]) -> None:
    """Replace the rows of some files in the index, or add them."""
    with (ROOT / INDEX).open(newline="") as file:
        kept = list(csv.DictReader(file))
    names, files = list(kept[0]), {row["file"] for row in told}
    new = [{name: row[name] for name in names} for row in told]
    write(ROOT / INDEX, [*(row for row in kept if row["file"] not in files), *new])


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
