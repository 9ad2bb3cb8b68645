"""Every option by flag and by TOML, in each of its spellings."""

import dataclasses
from pathlib import Path

import pytest

from droptop import BadRequest, configure
from droptop.cli.run_flags import parse
from droptop.methods import METHODS
from droptop.options import flatten

from plans import parsed, plan
from toys import ON_VIT

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
    "learner.average": True,
    "learner.average_decay": 0.9,
    "droptop.gamma": 7.0,
    "droptop.kappa_0": 1.0,
    "droptop.drop": "constant",
    "droptop.attention": "last",
    "droptop.attention_norm": "running",
    "droptop.memory_attention": "kept",
    "droptop.mask": "soft",
    "droptop.mask_rows": "memory",
    "droptop.remainder": "none",
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
OF_LIBRARIES = {"pretrained": True, "net.input_size": 64}
OF_VITS = {
    "net.patch": 16,
    "net.width": 192,
    "net.depth": 12,
    "net.heads": 4,
    "net.input_size": 224,
    "net.pixel_mean": 0.4,
    "net.pixel_std": 0.3,
}
OF_PROMPTS = OF_VITS | {
    "learner.lr_scale": "batch/256",
    "learner.beta_1": 0.8,
    "learner.beta_2": 0.99,
    "learner.renew_optimizer": True,
    "learner.clip": 2.0,
    "learner.query_image": "augmented",
    "learner.batch_choice": True,
}
OF_METHODS = {
    "derpp": {"learner.distill_weight": 0.4, "learner.replay_weight": 0.6},
    "mir": {"learner.candidates": 40},
    "gss": {"learner.gradient_batches": 4, "learner.gradient_batch": 5},
    "aser": {"learner.neighbours": 5, "learner.per_class": 2.5, "learner.sampling": "published"},
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
    "scr": {"learner.jitter": 0.5, "learner.temperature": 0.2, "learner.projection": 64},
    "pcr": {"learner.jitter": 0.5, "learner.temperature": 0.2},
    "mkd": {
        "learner.jitter": 0.5,
        "learner.temperature": 2.0,
        "learner.teacher_decay": 0.9,
        "learner.distill_weight": 1.5,
        "learner.predict_by": "teacher",
    },
    "ncm": OF_VITS | {"learner.distance": "euclidean"},
    "slda": OF_VITS | {"learner.shrinkage": 0.01},
    "ranpac": OF_VITS | {"learner.projections": 100, "learner.ridge": 10.0, "learner.held_out": 4},
}
# Refused by the stream that is taken without --data, which has a shortcut of its own.
PAINTED = {
    "stream.shortcut": "frame",
    "stream.shortcut_correlation": 0.5,
    "stream.shortcut_strength": 0.25,
    "stream.shortcut_size": 3,
}
OF_RESNETS = {"net.width", "net.stem"}
NAMED = {
    "data",
    "method",
    "debias",
    "model",
    "first",
    "last",
    "root",
    "weights",
    "device",
    "net.net",
    "learner.preset",
}  # by name or place


def command_line(options, out="out"):
    tokens = ["--out", out]
    for path, value in options.items():
        flag = path.rpartition(".")[2].replace("_", "-")
        tokens += [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return tokens


def test_every_option_is_reachable_from_the_command_line():
    base = flatten(configure())
    assert base.keys() - NAMED == OTHER.keys() | OF_LIBRARIES.keys() | PAINTED.keys()
    net = {"net.net": "timm:resnet18"}
    assert flatten(parsed(*command_line(net | OF_LIBRARIES))) == base | net | OF_LIBRARIES
    for path, value in OTHER.items():
        assert value != base[path]
        if path == "droptop.drop":
            continue  # goes with no reference, which comes later
        assert flatten(parsed(*command_line({path: value}))) == base | {path: value}
    assert flatten(parsed("--drop", "constant"))["droptop.drop"] == "constant"
    plain = flatten(configure("fashion"))
    assert flatten(parsed("--data", "fashion", *command_line(PAINTED))) == plain | PAINTED


@pytest.mark.parametrize("method", METHODS)
def test_every_option_of_a_method_is_reachable(method):
    base = flatten(configure(method=method))
    own = OF_METHODS.get(method, {})
    shared = (OTHER.keys() | OF_LIBRARIES.keys()) - (OF_RESNETS if method in ON_VIT else set())
    assert base.keys() - NAMED == shared | own.keys() | PAINTED.keys()
    assert all(base[path] != value for path, value in own.items())
    assert flatten(parsed("--method", method, *command_line(own))) == base | own


def test_a_preset_is_reachable_and_survives_toml(tmp_path):
    config = parsed("--method", "l2p", "--preset", "as-published", "--pull", "0.5")
    assert (config.learner.pull, config.learner.lr_scale) == (0.5, "batch/256")
    (tmp_path / "c.toml").write_text(plan(config).toml())
    assert parsed("--config", str(tmp_path / "c.toml")) == config
    (tmp_path / "short.toml").write_text('method = "l2p"\npreset = "as-published"\n')
    wins = parsed("--config", str(tmp_path / "short.toml"), "--pull", "0.5")
    assert wins == config
    with pytest.raises(BadRequest, match="--preset takes one of 'paper', 'tuned', not 'as-published'"):
        parsed("--preset", "as-published")


def test_every_option_survives_toml(tmp_path):
    options = OTHER | {"droptop.drop": "adaptive", "droptop.memory_attention": "fresh"}  # these go with --reference
    config = configure(**{path.rpartition(".")[2]: value for path, value in options.items()})
    (tmp_path / "c.toml").write_text(plan(config).toml())
    again, out, *_ = parse("run", ["--config", str(tmp_path / "c.toml"), "--out", "there"])
    assert again == plan(config)
    assert out == Path("there")
    wins = parsed("--lr", "0.7", "--config", str(tmp_path / "c.toml"))
    assert wins.learner.lr == 0.7
    assert dataclasses.replace(wins, learner=config.learner) == config


@pytest.mark.parametrize("letters", ["caf\u00e9", "\U0001f4f7 camera", '\x7f \t"\\'])
def test_names_in_any_letters_survive_toml(letters, tmp_path):
    config = configure(f"folder:{tmp_path / letters}")
    (tmp_path / "c.toml").write_bytes(plan(config).toml().encode())
    assert parsed("--config", str(tmp_path / "c.toml")) == config


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
def test_a_switch_has_five_spellings(spelling):
    assert parsed(*spelling).droptop.intensity.reference
    for off in ("--no-reference", "--intensity.no-reference"):  # as the help has it
        assert not parsed(*spelling, off).droptop.intensity.reference


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
def test_switches_take_true_and_false_alone(flags, says):
    with pytest.raises(BadRequest, match=says):
        parsed(*flags)


def test_values_may_follow_an_equals_sign(tmp_path):
    (tmp_path / "c.toml").write_text("gamma = 2\n")
    asked = parse("run", [f"--config={tmp_path / 'c.toml'}", "--out=there", "--lr=0.3", "--debias=fixed"])
    config = asked.plan.arms["fixed"]
    assert (config.droptop.gamma, config.learner.lr, config.options.debias) == (2.0, 0.3, "fixed")
    assert asked.out == Path("there")


def test_toml_takes_short_names_too(tmp_path):
    (tmp_path / "c.toml").write_text('data = "fashion"\ngamma = 2\nintensity.reference = true\n[learner]\nlr = 0.2\n')
    config = parsed("--config", str(tmp_path / "c.toml"))
    assert (config.options.data, config.droptop.gamma, config.learner.lr) == ("fashion", 2.0, 0.2)
    assert config.droptop.intensity.reference
