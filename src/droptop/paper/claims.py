"""The table that most of the paper's claims come to: a method with DropTop against the same without, on test sets that
the paper has too, our figures beside its own, and a word for each.
"""

from collections.abc import Sequence

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, difference, mean, paired, relative
from droptop.paper.tables import ITALICS, UNQUOTED, VERDICT, Column, Percent, Table, Value
from droptop.paper.verdict import Word, gap, together, word
from droptop.sweeps.grid import folder_name

METHODS = {
    "er": "ER",
    "derpp": "DER++",
    "mir": "MIR",
    "gss": "GSS",
    "aser": "ASER",
    "l2p": "L2P",
    "dualprompt": "DualPrompt",
}
STREAMS = {
    "split-cifar10": "Split CIFAR-10",
    "split-cifar100": "Split CIFAR-100",
    "split-imagenet9": "Split ImageNet-9",
    "split-tiny-imagenet9": "Tiny-ImageNet-9",
}
# Whose claims a stream can be held against; it is named as what it is all the same.
STANDS_FOR: dict[str, str] = {"split-tiny-imagenet9": "split-imagenet9"}

# Test sets by whether shortcuts can be trusted there: the paper's, and those of the streams that are built in.
BIASED = (*quoted.BIASED, ("fashion", "clean"), ("fashion-sticker", "biased"), ("fashion-background", "biased"))
UNBIASED = (
    *quoted.UNBIASED,
    *((data, test) for data in ("fashion-sticker", "fashion-background") for test in ("removed", "random")),
)

COLUMNS = (
    Column("stream, test set", "label"),
    Column("method", "label"),
    Column("figure", "label"),
    Column("none: paper", "quoted"),
    Column("DropTop: paper", "quoted"),
    Column("gain: paper", "quoted"),
    Column("none: here"),
    Column("DropTop: here"),
    Column("n"),
    Column("difference: here"),
    Column("gain: here"),
    Column("verdict", "verdict"),
    Column("claim", "verdict"),
)
MEANING = (
    "Percent, mean ± standard error over n seeds. A difference is DropTop minus none, paired by seed, with its "
    "95% interval and two-sided p-value; **bold** where p < 0.05 (the CSV also has p-values corrected for the "
    'whole table, p_holm). F_last is forgetting: lower is better. Gain is the paper\'s "Rel. Improv.", in '
    "percent of the figure without DropTop."
)


def stream_name(data: str) -> str:
    return STREAMS.get(data, data)


def set_name(data: str, test: str) -> str:
    """A stream and one of its test sets, as what they are."""
    return stream_name(data) + ("" if test in ("clean", "original", "test") else f", {test}")


def suffix(results: CellResults, data: str) -> str:
    """What sets the files of one stream apart where there are several; the same for each, whichever comes first."""
    return "" if len(results.scope.data) == 1 else file_name(data)


def file_name(text: str) -> str:
    """A name as a part of a file's."""
    return "".join(letter if letter.isalnum() else "-" for letter in text)


def place(data: str, test: str, figure: str) -> quoted.Place:
    """Where the paper has it."""
    return STANDS_FOR.get(data, data), test, figure


def tests_of(results: CellResults, cell: dict[str, str], sets: Sequence[tuple[str, str]]) -> list[str]:
    """The test sets to show of a cell's stream."""
    return known_tests(cell["data"], results.tests(cell), sets)


def known_tests(data: str, there: list[str], sets: Sequence[tuple[str, str]]) -> list[str]:
    """Those of a stream's test sets that are among these, or all where none is."""
    known = [test for name, test in sets if name == STANDS_FOR.get(data, data)]
    return [test for test in known if test in there] or there


def shown_sets(results: CellResults) -> list[tuple[str, str]]:
    """Streams with their test sets, of whatever cells are there: first the paper's biased ones, then its unbiased ones;
    or all where it has none of them."""
    sets = []
    for data in results.scope.data:
        there = {
            test: None
            for config in results.configs
            if config.options.data == data
            for result in results.results[folder_name(config)].values()
            for test in result["tests"]
        }
        sets += [(data, test) for test in known_tests(data, list(there), (*BIASED, *UNBIASED))]
    return sets


def stand_in_notes(streams: Sequence[str]) -> list[str]:
    return [
        f"{stream_name(data)} stands in for {stream_name(STANDS_FOR[data])}: the paper's figures are of other "
        "images, and larger ones."
        for data in streams
        if data in STANDS_FOR
    ]


def about(used: Sequence[tuple[str, str]], sets: Sequence[tuple[str, str]]) -> bool:
    """Are these test sets, or what they stand in for, exactly those that a figure of the paper is of?"""
    return sorted((STANDS_FOR.get(data, data), test) for data, test in used) == sorted(sets)


def unquoted(used: Sequence[tuple[str, str]], sets: Sequence[tuple[str, str]]) -> str:
    """Says that the paper's figures are of other test sets than these."""
    ours, theirs = (", ".join(set_name(*one) for one in several) for several in (used, sets))
    are = "means over" if len(sets) > 1 else "of"
    return f"{UNQUOTED} of {ours or 'nothing'}: the paper's figures are {are} {theirs}."


def claims(
    results: CellResults, title: str, sets: Sequence[tuple[str, str]], figures: Sequence[str] = ("A_avg", "F_last")
) -> Table:
    """Every method with and without DropTop on these test sets; where the scope has other streams, on all of theirs."""
    rows: list[list[Value]] = []
    for data in results.scope.data:
        tests = {
            test: None
            for method in results.scope.methods
            for test in tests_of(results, {"data": data, "method": method, "debias": "none"}, sets)
        }
        for test in tests:
            for method in results.scope.methods:
                block = [claim_row(results, data, test, method, figure) for figure in figures]
                words: list[Word] = [verdict for _, verdict in block if verdict is not None]
                for number, (row, verdict) in enumerate(block):
                    said = together(words) if words and number == 0 else ""
                    rows.append(
                        [
                            set_name(data, test) if number == 0 else "",
                            METHODS[method] if number == 0 else "",
                            *row,
                            verdict or "",
                            said,
                        ]
                    )
    return Table(title, COLUMNS, rows, [MEANING, ITALICS, VERDICT, *stand_in_notes(results.scope.data)])


def claim_row(results: CellResults, data: str, test: str, method: str, figure: str) -> tuple[list[Value], Word | None]:
    """One figure of both arms, as the paper has it and as measured; the verdict where the paper says something."""
    where = place(data, test, figure)
    before, after = (quoted.figure(method, arm, where) for arm in ("none", "droptop"))
    plain, debiased = paired(
        *(results.series({"data": data, "method": method, "debias": arm}, test, figure) for arm in ("none", "droptop"))
    )
    effect = difference(plain, debiased)
    paper = gap(before, after)
    verdict = None if paper is None else word(paper, effect)
    return [
        figure,
        before,
        after,
        Percent(quoted.relative(method, where)),
        mean(plain),
        mean(debiased),
        effect.n,
        effect,
        Percent(relative(plain, debiased, figure)),
    ], verdict
