"""A configuration: what its names stand for, which values are refused, what tells runs apart."""

import hashlib
import itertools
import json
from pathlib import Path

import pytest

from droptop import BadRequest, configure
from droptop.debias import KNOWN
from droptop.methods import METHODS
from droptop.options import WITHOUT_EFFECT, YOUNGER, flatten
from droptop.runs.config import override
from droptop.streams import STREAMS

from plans import parsed
from toys import ON_VIT


def test_paths_are_kept_whole(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    options = configure("folder:pictures", root="data", weights="w.safetensors").options
    assert (options.root, options.data) == (tmp_path / "data", f"folder:{tmp_path / 'pictures'}")
    assert options.weights == str(tmp_path / "w.safetensors")
    assert [configure(weights=name).options.weights for name in ("random", "hf:a/b")] == ["random", "hf:a/b"]


def test_no_intensity_begins_above_gamma():
    """The default goes down with it."""
    assert configure(gamma=2.5).droptop.start == 2.5
    assert override(configure(gamma=2.5), {"gamma": 10.0}).droptop.start == 5.0
    assert configure(gamma=10.0, kappa_0=7.0).droptop.start == 7.0
    assert configure(method="l2p", weights="random", gamma=0.5).droptop.start == 0.5  # a preset is no wish either


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 5.0, "kappa_0": 7.0},
        {"gamma": 2.5, "kappa_0": 4.0},
        {"method": "gss", "debias": "droptop-paper", "gamma": 2.5, "kappa_0": 5.0},
    ],
)
def test_an_intensity_above_gamma_is_refused(options):
    says = f"--kappa-0 takes a percentage up to gamma, {options['gamma']}, not {options['kappa_0']}"
    with pytest.raises(BadRequest, match=says):
        configure(**options)
    flags = [token for name, value in options.items() for token in ("--" + name.replace("_", "-"), str(value))]
    with pytest.raises(BadRequest, match=says):
        parsed(*flags)


def test_config_notes_the_intensity_that_is_run():
    """Its name in a study is by what was asked for, as ever."""
    for method, kappa in (("er", 5.0), ("l2p", 1.0)):
        asked = configure(method=method, gamma=0.5, weights="random" if method == "l2p" else None)
        noted = asked.with_effective_kappa_0()
        assert (asked.droptop.kappa_0, noted.droptop.kappa_0) == (kappa, 0.5)
        assert noted.fingerprint() == override(asked, {"kappa_0": 0.5}).fingerprint() != asked.fingerprint()
    for asked in (configure(), configure(gamma=7.0), configure(debias="none")):
        assert asked.with_effective_kappa_0() == asked


def test_a_path_that_is_no_text_is_refused():
    with pytest.raises(BadRequest, match=r"--root takes a path in UTF-8, not .*x\\udce9"):
        configure(root=Path("x\udce9"))


STAND_FOR = {
    **dict.fromkeys(("none", "average"), ()),
    **dict.fromkeys(("droptop-paper", "no-fusion", "fixed", "random"), ("droptop",)),
    **dict.fromkeys(("robust", "robust-light", "colour-blind"), ("colour", "mixstyle", "decouple")),
}


ARMS = ("none", *KNOWN)


@pytest.mark.parametrize("data", STREAMS)
@pytest.mark.parametrize("method", METHODS)
def test_presets_of_every_combination_of_names(data, method):
    preset = STREAMS[data].preset
    if method in ("l2p", "dualprompt"):  # a ResNet's net, learning rate and memory are not theirs
        preset = {"augment": preset["augment"]}
    elif method in ON_VIT:
        preset = {"augment": "none", "memory": preset.get("memory", 500)}
    elif method in ("scr", "pcr", "mkd"):  # how the second view is made is theirs
        preset = preset | {"augment": "crop-resize", "crop_area": 0.2}
    for debias in ARMS:
        config = configure(data, method, debias)
        assert tuple(vars(config.members)) == STAND_FOR.get(debias, (debias,))
        flat = {path.rpartition(".")[2]: value for path, value in flatten(config).items()}
        assert flat.items() >= preset.items()


