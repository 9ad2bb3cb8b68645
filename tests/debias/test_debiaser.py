"""Debiasers by name and by file: what is found, and what is refused in one line."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from droptop import BadRequest, configure
from droptop.debias import KNOWN, MEMBERS, Debiaser, DropTop, MixStyle, find, members_of, name_of
from droptop.debias.debiaser import NoSettings
from droptop.recipes import RECIPES
from droptop.rng import generator
from droptop.system import user_files
from droptop.training.observer import Job
from droptop.training.workers import Failure

FOG = str(Path(__file__).with_name("fog.py"))


@pytest.fixture(autouse=True)
def named():
    """Say that this file may be executed."""
    user_files.named(FOG)


class Nothing(Debiaser):
    """A debiaser that defines no place."""


def test_members_are_found_by_name_in_the_order_that_is_given():
    assert list(members_of("mixstyle+droptop").items()) == [("mixstyle", MixStyle), ("droptop", DropTop)]
    assert list(members_of("droptop+mixstyle").items()) == [("droptop", DropTop), ("mixstyle", MixStyle)]
    assert list(members_of("robust+droptop")) == ["colour", "mixstyle", "decouple", "droptop"]
    assert members_of("none") == members_of("average") == members_of("none+average") == {}
    for name, kind in MEMBERS.items():
        assert (name_of(kind), find(name)) == (name, kind)
    assert set(KNOWN) == {*MEMBERS, *RECIPES}


def test_a_file_stands_where_a_name_may():
    assert list(members_of(f"droptop+{FOG}")) == ["droptop", "fog"]
    for name in (FOG, f"{FOG}:Fog"):
        assert (find(name).__name__, issubclass(find(name), Debiaser)) == ("Fog", True)
    config = configure(debias=f"{FOG}+mixstyle", **{"fog.share": 0.25, "mixstyle.share": 0.125})
    assert (config.members.fog.share, config.members.mixstyle.share) == (0.25, 0.125)
    assert [(chosen.kind.__name__, chosen.config.share) for chosen in config.chosen] == [
        ("Fog", 0.25),
        ("MixStyle", 0.125),
    ]
    with pytest.raises(BadRequest, match=r"option share is that of several: say --fog.share or --mixstyle.share"):
        configure(debias=f"{FOG}+mixstyle", share=0.5)


def file_with(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text("from droptop.debias import Debiaser\n" + text)
    user_files.named(str(path))
    return path


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mixstlye", "--debias takes none, droptop, mixstyle, .*, not mixstlye; did you mean mixstyle?"),
        ("droptop+robst", "--debias takes none, .*, not robst; did you mean robust?"),
        ("", "--debias takes none, .* joined by [+], not "),
        ("droptop+", "--debias takes none, .*, not "),
        ("droptop+droptop", "--debias takes droptop once, not droptop[+]droptop"),
        ("robust+colour", "--debias takes colour once, not robust[+]colour"),
        ("fixed+random", "--debias takes droptop once, not fixed[+]random"),
        (f"{FOG}+{FOG}:Fog", "--debias takes fog once, not .*"),
        ("nowhere.py", "--debias .*nowhere.py: there is no such file"),
        (f"{FOG}:Mist", "--debias .*fog.py:Mist: the file defines Fog"),
    ],
)
def test_names_that_stand_for_nothing_are_refused_in_a_line(name, says):
    with pytest.raises(BadRequest, match=f"^{says}$".replace("?$", "[?]$")) as error:
        members_of(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file defines no class derived from droptop.Debiaser"),
        ("class A(Debiaser): pass\nclass B(Debiaser): pass\n", "the file defines A, B; choose one: .*mine.py:A"),
        ("class _Hidden(Debiaser): pass\n", "the file defines no class derived from droptop.Debiaser"),
        ("\n1 / 0\n", "line 3: ZeroDivisionError: division by zero"),
        ("def f(:\n", "line 2: SyntaxError: .*"),
        ("class DropTop(Debiaser): pass\n", "a debiaser named DropTop is there already: rename the class"),
        ("class Robust(Debiaser): pass\n", "a debiaser named Robust is there already: rename the class"),
        ("class Stream(Debiaser): pass\n", "a debiaser named Stream is there already: rename the class"),
        ("class NONE(Debiaser): pass\n", "a debiaser named NONE is there already: rename the class"),
    ],
)
def test_files_that_are_no_debiaser_are_refused_in_a_line(text, says, tmp_path):
    path = file_with(tmp_path, text)
    with pytest.raises(BadRequest, match=f"^--debias {path}: {says}$") as error:
        find(str(path))
    assert "\n" not in str(error.value)


def test_a_debiaser_acts_where_its_class_says_so():
    places = ("images", "first_map", "penalty", "see", "logits")
    acting = {"droptop": 1, "mixstyle": 1, "decouple": 2, "colour": 0, "randconv": 0, "rsc": 1, FOG: 0}
    for name, place in acting.items():
        assert [each for each in places if find(name).acts_on(each)] == [places[place]]
    assert [each for each in places if find("poe").acts_on(each)] == ["see", "logits"]
    assert not any(Nothing.acts_on(place) for place in places)


def test_a_debiaser_that_defines_nothing_changes_nothing():
    nothing, x = Nothing(Nothing.config_type(), 4, generator(0, "debias")), torch.rand(2, 3, 4, 4)
    assert nothing.images(x) is x
    assert nothing.first_map(x, None, torch.zeros(2)) is x
    assert nothing.logits(x) is x
    assert nothing.penalty(torch.ones(2, 4), torch.zeros(2)) == 0


@dataclass(frozen=True)
class Settings:
    """Hold two settings, and others in a group."""

    share: float = 0.25
    kind: str = "thick"
    group: NoSettings = field(default_factory=NoSettings)


def test_a_debiaser_says_its_name_and_its_settings_but_no_group_of_them():
    assert repr(Nothing(Settings(), 4, generator(0, "debias"))) == "Nothing(share=0.25, kind=thick)"
    assert repr(Nothing(NoSettings(), 4, generator(0, "debias"))) == "Nothing()"


def test_draws_are_those_of_its_generator():
    draws = [Nothing(Nothing.config_type(), 4, generator(seed, "debias")) for seed in (0, 0, 1)]
    first, again, other = (each.uniform(3, 2, device=torch.device("cpu")) for each in draws)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    orders = [draws[0].permutation(6, torch.device("cpu")).tolist() for _ in range(300)]
    assert all(sorted(order) == list(range(6)) for order in orders)
    counts = torch.tensor(orders).T.float()  # every sample comes to every place as often
    assert all(abs((row == sample).float().mean() - 1 / 6) < 0.07 for row in counts for sample in range(6))


def test_an_error_in_a_file_is_told_by_its_line(tmp_path):
    """Of a debiaser as of a method, and not by the lines of droptop that called it."""
    file = tmp_path / "torn.py"
    file.write_text(
        "import droptop\n\n\nclass Torn(droptop.Debiaser):\n    def images(self, x):\n        return x + oops\n"
    )
    user_files.named(str(file))
    job = Job(configure("fashion", debias=f"{file}:Torn"), tmp_path, 0, name="torn seed 0")
    kind = find(str(file))
    with pytest.raises(NameError) as raised:
        kind(kind.config_type(), 4, generator(0, "debias")).images(torch.zeros(2, 3, 4, 4))
    said = Failure.of(raised.value, job).message
    assert said == f"torn seed 0 failed: {file}, line 6: NameError: name 'oops' is not defined"
