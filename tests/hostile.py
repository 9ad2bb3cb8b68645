"""Names that somebody may have thought of to harm whoever looks at results, and what no output may hold."""

import unicodedata

from hypothesis import strategies as st

PIECES = [
    *("\x1b[31m", "\x1b[2J", "\x1b[1A", "\x1b]0;owned\x07", "\x1b]8;;https://x.y\x1b\\", "\x1bP1$tx\x1b\\", "\x9b31m"),
    *("\x07", "\x08\x08\x08", "\r", "\n", "\ndroptop: all is well", "\t", "\x00", "\x7f", "\x85", "\x0b", "\ufeff"),
    *("\u202e", "\u2066", "\u200f", "\u2028", "\u200b", "\U000e0041", "\ud800", "\udcff"),
    *(
        "[bold]",
        "[/]",
        "[link=https://x.y]z[/link]",
        "[red on blue]",
        "[",
        "\\[",
        ":smile:",
        "{0}",
        "{task}",
        "%s",
        "%(x)s",
    ),
    *("</script><script>window.marked=1</script>", "<img src=x onerror=window.marked=1>", "<!--", "]]>", "&lt;", "'\""),
    *("javascript:window.marked=1", "{{ 7 * 7 }}", "{% raw %}", "${window.marked=1}", "`", "datum['x']", "var(--ink)"),
    *("=1+1", "=cmd|' /C calc'!A0", "+1", "-1", "-1+1", "@SUM(1)", "＝1", "\t=1", ";", ",", '"', "|", "a|b"),
    *("$x$", "$\\frac{", "$$", "\\input{x}", "\\", "_hidden", "^", "#", "~", "%"),
    *("__proto__", "constructor", "toString", "none", "p", "verdict", "figure", "NaN", "null", "..", "-", "--out", "~"),
    *("é", "猫", "🙂", "ﷺ", "a\u0301" * 3, "x" * 300, " ", "dog"),
]


def names(count: int, on_disk: bool = False) -> st.SearchStrategy[list[str]]:
    """So many different names; those that may stand in a path or a text file, if asked for."""
    letters = st.text(st.characters(), max_size=4)
    one = st.lists(st.one_of(*[st.sampled_from(PIECES)] * 4, letters), min_size=1, max_size=4).map("".join)
    one = one.map(file_name).filter(lambda name: name.strip(". ") != "") if on_disk else one.filter(bool)
    return st.lists(one, min_size=count, max_size=count, unique_by=lambda name: name.strip().casefold())


def file_name(name: str) -> str:
    """What is left of a name that a file may have, of at most 60 letters."""
    kept = "".join(letter for letter in name if letter not in "/\0" and not "\ud800" <= letter <= "\udfff")
    return kept[:60].strip().lstrip(".").encode()[:200].decode(errors="ignore").strip()


def steering(text: str) -> set[str]:
    """The characters of a text that a terminal obeys, or that hide or turn others; a line's end is none of them."""
    return {
        letter
        for letter in text
        if (unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") and letter != "\n")
        or unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    }
