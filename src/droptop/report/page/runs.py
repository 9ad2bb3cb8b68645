"""The page of a run or a comparison, finished or not."""

from typing import Any

from droptop.report.page import groups, sections
from droptop.report.page.answer import describe_comparison, describe_run
from droptop.report.page.arms import Arm, leave_out_odd_ones, read_arm
from droptop.report.page.attention import attention_data
from droptop.report.page.content import Page
from droptop.report.tables import listed
from droptop.runs.compared import read_costs, unfit
from droptop.runs.findings import Findings
from droptop.runs.folder import Request
from droptop.system.short_names import short_name

PARTS = (
    sections.accuracy,
    groups.by_group,
    sections.matrices,
    sections.confusions,
    sections.forgotten,
    sections.intensities,
    sections.dropped_on_shortcut,
    sections.attended,
)


def page_of_runs(request: Request, again: str, config_text: str, environment: dict[str, Any]) -> Page:
    """Return the page of a run or a comparison, with what is measured so far."""
    arms = [read_arm(arm) for arm in request.arms]
    leave_out_odd_ones(arms)
    run = arms[-1].run
    kind = "run" if request.command == "run" else "comparison"
    methods = listed(list(dict.fromkeys(short_name(arm.run.method) for arm in arms)))
    on = f"{methods} on {short_name(run.data)}"
    page = Page(kind, on, "", [], again, config_text, environment)
    page.progress = progress(arms)
    done = [seed for seed in run.seeds if all(seed in arm.done for arm in arms)]
    if not done:
        page.headline = f"{on} has not come to a result yet."
    elif request.command == "run":
        describe_run(page, arms[0], done)
    else:
        describe_comparison(page, arms, done, read_costs(request.out), request.out)
    page.notes += [
        f"Curves over steps lack {arm.name} seed {number}, whose metrics.jsonl is damaged or gone."
        for arm in arms
        for number, seed in arm.seeds.items()
        if seed.result and not seed.lines
    ]
    page.sections = [section for part in PARTS if (section := part(arms, page.notes)) is not None]
    page.attention = attention_data({arm.name: arm.maps for arm in arms if arm.maps is not None}, page.notes)
    findings = Findings(request.out)
    for files in (files for arm in arms for files in arm.files):
        findings.add(files)
    page.unfit = [*findings.lines(), *unfit(request.out)]
    return page


def progress(arms: list[Arm]) -> str:
    """Return how far it is; empty once all seeds are done."""
    done, total = sum(len(arm.done) for arm in arms), sum(len(arm.run.seeds) for arm in arms)
    if done == total:
        return ""
    begun = [
        f"{arm.name} seed {number} is at step {seed.lines[-1]['step']}, in task {seed.lines[-1].get('task', 0) + 1}"
        for arm in arms
        for number, seed in arm.seeds.items()
        if seed.result is None and seed.lines
    ]
    return "; ".join([f"{done} of {total} seeds are done", *begun[:4]])
