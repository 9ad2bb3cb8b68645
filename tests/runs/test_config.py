import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from droptop import BadRequest, configure
from droptop.cli.run_flags import parse
from droptop.debias import DEBIAS
from droptop.methods import METHODS
from droptop.options import WITHOUT_EFFECT, YOUNGER, flatten
from droptop.runs.config import override, to_toml
from droptop.streams import STREAMS

# One value other than the default for every option there is; a new option must be added here.
OTHER = {
    "seeds": 3,
    "first_seed": 4,
    "threads": 2,
    "limit": 100,
    "eval_every": 7,
    "checkpoint_seconds": 1.5,
    "maps": 16,
    "maps_seeds": 2,
    "log": "csv",
    "precision": "bf16",
    "graphs": False,
    "compile": True,
    "parallel": 4,
    "deterministic": True,
    "stream.tasks": 2,
    "stream.class_order": "random",
    "stream.split": "0,1/bag,boot",
    "stream.imbalance": 10.0,
    "stream.label_noise": 20.0,
    "stream.blurry": 30.0,
    "stream.batch": 10,
    "stream.drop_last": False,
    "stream.hold_out": 15.0,
    "stream.correlation": 0.8,
    "stream.sticker_size": 4,
    "stream.garment_brightness": 0.75,
    "net.width": 8,
    "net.stem": "3x3/2",
    "learner.lr": 0.3,
    "learner.momentum": 0.9,
    "learner.weight_decay": 0.01,
    "learner.memory": 50,
    "learner.memory_batch": 16,
    "learner.iterations": 2,
    "learner.augment": "crop-flip",
    "learner.crop_area": 0.08,
    "learner.replay_forward": "separate",
    "droptop.gamma": 7.0,
    "droptop.kappa_0": 1.0,
    "droptop.drop": "constant",
    "droptop.attention": "last",
    "droptop.attention_norm": "running",
    "droptop.mask": "soft",
    "droptop.rounding": "nearest",
    "droptop.intensity.per": "common",
    "droptop.intensity.alpha": 0.8,
    "droptop.intensity.period": 4,
    "droptop.intensity.history": 5,
    "droptop.intensity.significance": 0.1,
    "droptop.intensity.shift": "algorithm2",
    "droptop.intensity.p_counter": "task",
    "droptop.intensity.probe": 64,
    "droptop.intensity.reference": True,
}
OF_PROMPTS = {
    "net.patch": 16,
    "net.width": 192,
    "net.depth": 12,
    "net.heads": 4,
    "net.input_size": 224,
    "net.pixel_mean": 0.4,
    "net.pixel_std": 0.3,
    "learner.lr_scale": "batch/256",
    "learner.beta_1": 0.8,
    "learner.beta_2": 0.99,
    "learner.clip": 2.0,
    "learner.query_image": "augmented",
    "learner.batch_choice": True,
}
OF_METHODS = {
    "derpp": {"learner.distill_weight": 0.4, "learner.replay_weight": 0.6},
    "mir": {"learner.candidates": 40},
    "gss": {"learner.gradient_batches": 4, "learner.gradient_batch": 5},
    "aser": {"learner.neighbours": 5, "learner.per_class": 2.5},
    "l2p": OF_PROMPTS
    | {
        "learner.pool": 12,
        "learner.prompt_length": 4,
        "learner.chosen": 3,
        "learner.prompt_blocks": 2,
        "learner.pull": 0.5,
    },
    "dualprompt": OF_PROMPTS
    | {
        "learner.general_length": 4,
        "learner.general_blocks": 1,
        "learner.expert_length": 10,
        "learner.expert_blocks": 2,
        "learner.experts": 20,
        "learner.pull": 0.5,
    },
}
OF_RESNETS = {"net.width", "net.stem"}
NAMED = {"data", "method", "debias", "root", "weights", "device", "net.net"}  # given by name, path or machine


