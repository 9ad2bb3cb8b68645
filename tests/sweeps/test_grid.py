import re
from pathlib import Path

import pytest

from droptop import BadRequest
from droptop.cli.run_flags import parse
from droptop.options import flatten
from droptop.sweeps.grid import absolute_text, folder_name, read_study

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def study(tmp_path, text):
    (tmp_path / "study.toml").write_text(text)
    return read_study(tmp_path / "study.toml")


def options(configs, *names):
    flat = [{path.rpartition(".")[2]: value for path, value in flatten(config).items()} for config in configs]
    return [tuple(values.get(name) for name in names) for values in flat]


def test_lists_vary_and_single_values_do_not(tmp_path):
    configs = study(tmp_path, 'seeds = 4\nfirst_seed = 2\nmethod = ["er", "mir"]\nlr = [0.1, 0.3]\ndebias = "none"')
    assert options(configs, "method", "lr") == [("er", 0.1), ("er", 0.3), ("mir", 0.1), ("mir", 0.3)]
    assert {tuple(config.seeds) for config in configs} == {(2, 3, 4, 5)}


def test_options_that_a_combination_does_not_have_are_left_out_of_it(tmp_path):
    configs = study(
        tmp_path, 'method = ["er", "mir"]\ndebias = ["none", "droptop"]\ngamma = [2.0, 5.0]\ncandidates = [40, 60]'
    )
    assert options(configs, "method", "debias", "gamma", "candidates") == [
        ("er", "none", None, None),
        ("er", "droptop", 2.0, None),
        ("er", "droptop", 5.0, None),
        ("mir", "none", None, 40),
        ("mir", "none", None, 60),
        ("mir", "droptop", 2.0, 40),
        ("mir", "droptop", 2.0, 60),
        ("mir", "droptop", 5.0, 40),
        ("mir", "droptop", 5.0, 60),
    ]


def test_also_adds_cells(tmp_path):
    configs = study(
        tmp_path,
        'debias = ["none", "droptop"]\n[[also]]\ndebias = "droptop"\ngamma = [5.0, 10.0]\n'
        "[[also]]\n[also.droptop.intensity]\nalpha = 0.8\n",
    )
    assert options(configs, "debias", "gamma", "alpha") == [
        ("none", None, None),
        ("droptop", 5.0, 0.9),
        ("droptop", 10.0, 0.9),
        ("droptop", 5.0, 0.8),
    ]


def test_grids_stand_in_tables_of_their_own(tmp_path):
    """The top holds for all of them, and is no grid itself."""
    configs = study(
        tmp_path,
        'seeds = 2\nlr = 0.3\n[[grid]]\ndebias = "none"\n[[grid]]\ngamma = [2.5, 5.0]\n'
        '[[also]]\nmethod = "mir"\ndebias = "none"\nlr = 0.2',
    )
    assert options(configs, "method", "debias", "lr", "gamma", "seeds") == [
        ("er", "none", 0.3, None, 2),
        ("er", "droptop", 0.3, 2.5, 2),
        ("er", "droptop", 0.3, 5.0, 2),
        ("mir", "none", 0.2, None, 2),
    ]


def test_options_of_some_grids_may_stand_at_the_top(tmp_path):
    configs = study(tmp_path, 'debias = "droptop"\ngamma = [2.5, 5.0]\n[[also]]\ndebias = "none"\n')
    assert options(configs, "debias", "gamma") == [("droptop", 2.5), ("droptop", 5.0), ("none", None)]


def test_a_study_asks_for_the_same_from_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'seeds = 2  # of each\ndata = ["fashion", "folder:images"]\nroot = "data"\n[[also]]\nlr = [0.1, 1e-5]\n'
    asked = {folder_name(config) for config in study(tmp_path, text)}
    kept = tmp_path / "kept.toml"
    kept.write_text(absolute_text(tmp_path / "study.toml"))
    monkeypatch.chdir(tmp_path.parent)
    assert {folder_name(config) for config in read_study(kept)} == asked
    assert {config.options.root for config in read_study(kept)} == {tmp_path / "data"}
    assert absolute_text(kept) == kept.read_text()
    (tmp_path / "study.toml").write_text("lr = 0.2  # as it is\n")
    assert absolute_text(tmp_path / "study.toml") == "lr = 0.2  # as it is\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[also]]\ndebias = "none"\ngamma = 2.0', "unknown option gamma"),
        ('candidates = 40\n[[grid]]\nmethod = "er"\n[[grid]]\nmethod = "gss"', "unknown option candidates"),
        ("lr = [", "study.toml"),
        ('command = "compare"\nlr = 0.1', "`droptop resume .*continues that, `droptop compare"),
        ("learning_rate = [0.1, 0.2]", "unknown option learning_rate"),
        ('method = ["er", "sgd"]', "sgd"),
        ("seeds = [1, 2]", "seeds is one for the whole"),
        ("lr = []", "lr has no values"),
        ("[[also]]\nseeds = 2", "stands at its top"),
        ("threads = [1, 2]", "threads is one"),
        ('lr = [0.1, "fast"]', "--lr takes a number"),
        ("also = 3", r"\[\[also\]\]"),
        ("grid = 3", r"\[\[grid\]\]"),
        ("[[grid]]\nthreads = 2", "stands at its top"),
        ("lr = [-1.0]", "--lr takes"),
    ],
)
def test_bad_studies_are_refused_with_a_reason(tmp_path, text, says):
    with pytest.raises(BadRequest, match=says):
        study(tmp_path, text)


def test_a_folder_is_named_by_what_is_run_in_it(tmp_path):
    few, many = (study(tmp_path, f'seeds = {seeds}\nlr = [0.1, 0.2]\ndata = "fashion"') for seeds in (1, 9))
    assert [folder_name(config) for config in few] == [folder_name(config) for config in many]
    assert len({folder_name(config) for config in few}) == 2
    assert folder_name(few[0]).startswith("fashion-er-droptop-")
    [own] = study(tmp_path, 'data = "folder:/some/where/nice pictures"')
    assert set(folder_name(own)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.")


@pytest.mark.parametrize(
    "path", sorted(BENCHMARKS.glob("*/*.toml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_every_study_of_the_benchmarks_can_be_read(path):
    text = path.read_text()
    if '.py"\n' in text:
        pytest.skip("its stream is a Python file, which reads images of CIFAR-10")
    if "[arms." in text:
        assert parse("compare", ["--config", str(path), "--out", "x"])  # no study, but what a comparison is asked for
        return
    assert read_study(path)


def test_one_command_runs_every_study_of_the_readings():
    command = (BENCHMARKS / "readings/run.sh").read_text()
    named = re.search(r"names=\(([a-z][^)]+)\)", command)
    assert sorted(named[1].split()) == sorted(path.stem for path in (BENCHMARKS / "readings").glob("*.toml"))
