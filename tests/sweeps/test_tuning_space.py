"""What may vary while options are tuned: what texts stand for, and what is refused."""

import pytest

from droptop.errors import BadRequest
from droptop.runs.config import configure
from droptop.sweeps.tuning.space import (
    Choice,
    Range,
    number_of_settings,
    read_space,
    said_in_python,
    said_of,
    settings_of,
    usual_space,
)
from droptop.sweeps.tuning.tune_json import in_words

ER, DROPTOP = (configure("fashion", "er", debias) for debias in ("none", "droptop"))


def space(*texts, arms=(ER,)):
    return read_space(said_of(texts), arms)


def test_texts_stand_for_ranges_and_lists():
    assert space("lr=log:0.003:0.3", "momentum=0,0.9") == {
        "learner.lr": Range("log", 0.003, 0.3),
        "learner.momentum": Choice((0.0, 0.9)),
    }
    assert space("weight_decay=lin:0:0.001") == {"learner.weight_decay": Range("lin", 0.0, 0.001)}
    assert space("memory-batch=int:16:64") == {"learner.memory_batch": Range("int", 16, 64, True)}
    assert space("memory=log:100:5000") == {"learner.memory": Range("log", 100, 5000, True)}  # it takes whole numbers
    assert space("average=true,false", "augment=none,crop-flip") == {
        "learner.average": Choice((True, False)),
        "learner.augment": Choice(("none", "crop-flip")),
    }
    assert space("gamma=int:1:5", arms=(DROPTOP,)) == {"droptop.gamma": Range("int", 1, 5, True)}
    assert said_in_python({"lr": "log:0.1:1", "momentum": [0, 0.9], "average": (True, False)}) == {
        "lr": "log:0.1:1",
        "momentum": "0,0.9",
        "average": "true,false",
    }


def test_settings_are_counted_and_found():
    assert number_of_settings(space("momentum=0,0.9", "memory_batch=int:4:6")) == 6
    assert number_of_settings(space("momentum=0,0.9", "lr=lin:0.1:1")) is None
    assert settings_of(space("momentum=0,0.9", "lr=log:0.01:0.1"), ER) == {"learner.momentum": 0.0, "learner.lr": 0.05}
    assert settings_of(space("momentum=0.5,0.9", "lr=log:0.01:0.1"), ER) is None


def test_the_usual_space_is_the_same_for_all_arms():
    assert usual_space([ER, DROPTOP]) == usual_space([ER]) == {"lr": "log:0.005:0.5", "momentum": "0.0,0.9"}
    slow, vit = configure("fashion", "er", "none", lr=0.001), configure("fashion", "l2p", "none", weights="random")
    assert usual_space([ER, slow])["lr"] == "log:0.0001:0.5"
    assert usual_space([vit]).keys() == {"lr", "beta_1"}
    assert usual_space([ER, vit]).keys() == {"lr"}  # momentum is refused by Adam
    for arms in ([ER, DROPTOP], [vit], [ER, vit]):
        read_space(usual_space(arms), arms)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["lrr=0.1,0.2"], "unknown option lrr"),
        (["lr"], "--over takes NAME=log:LOW:HIGH"),
        (["lr="], "--over takes NAME=log:LOW:HIGH"),
        (["lr=log:0.3:0.003"], "two numbers of which the second is larger, not lr=log:0.3:0.003"),
        (["lr=log:0.3:0.3"], "two numbers of which the second is larger"),
        (["lr=log:0.3"], "two numbers of which the second is larger"),
        (["lr=lin:a:b"], "two numbers of which the second is larger"),
        (["lr=lin:0.1:inf"], "two numbers of which the second is larger"),
        (["weight_decay=log:0:0.1"], "from above 0"),
        (["memory_batch=int:1.5:4"], "whole numbers for memory_batch"),
        (["memory_batch=lin:1.5:4"], "whole numbers for memory_batch"),
        (["lr=0.1"], "or a range such as log:0.01:1, lin:1:10 or int:16:64, not 0.1"),
        (["lr=0.1,0.10"], "two values of lr or more, each once"),
        (["lr=0.1,,0.2"], "two values of lr or more, each once"),
        (["momentum=0,1"], "--over momentum=0.0,1.0: --momentum takes a number from 0 and below 1, not 1"),
        (["momentum=lin:0:1"], "--momentum takes a number from 0 and below 1"),
        (["average=true,maybe"], "average takes true or false"),
        (["augment=none,crop"], "augment takes one of"),
        (["lr=0.1,0.2", "lr=0.3,0.4"], "every option once, not lr"),
        (["lr=0.1,0.2", "learner.lr=0.3,0.4"], "every option once"),
        (["tasks=2,5"], "options of net, learner and debiasing, not tasks"),
        (["seeds=2,5"], "options of net, learner and debiasing, not seeds"),
        (["preset=paper,tuned"], "options of net, learner and debiasing, not preset"),
        (["device=cpu,cuda"], "options of net, learner and debiasing, not device"),
    ],
)
def test_what_cannot_vary_is_refused(texts, says):
    with pytest.raises(BadRequest) as refused:
        space(*texts)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_option_that_an_arm_does_not_have_is_no_space_for_all():
    with pytest.raises(BadRequest, match="unknown option gamma with --data fashion --method er --debias none"):
        space("gamma=lin:1:5", arms=(ER, DROPTOP))


def test_options_of_two_debiasers_are_told_apart():
    settings = {"learner.lr": 0.1, "colour.share": 0.2, "mixstyle.share": 0.3, "droptop.gamma": 5.0}
    assert in_words(settings) == "lr 0.1, colour.share 0.2, mixstyle.share 0.3, gamma 5"
