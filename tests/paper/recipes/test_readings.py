"""Readings of the paper, by invented results."""

import re
from dataclasses import replace

import pytest

from droptop.paper.cell_results import CellResults
from droptop.paper.recipe import Scope
from droptop.paper.recipes import readings
from droptop.paper.write import Heading, write

from ..invented import RECIPES, TESTS, invent, scope_of


def test_readings_that_are_the_default_have_no_row():
    """CIFAR's stem is 3x3 already; at 64 px it is 7x7/2."""
    recipe = RECIPES["readings"]
    names = {data: readings.rows_of(CellResults(recipe, scope_of(recipe), None), data) for data in recipe.data}
    assert "ER, stem 3x3" not in names["split-cifar10"]
    assert "ER, stem 7x7/2" not in names["split-tiny-imagenet9"]
    assert "ER, stem 3x3" in names["split-tiny-imagenet9"]
    assert {name for name in names["split-cifar10"] if name.startswith(("GSS", "ASER"))} == {
        "GSS, as it is",
        "GSS, separate forward passes",
        "GSS, separate forward passes, lr 0.2",
        "GSS, no augmentation",
        "ASER, as it is",
        "ASER, separate forward passes",
        "ASER, no augmentation",
        "ASER, one candidate per class",
    }


def test_prompt_learners_have_readings_of_their_own():
    """Of which those that are a learner's default have no row: DualPrompt's pull, and L2P's memory."""
    recipe = RECIPES["readings-prompts"]
    rows = readings.rows_of(CellResults(recipe, scope_of(recipe), None), "split-cifar10")
    own = [name.removeprefix("L2P, ") for name in rows if name.startswith("L2P")]
    assert set(own) == readings.OF_PROMPTS.keys() - {"memory by method"}
    own = [name.removeprefix("DualPrompt, ") for name in rows if name.startswith("DualPrompt")]
    assert set(own) == readings.OF_PROMPTS.keys() - {"pull of 1"}


@pytest.mark.parametrize("name", ["readings", "sensitivity"])
def test_biased_and_unbiased_sets_are_shown(name, tmp_path):
    """Each in a figure or a part of one; whichever cells are there."""
    recipe = RECIPES[name]
    whole = Scope(("er", "derpp"), ("fashion-sticker",), 2)
    invent(CellResults(recipe, replace(whole, methods=("derpp",)), tmp_path))
    results = CellResults(recipe, whole, tmp_path)
    files = write(recipe.show(results), Heading("", [], []), tmp_path, name)
    page = (tmp_path / f"{name}.md").read_text()
    for test in TESTS["fashion-sticker"]:
        assert page.count(f"| fashion-sticker, {test}") == (1 if name == "readings" else 2)
    assert re.search(
        r"\| DER\+\+, as it is \| A_avg .* \d\d\.\d ± \d"
        if name == "readings"
        else r"fashion-sticker, removed, DER\+\+ \| none \|  \| \d\d\.\d ± \d",
        page,
    )
    suffixes = ("",) if name == "readings" else ("", "-removed", "-random")
    drawn = {f"{name}{suffix}.png" for suffix in suffixes}
    assert {file.name for file in files if file.suffix == ".png"} == drawn


def test_readings_cover_what_the_paper_leaves_open():
    varied = {name for cell in readings.READINGS.values() for name in cell}
    assert varied >= {
        "replay_forward",
        "attention_norm",
        "stem",
        "augment",
        "probe",
        "rounding",
        "shift",
        "p_counter",
        "mask_rows",
        "remainder",
        "lr",
    }
