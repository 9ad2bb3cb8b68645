"""The paper's own numbers (Kim et al., AAAI-24), with its standard errors over five seeds.

Nothing here was measured by this package. Columns are in the order of the paper's tables; `relative` is its "Rel.
Improv.", in percent of the figure without DropTop; lower forgetting is an improvement too.
"""

from droptop.paper.tables import Mean

Place = tuple[str, str, str]  # stream, test set, figure

# The unbiased sets are tested on "after being trained on Split ImageNet-9" (section "Dataset Preparation"): they are
# test sets of that stream, not streams of their own.
IMAGENET_9 = ("split-imagenet9", "original")
ONLY_FG = ("split-imagenet9", "only_fg")
STYLIZED = ("split-imagenet9", "stylized")
CIFAR_10 = ("split-cifar10", "clean")
CIFAR_100 = ("split-cifar100", "clean")
BIASED, UNBIASED = (CIFAR_100, CIFAR_10, IMAGENET_9), (ONLY_FG, STYLIZED)

TABLE_1 = """
er         none      25.3±0.2  19.2±0.3  55.4±0.3  39.9±2.4  46.1±0.2  55.8±1.8  32.8±0.4  45.0±1.5  39.3±0.3  49.7±0.9
er         droptop   26.5±0.2  18.3±1.3  61.0±0.6  37.6±1.9  48.9±0.4  44.0±3.8  35.9±0.9  47.8±3.7  41.3±0.1  38.9±2.6
er         relative       4.4       4.9      10.2       5.7       6.1      21.1       9.4      -6.2       5.1      21.8
derpp      none      23.6±0.3  33.4±0.7  59.8±0.8  28.2±1.5  44.2±1.0  63.0±4.6  33.2±0.5  61.6±2.1  37.8±0.7  60.3±3.2
derpp      droptop   25.1±0.3  31.1±1.2  62.6±0.7  23.7±1.0  45.4±0.5  60.7±5.1  34.5±0.7  54.9±3.2  39.7±0.4  58.9±4.1
derpp      relative       6.4       6.9       4.7      16.0       2.8       3.6       3.7      11.0       4.9       2.4
mir        none      20.8±0.6  25.3±1.7  51.5±0.5  58.4±1.3  39.3±1.2  41.1±2.0  32.1±0.4  38.9±3.1  34.0±1.0  40.7±1.6
mir        droptop   22.4±0.1  24.8±1.0  51.6±0.6  56.3±1.6  42.0±0.9  39.3±4.5  35.4±1.4  36.0±3.1  36.1±0.6  38.3±3.4
mir        relative       8.1       1.9       0.2       3.7       6.8       4.4      10.4       7.5       6.0       6.0
gss        none      21.8±0.3  27.9±0.8  46.0±0.4  69.7±0.7  40.3±0.6  71.5±2.0  34.5±0.9  65.6±0.7  35.3±0.7  64.2±1.9
gss        droptop   23.7±0.2  28.4±1.0  49.1±0.5  69.2±1.5  41.3±0.6  68.5±1.9  36.5±0.7  61.6±1.8  35.9±0.4  62.3±2.3
gss        relative       8.8      -1.7       6.5       0.6       2.3       4.2       5.9       6.1       1.8       2.9
aser       none      32.7±0.1  41.8±0.4  50.3±0.5  57.8±3.3  39.7±0.7  62.6±2.1  30.2±0.2  60.2±0.9  33.6±0.5  56.8±1.1
aser       droptop   33.4±0.4  39.5±0.8  51.3±0.3  57.5±0.8  41.6±0.8  57.5±3.2  31.2±0.2  49.6±2.8  35.5±0.4  52.6±2.5
aser       relative       2.3       5.3       2.0       0.4       4.8       8.2       3.4      17.7       5.7       7.3
"""

TABLE_2 = """
l2p        none      95.3±0.7  12.6±1.9  91.0±0.7  20.6±2.2  87.7±0.5  25.8±1.8
l2p        droptop   97.1±0.4   5.6±1.1  92.9±0.4  12.7±0.6  89.7±0.8  18.3±1.0
l2p        relative       1.9      55.4       2.1      38.3       2.3      28.9
dualprompt none      96.1±0.6   9.9±1.4  90.8±1.2  20.0±2.0  86.3±1.5  29.2±2.4
dualprompt droptop   97.5±0.3   3.7±0.8  93.5±0.5   9.8±0.5  89.9±0.6  16.6±0.8
dualprompt relative       1.5      63.2       2.9      51.0       4.2      43.1
"""

TABLE_F = """
l2p        none      72.3±0.6  81.5±1.2  24.3±0.9  85.8±1.1  92.2±1.3  16.6±1.4
l2p        droptop   74.3±0.7  82.1±0.6  21.9±1.1  89.3±0.7  94.0±0.2  12.2±0.8
l2p        relative       2.7       0.7       9.9       4.0       1.9      26.7
dualprompt none      73.5±0.5  83.2±0.8  22.5±0.8  89.5±1.6  94.9±1.3  11.8±0.7
dualprompt droptop   74.0±0.4  82.7±0.4  21.5±0.6  90.5±0.4  95.0±0.2  10.5±0.5
dualprompt relative       0.7      -0.6       4.5       1.2       0.1      11.2
"""


