"""The page of names that somebody may have thought of, without a run."""

import numpy as np

from droptop.report.next_steps import Step
from droptop.report.page import charts
from droptop.report.page.attention import attention_data
from droptop.report.page.content import Chart, Page, Section, Table
from droptop.runs.records import Maps, Moment

SIZE = 25  # names
IMAGES, LABELS = np.zeros((SIZE, 8, 8, 3), np.uint8), np.arange(SIZE)
MOMENT = Moment(1, 0, np.zeros((SIZE, 2, 2), np.float32), None)


def page_of(many):
    """A page of 25 names, each of which stands wherever one may: in text, in tables, in charts, at pictures."""
    section = Section(
        "accuracy",
        many[0],
        many[1],
        ["test", "arm", "diff", "low", "high", "p", "verdict", "true", "predicted", "percent"],
        [[name, name, -1.0, -2.0, -0.5, 0.01, many[2], name, many[3], 50.0] for name in many],
        [
            Chart(many[3], charts.effects(many, "arm", many[4])),
            Chart(many[5], charts.confusion_matrix(many[6], many[6], many)),
        ],
        key={name: charts.colour_of(name, many) for name in many},
    )
    maps = attention_data({name: Maps(IMAGES, many, LABELS, None, [MOMENT]) for name in many[:2]}, [])
    return Page(
        many[8],
        many[9],
        many[10],
        many[11:13],
        many[13],
        many[14],
        {many[15]: many[16], "other": [many[17]]},
        diagnosis=many[18:20],
        steps=[Step(many[20], many[21])],
        progress=many[22],
        sections=[section],
        tables=[Table(many[23], many, [many, many], many[24])],
        attention=maps,
        notes=many,
    )
