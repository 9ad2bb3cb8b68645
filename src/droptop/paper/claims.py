"""The table that most of the paper's claims come to: methods with DropTop against the same methods without.

Every row has our figures beside the paper's where it tests on the same test set, and a verdict; `variants.py` has the
other kind of table.
"""

from collections.abc import Sequence

from droptop.paper import quoted
from droptop.paper.cell_results import CellResults, difference, mean, paired, relative
from droptop.paper.tables import ITALICS, UNQUOTED, VERDICT, Column, Percent, Table, Value
from droptop.paper.verdict import Verdict, gap, judge, overall
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
# The stream whose figures in the paper a stand-in is compared with; tables name the stand-in.
STANDS_FOR: dict[str, str] = {"split-tiny-imagenet9": "split-imagenet9"}

# Test sets on which shortcuts hold, and on which they do not: the paper's, and those of the built-in streams.
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
    """Return a stream's name in tables."""
    return STREAMS.get(data, data)


def set_name(data: str, test: str) -> str:
    """Return the name of a stream's test set in tables."""
    return stream_name(data) + ("" if test in ("clean", "original", "test") else f", {test}")


def suffix(results: CellResults, data: str) -> str:
    """Return the suffix of one stream's files: empty where the scope has no other stream.

    It does not depend on the order of the streams, so that a later call for some of them overwrites no other's file.
    """
    return "" if len(results.scope.data) == 1 else file_name(data)


def file_name(text: str) -> str:
    """Return the text with everything but letters and digits replaced by dashes."""
    return "".join(letter if letter.isalnum() else "-" for letter in text)


def place(data: str, test: str, figure: str) -> quoted.Place:
    """Return where the paper has this figure, or that of the stream it stands in for."""
    return STANDS_FOR.get(data, data), test, figure


def tests_of(results: CellResults, cell: dict[str, str], sets: Sequence[tuple[str, str]]) -> list[str]:
    """Return the test sets to show of a cell's stream."""
    return known_tests(cell["data"], results.test_sets(cell), sets)


def known_tests(data: str, tests: list[str], sets: Sequence[tuple[str, str]]) -> list[str]:
    """Return those of a stream's test sets that are among `sets`, or all where none is."""
    known = [test for name, test in sets if name == STANDS_FOR.get(data, data)]
    return [test for test in known if test in tests] or tests


def shown_sets(results: CellResults) -> list[tuple[str, str]]:
    """Return streams with the test sets that any finished cell has: the paper's biased ones, then its unbiased ones.

    Of a stream of which the paper has no test set, all are returned.
    """
    sets = []
    for data in results.scope.data:
        tests = {
            test: None
            for config in results.configs
            if config.options.data == data
            for result in results.finished[folder_name(config)].values()
            for test in result["tests"]
        }
        sets += [(data, test) for test in known_tests(data, list(tests), (*BIASED, *UNBIASED))]
    return sets


def stand_in_notes(streams: Sequence[str]) -> list[str]:
    """Return a note for each stream that stands in for one of the paper's."""
    return [
        f"{stream_name(data)} stands in for {stream_name(STANDS_FOR[data])}: the paper's figures are of other "
        "images, and larger ones."
        for data in streams
        if data in STANDS_FOR
    ]


def same_sets(used: Sequence[tuple[str, str]], sets: Sequence[tuple[str, str]]) -> bool:
    """Return whether these test sets, or what they stand in for, are exactly those of a figure of the paper."""
    return sorted((STANDS_FOR.get(data, data), test) for data, test in used) == sorted(sets)


def unquoted_note(used: Sequence[tuple[str, str]], sets: Sequence[tuple[str, str]]) -> str:
    """Return the note that the paper's figures are of other test sets than these."""
    ours, theirs = (", ".join(set_name(data, test) for data, test in group) for group in (used, sets))
    are = "means over" if len(sets) > 1 else "of"
    return f"{UNQUOTED} of {ours or 'nothing'}: the paper's figures are {are} {theirs}."


def claims_table(
    results: CellResults, title: str, sets: Sequence[tuple[str, str]], figures: Sequence[str] = ("A_avg", "F_last")
) -> Table:
    """Return the table of every method with and without DropTop on these test sets.

    A stream that has none of them is shown on all of its own.
    """
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
                verdicts: list[Verdict] = [verdict for _, verdict in block if verdict is not None]
                claim = overall(verdicts) if verdicts else ""
                labels = set_name(data, test), METHODS[method]
                for number, (row, verdict) in enumerate(block):
                    first = number == 0
                    rows.append([*(labels if first else ("", "")), *row, verdict or "", claim if first else ""])
    return Table(title, COLUMNS, rows, [MEANING, ITALICS, VERDICT, *stand_in_notes(results.scope.data)])


def claim_row(
    results: CellResults, data: str, test: str, method: str, figure: str
) -> tuple[list[Value], Verdict | None]:
    """Return one figure of both arms, quoted and measured, and the verdict; None where the paper has no such figure."""
    where = place(data, test, figure)
    before, after = (quoted.figure(method, arm, where) for arm in ("none", "droptop"))
    plain, debiased = paired(
        *(results.series({"data": data, "method": method, "debias": arm}, test, figure) for arm in ("none", "droptop"))
    )
    effect = difference(plain, debiased)
    paper = gap(before, after)
    verdict = None if paper is None else judge(paper, effect)
    row: list[Value] = [
        figure,
        before,
        after,
        Percent(quoted.relative(method, where)),
        mean(plain),
        mean(debiased),
        effect.n,
        effect,
        Percent(relative(plain, debiased, figure)),
    ]
    return row, verdict