def _read(
    text: str, sets: tuple[tuple[str, str], ...], figures: tuple[str, ...]
) -> dict[tuple[str, str, Place], tuple[float, ...]]:
    """Return figures and their errors by method, arm and place; the columns are the figures of each set in turn."""
    places = [(*test_set, figure) for test_set in sets for figure in figures]
    values = {}
    for line in text.strip().splitlines():
        method, arm, *cells = line.split()
        for place, cell in zip(places, cells, strict=True):
            values[method, arm, place] = tuple(map(float, cell.split("±")))
    return values


_FIGURES = (
    _read(TABLE_1, (*BIASED, *UNBIASED), ("A_avg", "F_last"))
    | _read(TABLE_2, (IMAGENET_9, *UNBIASED), ("A_avg", "F_last"))
    | _read(TABLE_F, (CIFAR_100, CIFAR_10), ("A_last", "A_avg", "F_last"))
)


def figure(method: str, debias: str, place: Place) -> Mean | None:
    """Return a figure of Table 1, Table 2 or appendix F, with or without DropTop; None where the paper has none."""
    value = _FIGURES.get((method, debias, place))
    return None if value is None else Mean(value[0], value[1])


def relative(method: str, place: Place) -> float | None:
    """Return the paper's relative improvement of such a figure, in percent; None where the paper has none."""
    value = _FIGURES.get((method, "relative", place))
    return None if value is None else value[0]


# A_avg, mean over the biased sets (Table 3) and over the unbiased ones (appendix E): no fusion, random, fixed, DropTop.
ABLATION = {
    "er": (43.8, 43.9, 44.1, 45.5),
    "derpp": (42.0, 41.6, 43.4, 44.4),
    "mir": (38.0, 37.8, 39.3, 38.7),
    "gss": (34.7, 34.8, 37.0, 38.0),
    "aser": (40.5, 41.4, 40.5, 42.1),
}
ABLATION_MEAN, ABLATION_DEGRADED = (39.8, 39.9, 40.9, 41.7), (-4.9, -4.5, -2.1)
ABLATION_UNBIASED = {  # by Table 1 the last of ER's is 38.6, not 39.4: the mean of 35.9 and 41.3; the others agree
    "er": (35.2, 38.1, 39.1, 39.4),
    "derpp": (34.0, 33.7, 38.0, 37.1),
    "mir": (33.1, 32.3, 36.6, 35.8),
    "gss": (33.4, 32.2, 32.4, 36.2),
    "aser": (33.0, 31.7, 33.1, 33.4),
}
ABLATION_UNBIASED_MEAN, ABLATION_UNBIASED_DEGRADED = (33.7, 33.6, 35.8, 36.4), (-7.9, -8.3, -1.6)

# ER with DropTop on Split CIFAR-10 (appendix E): A_avg and F_last; how much worse than DropTop, in percent of DropTop.
DESIGN = {
    "soft": {"A_avg": Mean(60.3, 0.4), "F_last": Mean(40.4, 3.1)},
    "common": {"A_avg": Mean(57.6, 0.1), "F_last": Mean(42.7, 1.6)},
    "droptop": {"A_avg": Mean(61.0, 0.6), "F_last": Mean(37.6, 1.9)},
}
DEGRADED = {"soft": {"A_avg": 1.1, "F_last": 7.4}, "common": {"A_avg": 5.6, "F_last": 13.6}}

# ER on Split CIFAR-10: percent of the adjustments of kappa that a reference of two models makes too; A_avg of both.
AGREEMENT, ONE_MODEL, TWO_MODELS = Mean(82.1, 0.6), Mean(61.0, 0.6), Mean(61.5, 0.2)

# ER trained on backgrounds alone and on foregrounds alone (appendix B): A_1 .. A_4, A_avg, F_last, and the accuracy of
# ordinary training.
IMPACT = {
    "only_bg": (
        Mean(54.4, 2.2),
        Mean(35.4, 1.7),
        Mean(21.6, 1.6),
        Mean(16.3, 0.8),
        Mean(31.9, 1.2),
        Mean(45.6, 1.7),
        Mean(28.4, 1.6),
    ),
    "only_fg": (
        Mean(54.0, 0.3),
        Mean(37.3, 2.3),
        Mean(24.9, 0.6),
        Mean(21.2, 0.6),
        Mean(34.4, 0.6),
        Mean(40.5, 1.6),
        Mean(29.1, 0.4),
    ),
}
IMPACT_RELATIVE = (-0.8, 5.5, 15.4, 29.6, 7.6, 11.1, 2.7)

# ER on Split ImageNet-9 (appendix E): GPU memory in GB, minutes.
OVERHEAD = {"none": (4.509, 42.55), "droptop": (4.563, 49.26)}
