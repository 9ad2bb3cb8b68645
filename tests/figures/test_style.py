import warnings

import matplotlib.pyplot as plt

from droptop.figures import style


def test_letters_that_a_font_lacks_give_one_warning(tmp_path):
    """So that whoever shows every warning once shows one, not one a letter."""
    figure = plt.figure()
    figure.suptitle("猫 and 犬")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        style.save(figure, tmp_path, "letters")
    assert {str(each.message) for each in told} == {style.LACKING}
    assert (tmp_path / "figures/letters.png").stat().st_size > 1000
