import pytest

from droptop.report.page.answer import headline
from droptop.report.tables import contenders

NOTHING = "no significant difference"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"a": {"x": "better"}}, "On fashion, a helps er on x."),
        ({"a": {"x": NOTHING}}, "No significant difference between er with a and without on fashion."),
        ({"a": {"x": NOTHING}, "b": {"x": "worse"}}, "None of 2 arms helps er on fashion by a significant difference."),
        ({"a": {"x": "better"}, "b": {"x": "better"}}, "The best of 2 arms: on fashion, a helps er on x."),
        # The arm that is ahead on average helps by no significant difference, but another one does.
        ({"a": {"x": NOTHING}, "b": {"x": "better"}}, "The best of 2 arms: on fashion, b helps er on x."),
    ],
)
def test_the_headline_names_the_best_arm_that_helps(words, said):
    assert headline(list(words), "er", "fashion", words) == said


def test_plain_arms_of_equal_cost_do_not_contend():
    assert contenders(["equal-robust", "robust", "equal-footing", "droptop"]) == ["robust", "equal-footing", "droptop"]
