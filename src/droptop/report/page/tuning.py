"""The page of a tuning: the choice and how sure it is, what each option does, and every trial."""

from pathlib import Path
from typing import Any

import altair as alt

from droptop.options import name_of
from droptop.report.page import charts
from droptop.report.page.content import Chart, Page, Row, Section, Table
from droptop.report.tuning import COLUMNS, answer, progress, rows
from droptop.results.statistics import estimate
from droptop.runs.folder import TUNE
from droptop.sweeps.tuning.tune_json import FIGURE, in_words, lines_of, read_found, short
from droptop.system.short_names import short_name
from droptop.system.toml_files import without_seal

STATES = {"done": "to the end", "pruned": "ended early", "failed": "failed", "running": "not finished"}
ACROSS = 3


def page_of_tuning(folder: Path, again: str, environment: dict[str, Any]) -> Page:
    """Return the page of a tuning, with what is found so far."""
    found = read_found(folder)
    on = f"{short_name(found['method'])} on {short_name(found['data'])}"
    headline, *findings = answer(found)
    text = without_seal((folder / TUNE).read_text("utf-8", errors="replace"))
    page = Page("tuning", on, headline, findings, again, text, environment)
    page.unfit += lines_of(folder)
    if "chosen" in found:
        page.answer = answer_section(found)
        page.tables.append(Table("Confirmed", list(COLUMNS), rows(found), "Fresh seeds are the same for all settings."))
    else:
        page.progress = progress(found)
    if found.get("importance"):
        page.sections.append(importance_section(found["importance"]))
    if drawn := options_section(found):
        page.sections.append(drawn)
    page.tables.append(trials_table(found))
    return page


def answer_section(found: dict[str, Any]) -> Section:
    """Return what the best trials and the usual options reach on fresh seeds, a dot per seed."""
    ranked = sorted(found["confirmed"], key=lambda each: -each.mean)
    labels = {each.name: in_words(each.settings) for each in ranked}
    drawn: list[Row] = [
        [labels[each.name], seed, value] for each in ranked for seed, value in zip(found["fresh"], each.values)
    ]
    return Section(
        "answer",
        "On fresh seeds",
        f"{FIGURE} on held-out training images: a dot per seed, a bar at their mean. The best mean is the choice.",
        ["test", "seed", FIGURE],
        drawn,
        [Chart("Accuracy on fresh seeds, by settings", charts.accuracies(list(labels.values())))],
    )


def importance_section(importance: dict[str, float]) -> Section:
    """Return the share of each option in what sets trials apart, as bars."""
    names = [name_of(path) for path in importance]
    drawn: list[Row] = [[name, 100 * share] for name, share in zip(names, importance.values())]
    bars = charts.panel().mark_bar(color="var(--debiased)", height=charts.STRIP / 2)
    spec = bars.encode(
        y=alt.Y("option:N", sort=names, title=None, axis=alt.Axis(grid=False)),
        x=alt.X("percent:Q", title="percent of what sets trials apart", scale=alt.Scale(domain=[0, 100])),
        tooltip=["option:N", alt.Tooltip("percent:Q", format=".0f")],
    )
    return Section(
        "importance",
        "Which option matters",
        "By fANOVA (Hutter et al., 2014) of the trials that came to their end. It is a share of the spread within the "
        "space that was searched, not a gain.",
        ["option", "percent"],
        drawn,
        [Chart("Importance of each option", charts.finished(spec, 1.6 * charts.STRIP * len(names)))],
    )


def options_section(found: dict[str, Any]) -> Section | None:
    """Return what trials reached over each option's values; None while none has come to its end."""
    done = [trial for trial in found["trials"] if trial["state"] == "done"]
    if not done:
        return None
    drawn: list[Row] = [
        [name_of(path), trial["number"], value, short(value), trial["value"]]
        for trial in done
        for path, value in trial["settings"].items()
    ]
    shown = [
        Chart(f"Accuracy over {name_of(path)}", over_option(name_of(path), text))
        for path, text in found["over"].items()
    ]
    return Section(
        "options",
        "Accuracy over each option",
        "A dot per trial that came to its end. Others were ended early, below the median after half of the tasks.",
        ["option", "trial", "value", "shown", FIGURE],
        drawn,
        shown,
        across=min(len(shown), ACROSS),
    )


def over_option(name: str, text: str) -> dict[str, Any]:
    """Chart what trials reached over the values of one option: numbers on a scale, a list side by side."""
    kind = text.partition(":")[0]
    if kind in ("log", "lin", "int"):
        scale = alt.Scale(type="log" if kind == "log" else "linear", zero=False, nice=False, padding=12)
        across: Any = alt.X("value:Q", title=name, scale=scale, axis=alt.Axis(format="~g", grid=False, tickCount=5))
    else:
        across = alt.X("shown:N", title=name, axis=alt.Axis(grid=False, labelAngle=0))
    dots = charts.panel(option=name).mark_point(filled=True, size=55, opacity=0.7, color="var(--debiased)")
    spec = dots.encode(
        x=across,
        y=alt.Y(f"{FIGURE}:Q", title=f"{FIGURE}, percent", scale=alt.Scale(zero=False, padding=8)),
        tooltip=["trial:O", "shown:N", alt.Tooltip(f"{FIGURE}:Q", format=".1f")],
    )
    return charts.finished(spec, 210, name)


def trials_table(found: dict[str, Any]) -> Table:
    """Return every trial as text."""
    names = [name_of(path) for path in found["over"]]
    lines = [
        [
            str(trial["number"]),
            *(short(trial["settings"].get(path)) for path in found["over"]),
            "-" if trial["value"] is None else f"{trial['value']:.1f}",
            STATES.get(trial["state"], trial["state"]) + (f": {trial['why']}" if trial["why"] else ""),
        ]
        for trial in found["trials"]
    ]
    done = estimate(trial["value"] for trial in found["trials"])
    spread = "" if done.mean is None else f" Mean of those that came to the end: {done.mean:.1f}%."
    note = f"All of seed {found['seed']}, by {FIGURE} on held-out training images.{spread}"
    return Table("All trials", ["trial", *names, FIGURE, ""], lines, note)
