"""The command itself: help, refusals in one line, notes, Ctrl-C."""

import contextlib
import importlib
import re
import subprocess
import sys
import warnings

import pytest

from droptop.cli import main
from droptop.cli.main import COMMANDS, USAGE

from toys import droptop


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ("compare --gamma 120 --out OUT", "--gamma takes a percentage"),
        ("compare --memory 0 --out OUT", "--memory takes"),
        ("compare --alpha 1.5 --out OUT", "--alpha takes"),
        ("compare --gama 5 --out OUT", "did you mean --gamma"),
        ("compare --seeds five --out OUT", "--seeds takes an integer, not 'five'"),
        ("compare --drop all --out OUT", "--drop takes one of"),
        ("run --debias none --gamma 5 --out OUT", "unknown option gamma"),
        ("compare --debias none --out OUT", "--debias"),
        ("compare --data imagenet --out OUT", "there is no stream imagenet; there are fashion"),
        ("compare --method sgd --out OUT", "--method takes one of er"),
        ("compare --data fashon --out OUT", "did you mean fashion?"),
        ("compare --method deerpp --out OUT", "did you mean derpp?"),
        ("compare --debias dorptop --out OUT", "--debias takes none, droptop, mixstyle"),
        ("compare --debias dorptop --out OUT", "not dorptop; did you mean droptop?"),
        ("paper tabel1 --out OUT", "there is no recipe tabel1; there are table1"),
        ("paper tabel1 --out OUT", "did you mean table1?"),
        ("data lits", "did you mean list?"),
        ("comprae --out OUT", "did you mean compare?"),
        ("compare --config nowhere.toml --out OUT", "droptop: nowhere.toml is not there"),
        ("compare --config HERE --out OUT", "cannot be read: Is a directory"),
        ("compare --config HERE/note.txt --out OUT", "note.txt is not TOML: "),
        ("run --config examples/study.toml --out OUT", "`droptop sweep examples/study.toml --out FOLDER` runs that"),
        ("run --tasks 5 --split 0,1/2,3 --out OUT", "--split takes the place of --tasks, not both"),
        ("run --split 0,1/2,3 --stream.class-order=random --out OUT", "--split takes the place of --class-order"),
        ("compare --weights nowhere --out OUT", "--weights"),
        ("compare --weights random --out OUT", "--weights takes a file or hf:OWNER/NAME with a ResNet"),
        ("compare --method l2p --out OUT", "--weights random"),
        (
            "run --method dualprompt --weights random --experts 4 --out OUT",
            "--experts takes at least one for each of 5",
        ),
        ("compare --root nowhere --out OUT", "--root"),
        ("compare --limit 5 --out OUT", "--limit"),
        ("compare --tasks 3 --out OUT", "--tasks"),
        ("compare --split bag/0,8 --out OUT", "--split takes every class once, not bag twice"),
        ("compare --stem 7x7/2-pool --debias no-fusion --out OUT", "1 x 1"),
        ("compare something --out OUT", "droptop compare has no place for something"),
        ("compare --seeds", "--seeds takes a value"),
        ("compare", "--out is missing"),
        ("compare --out HERE", "holds something already"),
        ("compare --out HERE/note.txt", "is a file"),
        ("resume HERE", "not a run folder"),
        ("resume", "FOLDER is missing"),
        ("resume HERE --lr 0.3", "droptop resume takes no --lr; `droptop resume --help` says what it takes"),
        ("resume HERE --sedes=3", "droptop resume takes no --sedes; did you mean --seeds?"),
        ("retrain", "unknown command"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(args, names, tmp_path, capsys):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/note.txt").write_text("mine")
    assert main(args.replace("OUT", f"{tmp_path}/out").replace("HERE", f"{tmp_path}/here").split()) == 2
    said = capsys.readouterr()
    assert names in said.err
    assert re.fullmatch(r"droptop: [^\n]+\n", said.err)  # one line
    assert said.out == ""
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["note.txt"]


def test_the_real_command_exits_with_2():
    done = droptop("compare", "--gamma", "120", "--out", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"droptop: --gamma takes a percentage[^\n]+\n", done.stderr)


@pytest.mark.parametrize("args", ["--help", "compare --help"])
def test_help_of_the_real_command_exits_with_0(args):
    done = droptop(*args.split())
    assert done.returncode == 0
    assert "droptop" in done.stdout


@pytest.mark.parametrize("args", ["--version", "run --help", "resume --help", "bench --help"])
def test_help_exits_with_0(args, capsys):
    with contextlib.suppress(SystemExit):
        assert main(args.split()) == 0
    said = capsys.readouterr()
    assert (said.err, "droptop" in said.out) == ("", True)


def test_help_loads_no_torch():
    code = (
        "import sys, droptop\nfrom droptop.cli import main\n"
        "assert [main([word]) for word in ('--help', '--version', 'runn')] == [0, 0, 2]\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("droptop: unknown command runn: there are run, compare, resume,")


def test_ctrl_c_while_loading_exits_with_130(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["droptop.cli.main"], "import_module", interrupted)
    assert main(["run", "--out", "nowhere"]) == 130
    assert capsys.readouterr().err == "droptop: interrupted\n"


def test_equal_notes_are_shown_once(capsys):
    assert main(["--version"]) == 0
    for text in ("one", "one", "other"):
        with warnings.catch_warnings():  # as figures do
            warnings.simplefilter("ignore")
        warnings.warn(text, stacklevel=1)
    assert capsys.readouterr().err == "note: one\nnote: other\n"


def test_every_command_has_its_file_and_its_line_of_help():
    for name, file in COMMANDS.items():
        assert callable(getattr(importlib.import_module(f"droptop.cli.{file}"), name))
        assert f"\n  {name} " in USAGE
