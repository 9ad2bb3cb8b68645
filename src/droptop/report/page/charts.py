"""Numbers as Vega-Lite specifications, by altair.

A specification names the columns of its section's rows and, where several panels share the rows, filters those of its
panel. Colours are names of CSS variables, for which the page puts in the colours of the reader's colour scheme. A
chart is as wide as its place on the page.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

ROWS = alt.NamedData("rows")
COLOURS = tuple(f"var(--{name})" for name in ("debiased", "third", "fourth", "fifth", "sixth", "seventh"))
STRIP = 22  # pixels per row, in a chart of rows


def panel(**values: Any) -> alt.Chart:
    """Return an empty chart of the rows that have these values in these columns."""
    chart = alt.Chart(ROWS)
    for column, value in values.items():
        chart = chart.transform_filter(alt.FieldEqualPredicate(field=column, equal=value))
    return chart


def colour_of(arm: str, arms: Sequence[str] = ()) -> str:
    """Return the colour of an arm among all arms, of which the plain one is "none"."""
    others = [name for name in arms if name != "none"]
    place = others.index(arm) if arm in others else 0
    return "var(--plain)" if arm == "none" else COLOURS[place % len(COLOURS)]


def arm_colour(arms: Sequence[str]) -> alt.Color:
    """Return a colouring by arm, without a legend: one key for all panels keeps them the same size."""
    return alt.Color(
        "arm:N", scale=alt.Scale(domain=list(arms), range=[colour_of(arm, arms) for arm in arms]), legend=None
    )


def effects(
    names: list[str], label: str = "test", title: str = "", edges: tuple[float, float] | None = None, **values: Any
) -> dict[str, Any]:
    """Chart differences with their 95% intervals, a row per test set or arm; the dot of a significant one is filled.

    `edges` are the lowest and highest values of panels that are to share a scale.
    """
    base = panel(**values).encode(y=alt.Y(f"{label}:N", sort=names, title=None, axis=alt.Axis(grid=False)))
    scale = alt.Scale(domain=[min(edges[0], 0), max(edges[1], 0)], nice=True) if edges else alt.Undefined
    tooltip = [
        alt.Tooltip(f"{label}:N", title="arm" if label == "arm" else "test set"),
        alt.Tooltip("diff:Q", format="+.2f"),
        alt.Tooltip("low:Q", format="+.2f"),
        alt.Tooltip("high:Q", format="+.2f"),
        alt.Tooltip("p:Q", format=".3g"),
        alt.Tooltip("verdict:N"),
    ]
    zero = alt.Chart(ROWS).mark_rule(color="var(--ink)", strokeDash=[3, 3]).encode(x=alt.datum(0))
    bar = base.mark_rule(strokeWidth=4, strokeCap="round", color="var(--debiased)", opacity=0.45).encode(
        x=alt.X(
            "low:Q",
            title="difference in points of A_avg",
            scale=scale,
            axis=alt.Axis(format="+.2~f", tickCount=4 if edges else 8),
        ),
        x2="high:Q",
    )
    fill = alt.condition(
        "datum.verdict === 'better' || datum.verdict === 'worse'",
        alt.value("var(--debiased)"),
        alt.value("var(--surface)"),
    )
    dot = base.mark_point(size=90, filled=True, stroke="var(--debiased)", strokeWidth=2, opacity=1).encode(
        x="diff:Q", fill=fill, tooltip=tooltip
    )
    return finished(alt.layer(zero, bar, dot), 1.6 * STRIP * len(names), title)


def accuracies(tests: list[str]) -> dict[str, Any]:
    """Chart A_avg of every seed and their mean, a row per test set."""
    base = panel().encode(y=alt.Y("test:N", sort=tests, title=None, axis=alt.Axis(grid=False)))
    dots = base.mark_point(filled=True, size=45, opacity=0.45, color="var(--debiased)").encode(
        x=alt.X("A_avg:Q", title="A_avg, percent", scale=alt.Scale(zero=False)),
        tooltip=["test:N", "seed:O", alt.Tooltip("A_avg:Q", format=".1f")],
    )
    mean = base.mark_tick(thickness=3, size=STRIP, color="var(--ink)").encode(x="mean(A_avg):Q")
    return finished(alt.layer(dots, mean), 1.6 * STRIP * len(tests))


def means(data: str, count: int, arms: list[str]) -> dict[str, Any]:
    """Chart means with their standard errors, on one stream; `count` is the number of methods times test sets."""
    base = panel(data=data).encode(
        y=alt.Y("row:N", sort=None, title=None, axis=alt.Axis(grid=False)),
        yOffset=alt.YOffset("arm:N", sort=arms),
        color=arm_colour(arms),
    )
    bar = base.mark_rule(strokeWidth=3, strokeCap="round", opacity=0.45).encode(
        x=alt.X("low:Q", title="A_avg, percent", scale=alt.Scale(zero=False)), x2="high:Q"
    )
    dot = base.mark_point(size=60, filled=True, opacity=1).encode(
        x="mean:Q",
        tooltip=["row:N", "arm:N", alt.Tooltip("mean:Q", format=".1f"), alt.Tooltip("error:Q", format=".1f"), "n:Q"],
    )
    return finished(alt.layer(bar, dot), 0.7 * STRIP * count * len(arms), data)


def groups(test: str, column: str, names: list[str], arms: list[str], edges: tuple[float, float]) -> dict[str, Any]:
    """Chart the accuracy of every group of a column with its standard error, a row per group.

    `edges` are the lowest and highest values of all panels, which share a scale.
    """
    base = panel(test=test, column=column).encode(
        y=alt.Y("group:N", sort=names, title=None, axis=alt.Axis(grid=False)),
        yOffset=alt.YOffset("arm:N", sort=arms),
        color=arm_colour(arms),
    )
    bar = base.mark_rule(strokeWidth=3, strokeCap="round", opacity=0.45).encode(
        x=alt.X("low:Q", title="accuracy, percent", scale=alt.Scale(domain=edges, nice=True)), x2="high:Q"
    )
    dot = base.mark_point(size=60, filled=True, opacity=1).encode(
        x="mean:Q",
        tooltip=["group:N", "arm:N", alt.Tooltip("mean:Q", format=".1f"), alt.Tooltip("error:Q", format=".1f"), "n:Q"],
    )
    return finished(alt.layer(bar, dot), 0.8 * STRIP * len(names) * len(arms), f"{test}, by {column}")


def over_option(
    name: str, contents: list[float], arms: list[str], logarithmic: bool, title: str, **values: Any
) -> dict[str, Any]:
    """Chart the accuracy over the values of an option, with a bar of one standard error either way."""
    scale = alt.Scale(type="log", nice=False, padding=12) if logarithmic else alt.Scale(zero=False, padding=12)
    axis = alt.Axis(values=contents, format="~g", grid=False, labelOverlap=True)
    base = panel(**values).encode(x=alt.X("value:Q", title=name, scale=scale, axis=axis), color=arm_colour(arms))
    bar = base.mark_rule(strokeWidth=3, strokeCap="round", opacity=0.45).encode(
        y=alt.Y("low:Q", title="A_avg, percent", scale=alt.Scale(zero=False, padding=8)), y2="high:Q"
    )
    line = base.mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2).encode(
        y="mean:Q",
        tooltip=[
            "arm:N",
            alt.Tooltip("value:Q", title=name, format="~g"),
            *(alt.Tooltip(f"{number}:Q", format=".1f") for number in ("mean", "error")),
            "n:Q",
        ],
    )
    return finished(alt.layer(bar, line), 210, title)


def curves(test: str, arms: list[str], tasks: int, lowest: float, highest: float) -> dict[str, Any]:
    """Chart the accuracy after each task, with a band of one standard error."""
    base = panel(test=test).encode(
        x=alt.X(
            "task:Q",
            title="after task",
            scale=alt.Scale(domain=[1, max(tasks, 2)]),
            axis=alt.Axis(values=list(range(1, tasks + 1)), format="d", grid=False),
        ),
        color=arm_colour(arms),
    )
    scale = alt.Scale(domain=[lowest, highest], zero=False, nice=True)
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title="accuracy, percent", scale=scale), y2="high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=2).encode(
        y=alt.Y("mean:Q", scale=scale),
        tooltip=["arm:N", "task:Q", alt.Tooltip("mean:Q", format=".1f"), alt.Tooltip("error:Q", format=".1f"), "n:Q"],
    )
    return finished(alt.layer(band, line), 210, test)


def matrix(title: str, across: alt.X, down: alt.Y, text: bool, rows: int, **values: Any) -> dict[str, Any]:
    """Chart percentages as a grid of cells, with numbers in them where `text` is true."""
    base = panel(**values).encode(x=across, y=down)
    ramp = alt.Scale(domain=[0, 100], range=["var(--ramp-low)", "var(--ramp-high)"])
    cells = base.mark_rect(stroke="var(--surface)", strokeWidth=1 if text else 0.3).encode(
        color=alt.Color("percent:Q", scale=ramp, legend=None),
        tooltip=[across.shorthand, down.shorthand, alt.Tooltip("percent:Q", format=".1f")],
    )
    layers: list[Any] = [cells]
    if text:
        ink = alt.condition("datum.percent > 50", alt.value("var(--on-high)"), alt.value("var(--on-low)"))
        layers.append(base.mark_text(fontSize=10).encode(text=alt.Text("percent:Q", format=".0f"), color=ink))
    return finished(alt.layer(*layers), max(140, min(26 * rows, 420)), title)


def differences(title: str, cues: list[str], arms: list[str], limit: float, **values: Any) -> dict[str, Any]:
    """Chart differences as a grid of cells, a row per cue and a column per arm; `limit` has the strongest colour."""
    base = panel(**values).encode(
        x=alt.X("arm:N", sort=arms, title=None, axis=alt.Axis(labelAngle=0)), y=alt.Y("cue:N", sort=cues, title=None)
    )
    scale = alt.Scale(
        domain=[-limit, 0, limit], range=["var(--fifth)", "var(--surface)", "var(--debiased)"], interpolate="rgb"
    )
    tooltip = ["cue:N", "arm:N", *(alt.Tooltip(f"{name}:Q", format="+.2f") for name in ("diff", "low", "high"))]
    cells = base.mark_rect(stroke="var(--line)").encode(
        color=alt.Color("diff:Q", scale=scale, legend=None),
        tooltip=[*tooltip, alt.Tooltip("p:Q", format=".3g"), "verdict:N", "n:Q"],
    )
    text = base.mark_text(fontSize=12, dy=-6, color="var(--ink)").encode(text=alt.Text("diff:Q", format="+.1f"))
    interval = base.mark_text(fontSize=9, dy=8, color="var(--ink)").encode(text="interval:N")
    return finished(alt.layer(cells, text, interval), 1.9 * STRIP * len(cues), title)


def accuracy_matrix(arm: str, test: str, tasks: int) -> dict[str, Any]:
    """Chart the accuracy after each task on each task so far."""
    return matrix(
        f"{arm}: {test}",
        alt.X("on:O", title="accuracy on task", axis=alt.Axis(labelAngle=0)),
        alt.Y("after:O", title="after task"),
        tasks <= 10,
        tasks,
        arm=arm,
        test=test,
    )


def confusion_matrix(arm: str, test: str, names: list[str]) -> dict[str, Any]:
    """Chart how often each class, or task, is taken for each other."""
    return matrix(
        f"{arm}: {test}",
        alt.X("predicted:N", sort=names, title="taken for"),
        alt.Y("true:N", sort=names, title=None),
        len(names) <= 12,
        len(names),
        arm=arm,
        test=test,
    )


def forgetting(test: str, arms: list[str], lowest: float, highest: float) -> dict[str, Any]:
    """Chart the points lost on each task since its best accuracy, a bar per arm."""
    base = panel(test=test).encode(
        x=alt.X("task:O", title="task", axis=alt.Axis(labelAngle=0)), xOffset=alt.XOffset("arm:N", sort=arms)
    )
    scale = alt.Scale(domain=[min(lowest, 0), max(highest, 0)], nice=True)
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        y=alt.Y("mean:Q", title="points forgotten", scale=scale),
        color=arm_colour(arms),
        tooltip=["arm:N", "task:O", alt.Tooltip("mean:Q", format=".1f"), alt.Tooltip("error:Q", format=".1f")],
    )
    errors = base.mark_rule(color="var(--ink)", opacity=0.6).encode(y="low:Q", y2="high:Q")
    return finished(alt.layer(bars, errors), 190, test)


def kappa(names: list[str], lowest: float, gamma: float, decided: bool) -> dict[str, Any]:
    """Chart kappa' as a strip per class, with a mark at every decision that moved it."""
    step, size = (STRIP, 11) if len(names) <= 20 else (10, 8)
    base = panel().encode(y=alt.Y("class:N", sort=names, title=None, axis=alt.Axis(grid=False, labelFontSize=size)))
    # The ramp begins below the lowest value, which would otherwise have the colour of the page.
    ramp = alt.Scale(
        domain=[max(0.0, 2 * lowest - gamma) if lowest < gamma else 0.0, gamma],
        range=["var(--ramp-low)", "var(--ramp-high)"],
    )
    strips = base.mark_bar(height=alt.RelativeBandSize(0.7)).encode(
        x=over_steps(),
        x2="until:Q",
        color=alt.Color("kappa:Q", scale=ramp, title="percent", legend=alt.Legend(orient="top", gradientLength=140)),
        tooltip=["class:N", "step:Q", "until:Q", alt.Tooltip("kappa:Q", format=".2f"), "decision:N"],
    )
    if not decided:
        return finished(strips, len(names) * step)
    shape = alt.Shape(
        "decision:N",
        scale=alt.Scale(domain=["up", "down"], range=["triangle-up", "triangle-down"]),
        legend=alt.Legend(title="decided", orient="top"),
    )
    marks = (
        base.transform_filter("datum.decision !== ''")
        .mark_point(
            size=3 * step, filled=True, color="var(--debiased)", stroke="var(--surface)", strokeWidth=1, opacity=1
        )
        .encode(x="step:Q", shape=shape)
    )
    return finished(alt.layer(strips, marks), len(names) * step)


def lines(series: dict[str, str], title: str, few: bool = False) -> dict[str, Any]:
    """Chart curves over steps, in colours by name; where values are `few`, with a dot per value."""
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=list(series), range=list(series.values())),
        legend=alt.Legend(title=None, orient="top", labelLimit=0, columns=2),
    )
    chart = (
        panel()
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=40, filled=True) if few else False)
        .encode(
            x=over_steps(),
            y=alt.Y("percent:Q", title=title),
            color=colour,
            tooltip=["series:N", "step:Q", alt.Tooltip("percent:Q", format=".1f")],
        )
    )
    return finished(chart, 210)


def over_steps() -> alt.X:
    """Return the axis of training steps."""
    return alt.X("step:Q", title="step", scale=alt.Scale(nice=False), axis=alt.Axis(grid=False, tickCount=8))


def finished(chart: Any, height: Any, title: str = "") -> dict[str, Any]:
    """Return a chart as a specification, as wide as its place on the page."""
    heading = {"title": alt.TitleParams(title)} if title else {}
    spec: dict[str, Any] = chart.properties(width="container", height=height, **heading).to_dict()
    del spec["config"]  # the page's own
    return spec
