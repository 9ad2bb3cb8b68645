"""The bounds of every debiaser's settings, by hand."""

import pytest

from droptop.debias import MEMBERS, IntensityConfig

from bounds import ABOVE_0, COUNT, FROM_0, NAN, PERCENT, SHARE, TINY, above, below, hold

OF_MEMBERS = {
    "droptop": {"gamma": PERCENT, "kappa_0": PERCENT},
    "mixstyle": {"share": SHARE, "alpha": ABOVE_0},
    "decouple": {"weight": FROM_0},
    "colour": dict.fromkeys(("brightness", "contrast", "saturation", "gray", "share"), SHARE)
    | {"hue": ([0.0, 0.5], [-TINY, above(0.5), NAN])},
    "randconv": {"share": SHARE, "kernel": ([1, 3, 5], [-1, 0, 2, 4])},
    "rsc": {"percent": PERCENT, "share": SHARE},
    "poe": {"weight": FROM_0, "rate": ([TINY, 1.0], [0.0, above(1.0), NAN]), "rounds": COUNT},
}


@pytest.mark.parametrize("member", MEMBERS)
def test_every_number_of_a_member_has_its_bounds(member):
    hold(MEMBERS[member].config_type, OF_MEMBERS[member], "" if member == "droptop" else f"{member}.")


def test_every_number_of_the_intensities_has_its_bounds():
    bounds = {
        "alpha": ([TINY, below(1.0)], [0.0, 1.0, NAN]),
        "period": COUNT,
        "history": ([2, 10**6], [1, 0]),
        "significance": ([TINY, below(0.5)], [0.0, 0.5, NAN]),
        "probe": ([0, 1], [-1]),
    }
    hold(IntensityConfig, bounds)