def pairs():
    """Names in which every two of a stream, a method and a debiaser meet: two debiasers per stream and method."""
    return {
        (data, method, ARMS[(i + j + turn) % len(ARMS)])
        for i, data in enumerate(STREAMS)
        for j, method in enumerate(METHODS)
        for turn in (0, len(ARMS) // 2)
    }


def test_pairs_are_all_pairs():
    """A parser is built of what a stream, a method and debiasers take; to parse all threes takes a minute."""
    for names in itertools.combinations((STREAMS, METHODS, ARMS), 2):
        places = [(STREAMS, METHODS, ARMS).index(each) for each in names]
        assert {tuple(three[place] for place in places) for three in pairs()} == set(itertools.product(*names))


@pytest.mark.parametrize("method", METHODS)
def test_the_command_line_asks_for_the_same(method):
    for data, _, debias in sorted(three for three in pairs() if three[1] == method):
        assert parsed("--data", data, f"--method={method}", "--debias", debias) == configure(data, method, debias)


@pytest.mark.parametrize(("method", "ours", "papers"), [("er", 5.0, 5.0), ("gss", 5.0, 0.5), ("aser", 5.0, 0.5)])
def test_droptop_paper_has_the_papers_kappa_0(method, ours, papers):
    """Its appendix E; where ours are others, REPRODUCTION.md says why."""
    assert configure("fashion-sticker", method).droptop.kappa_0 == ours
    assert configure("fashion-sticker", method, "droptop-paper").droptop.kappa_0 == papers
    assert configure("fashion-sticker", method, "droptop-paper", kappa_0=2.0).droptop.kappa_0 == 2.0


def test_ablations_are_settings():
    assert configure(debias="no-fusion").droptop.attention == "last"
    assert configure(debias="fixed").droptop.drop == "top"
    assert configure(debias="random").droptop.drop == "random"


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 120.0},
        {"gamma": float("nan")},
        {"memory": 0},
        {"alpha": 1.5},
        {"alpha": 0.0},
        {"lr": -1.0},
        {"lr": float("inf")},
        {"seeds": 0},
        {"batch": 0},
        {"probe": -1},
        {"history": 1},
        {"mask": "firm"},
        {"width": 0},
        {"memory": 2.5},
        {"gamma": "five"},
        {"reference": 1},
        {"limit": 0},
        {"correlation": 1.2},
        {"sticker_size": 40},
        {"momentum": 1.0},
        {"significance": 0.7},
        {"threads": 0},
        {"eval_every": 0},
        {"device": "tpu"},
        {"limit": "abc"},
        {"checkpoint_seconds": float("inf")},
        {"maps": 1},
    ],
)
def test_impossible_values_are_refused_by_name(options):
    ((name, value),) = options.items()
    with pytest.raises(BadRequest) as error:
        configure(**options)
    assert "--" + name.replace("_", "-") in str(error.value)
    assert str(value) in str(error.value)
    assert "\n" not in str(error.value)


def test_options_are_checked_together():
    config = configure(method="mir", memory_batch=60, candidates=80)
    assert (config.learner.memory_batch, config.learner.candidates) == (60, 80)
    with pytest.raises(BadRequest, match="candidates"):
        configure(method="mir", memory_batch=60)


def test_fingerprint_tells_runs_apart():
    assert configure().fingerprint() == configure(seeds=9, first_seed=2).fingerprint()
    assert (
        len(
            {
                configure().fingerprint(),
                configure(lr=0.2).fingerprint(),
                configure(debias="none").fingerprint(),
                configure(threads=2).fingerprint(),
            }
        )
        == 4
    )


def test_younger_options_at_their_old_value_leave_the_fingerprint():
    values = {
        path: str(value) for path, value in flatten(configure()).items() if path not in (*WITHOUT_EFFECT, *YOUNGER)
    }
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    assert configure().fingerprint() == digest
    assert configure(attention_norm="running").fingerprint() != digest
