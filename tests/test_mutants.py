"""What mutants.toml says of the code and the tests fits both, as they are; `make mutants` itself takes hours."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import mutants  # noqa: E402


def test_every_mutant_by_hand_can_be_made_of_the_code():
    """`by_hand` stops where the text that it changes is not in its file once."""
    made = mutants.by_hand()
    assert len(made) == len(mutants.PLAN["by_hand"])
    assert all(mutants.compiles(mutant.text) for mutant in made)


def test_a_mutant_by_hand_that_no_longer_fits_stops_the_script(monkeypatch):
    gone = {"name": "gone", "source": "learner.py", "old": "not in the file", "new": ""}
    monkeypatch.setitem(mutants.PLAN, "by_hand", [gone])
    with pytest.raises(SystemExit, match=r"mutants.toml: gone: learner.py must hold this once"):
        mutants.by_hand()


@pytest.mark.parametrize("entry", mutants.PLAN["equivalent"], ids=lambda entry: entry["mutant"])
def test_a_survivor_that_is_excused_can_be_made_of_the_code(entry):
    assert entry["mutant"] in {mutant.name for mutant in mutants.mutants_of(entry["source"])}


def test_the_tests_of_every_mutant_are_there():
    lines = [line for entry in mutants.PLAN["module"] for line in (*entry["tests"], *entry["oracles"])]
    lines += [line for entry in mutants.PLAN["by_hand"] for line in entry.get("tests", ())]
    paths = {word for line in lines for word in line.split() if word.startswith("tests/")}
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_every_module_pattern_fits_a_file():
    sources = ROOT / mutants.SOURCE
    assert all(any(sources.glob(entry["source"])) for entry in mutants.PLAN["module"])
