"""Results whose every name is one that somebody may have thought of."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from rich.table import Table

from droptop.cli import predict
from droptop.paper import tables as paper
from droptop.results.statistics import compare
from droptop.results.stress import CUE
from droptop.system.terminal import folded


def comparison(many):
    """Three arms, four test sets, one of which has groups, and a column of groups."""
    random, arms, tests = np.random.default_rng(0), ["none", *many[:2]], many[2:6]
    figure_names = ["A_avg", "A_last", "F_last", f"worst {many[6]}", f"gap {many[6]}", f"{many[6]}={many[7]}"]

    def summary(arm):
        return {
            "method": many[8],
            "data": f"folder:/a/{many[9]}",
            "debias": arm,
            "seeds": list(range(5)),
            "classes": many[10:],
            "tests": {
                test: {figure: (50 + 9 * random.normal(size=5)).tolist() for figure in figure_names}
                | {"A": [[90.0, 70.0]] * 5, "matrix": [[[90.0, None], [60.0, 70.0]]] * 5}
                for test in tests
            },
        }

    return compare({arm: summary(arm) for arm in arms})


def listing(many):
    table = Table(*many[:3], title=many[4], caption=many[5])
    for name in many:
        table.add_row(name, folded(name), name)
    return table


def row(many, place):
    numbers = {"n": 5, "mean": -3.0, "error": 1.0, "cells": 5, "pairs": 5, "diff": -1.5, "low": -2.0, "high": -1.0}
    named = dict.fromkeys(many[:3], many[3 + place])
    return named | {"test": many[5], "figure": many[6]} | numbers | {"p": 0.01, "p_holm": 0.02}


def bench_row(many):
    numbers = {"seeds": 1, "ms": 2.0, "ms_error": 0.1, "steps_per_second": 500.0, "shares": {many[3]: 50.0}}
    return {"method": many[0], "debias": many[1], "engine": many[2]} | numbers


def study(many):
    return [
        {"data": many[0], "method": many[1], CUE: cue, "debias": arm, "test": test, "seed": seed, "figure": "A_avg"}
        | {"value": 50.0 + 7 * seed + 9 * place + 20 * (test == "biased")}
        for cue in many[2:5]
        for place, arm in enumerate(("none", many[5]))
        for test in ("biased", "random")
        for seed in range(5)
    ]


def answers(many):
    return [predict.Answer(Path("/a") / many[0].replace("\0", ""), [(name, 0.5) for name in many[1:4]])]


def loaded(many):
    options = SimpleNamespace(method=many[5], debias=many[6], data=many[7])
    learner = SimpleNamespace(seen=torch.ones(3))
    return SimpleNamespace(learner=learner, place=(SimpleNamespace(options=options), None, 0))


def paper_table(many):
    columns = [paper.Column(many[0], "label"), paper.Column(many[1]), paper.Column(many[2], "verdict")]
    return paper.Table(many[3], columns, [[name, name, name] for name in many], notes=[many[4]])
