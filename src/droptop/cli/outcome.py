"""Print the outcome of a run or comparison: what the plain arm does, the effect, what to try next."""

from pathlib import Path
from typing import Any

from droptop.cli.report import command
from droptop.errors import typed
from droptop.report import sentences, tables
from droptop.report.compare_table import compare_table
from droptop.report.diagnosis_text import diagnosis_lines
from droptop.report.groups import group_lines
from droptop.report.next_steps import Facts, next_steps
from droptop.results.diagnosis import diagnose
from droptop.runs.compared import read_costs
from droptop.runs.folder import fewest_steps, read_request
from droptop.system.terminal import Console


def print_outcome(result: dict[str, Any], out: Path, console: Console) -> None:
    """Print a summary or a comparison, which a folder holds."""
    first, again = read_request(out).arms[0], command(out)
    steps_of_task = fewest_steps(first.path, first.seeds[0])
    if "effects" in result:  # a comparison's
        comparison = sentences.readable(result)
        facts = Facts(out, again, first.options, result["diagnosis"], comparison, steps_of_task)
        print_lines(diagnosis_lines(facts.diagnosis, comparison["arms"][first.name]), console)
        console.print(compare_table(comparison, console.width))
        if costs := read_costs(out):
            console.print(tables.cost_table(costs))
        print_lines([sentences.headline(comparison), *sentences.answer(comparison)], console)
    else:
        facts = Facts(out, again, first.options, diagnose(first.name, result), steps=steps_of_task)
        print_lines(diagnosis_lines(facts.diagnosis, result), console)
        console.print(tables.run_table(result))
    print_lines(group_lines(result["arms"] if "effects" in result else {result["debias"]: result}), console)
    if steps := next_steps(facts):
        print_lines(["what to try next"], console)
        for step in steps:
            print_lines([f"  {step.why}:"], console)
            console.print(f"    {step.command}", soft_wrap=True)
    pictures = f", pictures in {out / 'figures'}" if (out / "figures").is_dir() else ""
    said = f"results in {out}{pictures}; {typed('report', out)} makes one page of them"
    console.print(said, soft_wrap=True)


def print_lines(lines: list[str], console: Console) -> None:
    """Print sentences, wrapped between words where there is an edge to wrap at."""
    for line in lines:
        console.print(line, soft_wrap=not console.is_terminal)