def command_line(options, out="out"):
    tokens = ["--out", out]
    for path, value in options.items():
        flag = path.rpartition(".")[2].replace("_", "-")
        tokens += [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return tokens


def test_paths_are_taken_as_text_too_and_kept_whole(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    options = configure("folder:pictures", root="data", weights="w.safetensors").options
    assert (options.root, options.data) == (tmp_path / "data", f"folder:{tmp_path / 'pictures'}")
    assert options.weights == str(tmp_path / "w.safetensors")
    assert [configure(weights=name).options.weights for name in ("random", "hf:a/b")] == ["random", "hf:a/b"]


@pytest.mark.parametrize("letters", ["caf\u00e9", "\U0001f4f7 camera", '\x7f \t"\\'])
def test_names_in_any_letters_survive_toml(letters, tmp_path):
    config = configure(f"folder:{tmp_path / letters}")
    (tmp_path / "c.toml").write_bytes(to_toml(config, "run").encode())
    assert parse("run", ["--config", str(tmp_path / "c.toml"), "--out", "x"])[0] == config


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
        parse("run", [*flags, "--out", "x"])


def test_a_folder_notes_the_intensity_that_is_run():
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


def test_every_option_is_reachable_from_the_command_line():
    base = flatten(configure())
    assert base.keys() - NAMED == OTHER.keys()
    for path, value in OTHER.items():
        assert value != base[path]
        if path == "droptop.drop":
            continue  # goes with no reference, which comes later
        config, _ = parse("run", command_line({path: value}))
        assert flatten(config) == base | {path: value}
    assert flatten(parse("run", ["--out", "x", "--drop", "constant"])[0])["droptop.drop"] == "constant"


@pytest.mark.parametrize("method", METHODS)
def test_every_option_of_a_method_is_reachable(method):
    base = flatten(configure(method=method))
    own = OF_METHODS.get(method, {})
    shared = OTHER.keys() - (OF_RESNETS if method in ("l2p", "dualprompt") else set())
    assert base.keys() - NAMED == shared | own.keys()
    assert all(base[path] != value for path, value in own.items())
    config, _ = parse("run", ["--method", method, *command_line(own)])
    assert flatten(config) == base | own


def test_every_option_survives_toml(tmp_path):
    options = OTHER | {"droptop.drop": "adaptive"}
    config = configure(**{path.rpartition(".")[2]: value for path, value in options.items()})
    (tmp_path / "c.toml").write_text(to_toml(config, "run"))
    again, out = parse("run", ["--config", str(tmp_path / "c.toml"), "--out", "there"])
    assert again == config
    assert out == Path("there")
    wins, _ = parse("run", ["--lr", "0.7", "--config", str(tmp_path / "c.toml"), "--out", "there"])
    assert wins.learner.lr == 0.7
    assert dataclasses.replace(wins, learner=config.learner) == config


@pytest.mark.parametrize(
    "spelling",
    [
        ["--reference"],
        ["--intensity.reference"],
        ["--droptop.intensity.reference"],
        ["--reference", "true"],
        ["--reference=True"],
    ],
)
def test_spellings(spelling):
    config, _ = parse("run", ["--out", "x", *spelling])
    assert config.droptop.intensity.reference
    for off in ("--no-reference", "--intensity.no-reference"):  # as the help has it
        assert not parse("run", ["--out", "x", *spelling, off])[0].droptop.intensity.reference


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--no-lr", "3"], "unknown option no-lr"),
        (["--no-such"], "unknown option no-such"),
        (["--drop-last=0"], "--drop-last takes true or false, not 0"),
        (["--no-drop-last="], "--no-drop-last takes true or false"),
        (["--graphs=off"], "--graphs takes true or false"),
    ],
)
def test_what_a_switch_does_not_take(flags, says):
    with pytest.raises(BadRequest, match=says):
        parse("run", ["--out", "x", *flags])


def test_values_after_an_equals_sign(tmp_path):
    (tmp_path / "c.toml").write_text("gamma = 2\n")
    config, out = parse("run", [f"--config={tmp_path / 'c.toml'}", "--out=there", "--lr=0.3", "--debias=fixed"])
    assert (config.droptop.gamma, config.learner.lr, config.options.debias) == (2.0, 0.3, "fixed")
    assert out == Path("there")


def test_toml_takes_short_names_too(tmp_path):
    (tmp_path / "c.toml").write_text('data = "fashion"\ngamma = 2\nintensity.reference = true\n[learner]\nlr = 0.2\n')
    config, _ = parse("run", ["--config", str(tmp_path / "c.toml"), "--out", "x"])
    assert (config.options.data, config.droptop.gamma, config.learner.lr) == ("fashion", 2.0, 0.2)
    assert config.droptop.intensity.reference


@pytest.mark.parametrize("data", STREAMS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("debias", ["none", *DEBIAS])
def test_every_combination_of_names(data, method, debias):
    config = configure(data, method, debias)
    assert (config.droptop is None) == (debias == "none")
    flat = {path.rpartition(".")[2]: value for path, value in flatten(config).items()}
    preset = STREAMS[data].preset
    if method in ("l2p", "dualprompt"):  # a ResNet's net, learning rate and memory are not theirs
        preset = {"augment": preset["augment"]}
    assert flat.items() >= preset.items()
    assert parse("run", ["--data", data, f"--method={method}", "--debias", debias, "--out", "x"])[0] == config


@pytest.mark.parametrize(("method", "ours", "papers"), [("er", 5.0, 5.0), ("gss", 5.0, 0.5), ("aser", 5.0, 0.5)])
def test_the_papers_own_settings_have_a_name(method, ours, papers):
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
def test_impossible_values(options):
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


def test_an_option_that_came_later_leaves_earlier_runs_what_they_were():
    values = {
        path: str(value) for path, value in flatten(configure()).items() if path not in (*WITHOUT_EFFECT, *YOUNGER)
    }
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    assert configure().fingerprint() == digest
    assert configure(attention_norm="running").fingerprint() != digest
