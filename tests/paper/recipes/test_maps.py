"""maps: which moments and images are drawn."""

import numpy as np

from droptop.paper.recipes import maps
from droptop.runs.records import Maps, Moment


def test_moments_are_evenly_spaced_from_the_first_to_the_last():
    moments = [Moment(step, 0, np.zeros((1, 2, 2)), None) for step in range(10)]
    assert maps.evenly_spaced(moments, 4) == [0, 3, 6, 9]
    assert maps.evenly_spaced(moments[:3], 4) == [0, 1, 2]


def test_maps_of_arms_that_differ_in_images_are_drawn():
    import matplotlib.pyplot as plt

    images = np.zeros((3, 4, 4, 3), np.uint8)
    more, fewer = (
        Maps(
            images[:count],
            list("abc")[:count],
            np.arange(count),
            None,
            [Moment(1, 0, np.zeros((3, 2, 2)), None), Moment(2, 0, np.zeros((2, 2, 2)), None)],
        )
        for count in (3, 2)
    )
    figure = maps.draw_maps({"none": more, "droptop": fewer})
    assert len(figure.axes) == 2 * 2 * 3  # two images, two arms, the image and two moments
    plt.close(figure)
