"""Print as CSV whether a verdict changes when every arm has its own best options.

    cd benchmarks/h200
    python ../tuned/effects.py tuned-tiny-imagenet9-er.json robust-er-tiny.csv > tuned-tiny.csv

Takes pairs of files: compare.json of `droptop compare --tune`, and the table of benchmarks/robust/effects.py with the
same method and stream, whose arms all have plain learning's options. A row per arm and test set: A_avg, what tuning
chose, what that reaches on held-out images, and both verdicts; the untuned ones are of other seeds.

    python benchmarks/tuned/effects.py --presets benchmarks/h200/tuned-tiny-imagenet9-er.json ...

prints the entries of droptop/runs/tuned_presets.py: what tuning chose for the plain arm.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

from droptop.options import NO_DEBIAS, name_of
from droptop.results.statistics import estimate, verdict

FIGURE, PAGE = "A_avg", "docs/evidence/tuned.md"
PARTS = ("diff", "low", "high", "p", "p_holm")
Row = dict[str, Any]


def read(file: str) -> dict[str, Any]:
    """Return what compare.json has; refuse a comparison whose arms were not tuned."""
    comparison: dict[str, Any] = json.loads(Path(file).read_text())
    if not comparison.get("tuning"):
        sys.exit(f"{file}: its arms were not tuned")
    return comparison


def options_of(comparison: dict[str, Any], arm: str) -> dict[str, Any]:
    """Return what tuning chose for an arm, by the options' names, to three digits."""
    settings = comparison["tuning"]["arms"][arm]["settings"]
    return {
        name_of(path): float(f"{value:.3g}") if isinstance(value, float) else value for path, value in settings.items()
    }


def tuned_rows(comparison: dict[str, Any]) -> list[Row]:
    """Return a row per arm and test set, of the plain arm without differences."""
    rows = []
    for arm, of_arm in comparison["arms"].items():
        chosen = options_of(comparison, arm)
        held_out = comparison["tuning"]["arms"][arm]["confirmed"]
        known = {"method": of_arm["method"], "arm": arm, "lr": chosen.pop("lr", None)}
        known["further"] = ", ".join(f"{name} {value}" for name, value in chosen.items())
        known |= {f"held-out {part}": held_out[part] for part in ("mean", "error")}
        for test, figures in of_arm["tests"].items():
            mean, error, n = estimate(figures[FIGURE])
            row = known | {"test": test, "n": n, "mean": mean, "error": error} | dict.fromkeys(PARTS)
            if (effect := comparison["effects"].get(arm, {}).get(test, {}).get(FIGURE)) is not None:
                low, high = effect["ci95"] or (None, None)
                row |= {"low": low, "high": high} | {part: effect.get(part) for part in ("diff", "p", "p_holm")}
            rows.append(row | {"verdict": said(row)})
    return rows


def untuned(table: str, method: str) -> dict[tuple[str, str], Row]:
    """Return by arm and test set what arms with plain learning's options change."""
    with Path(table).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == method]
    numbers = [{name: float(row[name]) if row[name] else None for name in (*PARTS, "n")} for row in rows]
    return {(row["arm"], row["test"]): of_row for row, of_row in zip(rows, numbers)}


def said(row: Row) -> str:
    """Return the verdict of a row; nothing where there is no difference."""
    if row["diff"] is None:
        return ""
    return verdict(FIGURE, {"n": row["n"], "ci95": None} | {name: row[name] for name in ("diff", "p", "p_holm")})


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--presets"]:
        for comparison in map(read, arguments[1:]):
            plain = comparison["arms"][NO_DEBIAS]
            entry = (
                f'("{plain["method"]}", "{plain["data"]}"): TunedPreset({options_of(comparison, NO_DEBIAS)}, "{PAGE}")'
            )
            print(f"    {entry},".replace("'", '"'))
        return
    rows = []
    for file, table in zip(arguments[::2], arguments[1::2], strict=True):
        comparison = read(file)
        for row in tuned_rows(comparison):
            before = untuned(table, row["method"])
            other = before.get((row["arm"], row["test"]), dict.fromkeys((*PARTS, "n")))
            row |= {f"untuned {name}": other[name] for name in (*PARTS, "n")} | {"verdict untuned": said(other)}
            rows.append(row)
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
