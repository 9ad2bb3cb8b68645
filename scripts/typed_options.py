"""Write src/droptop/typed_options.py: every option by name, with its type and meaning, for editors and type checkers.

python scripts/typed_options.py            writes it
python scripts/typed_options.py --check    exits with 1 where it is not what the configurations say
"""

import argparse
import dataclasses
import sys
import textwrap
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from droptop.debias import MEMBERS
from droptop.methods import METHODS
from droptop.options import help_of_fields
from droptop.runs.run_options import RunOptions
from droptop.streams import FAMILIES, STREAMS

FILE = Path(__file__).parent.parent / "src/droptop/typed_options.py"
NAMES = ("data", "method", "debias", "model", "first", "last")  # which functions take as arguments of their own
OF_STREAMS = ("limit", "root")  # options of `RunOptions` that make_stream takes
OF_LEARNERS = ("device", "weights", "pretrained", "precision", "compile")  # those that make_learner takes
USUAL = 5  # at least so many methods, streams or debiasers make a meaning the usual one
HEAD = '''"""Every option of the functions that take any, by name: what an editor offers and a type checker accepts.

Written by scripts/typed_options.py from the dataclasses of the options; `make check` holds that it is up to date.
Which of them a stream, method or debiaser has is checked when the function is called. Options of a file of your own
are passed as `**options`, a dict[str, Any].
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from droptop.trackers import Tracker
'''


class Option(NamedTuple):
    """Hold the types that an option may have, and its meanings with those that it has each of them for."""

    types: list[str]
    owners: dict[str, list[str]]

    def meaning(self) -> str:
        """Return what the option means: if it depends on the method or debiaser, the usual meaning first."""
        if len(self.owners) == 1:
            return next(iter(self.owners))
        parts = sorted(self.owners.items(), key=lambda part: -len(part[1]))
        return " ".join(text if len(whose) >= USUAL else f"{', '.join(whose)}: {text}" for text, whose in parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where the file is old")
    check, text = parser.parse_args().check, module()
    if not check:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        print(f"{FILE} is old: make pages writes it anew", file=sys.stderr)
        return 1
    return 0


def module() -> str:
    """Return the text of the module."""
    shared = options_of({"": RunOptions})
    shared["log"].types.insert(1, 'type["Tracker"]')
    of_streams, of_learners = ({name: shared[name] for name in names} for names in (OF_STREAMS, OF_LEARNERS))
    rest = {name: shared[name] for name in shared if name not in (*NAMES, *of_streams, *of_learners)}
    streams = {name: kind.config for name, kind in STREAMS.items()}
    for name in ("folder", "csv", "hf"):
        streams[f"{name}:{FAMILIES[name].takes}"] = FAMILIES[name].kind(FAMILIES[name].takes).config
    nets = {name: method.net_type for name, method in METHODS.items()}
    learners = {name: method.config_type for name, method in METHODS.items()}
    parts = [
        HEAD,
        typed_dict("StreamOptions", "TypedDict", "make_stream", options_of(streams) | of_streams),
        typed_dict("DebiasOptions", "TypedDict", "attach", options_of(members())),
        typed_dict(
            "LearnerOptions", "DebiasOptions", "make_learner", options_of(nets) | options_of(learners) | of_learners
        ),
        typed_dict("Options", "StreamOptions, LearnerOptions", "run, compare and configure", rest),
    ]
    return "\n\n".join(parts)


def members() -> dict[str, type]:
    """Return the settings of every debiaser by its name, and those within them."""
    kinds = {name: member.config_type for name, member in MEMBERS.items()}
    within = {f.name: f.type for f in dataclasses.fields(kinds["droptop"]) if dataclasses.is_dataclass(f.type)}
    return kinds | {name: kind for name, kind in within.items() if isinstance(kind, type)}


def options_of(kinds: dict[str, type]) -> dict[str, Option]:
    """Return the options that the dataclasses have, by name; `kinds` says whose each dataclass is."""
    found: dict[str, Option] = {}
    for owner, kind in kinds.items():
        hints, about = get_type_hints(kind), help_of_fields(kind)
        for name in (field.name for field in dataclasses.fields(kind)):
            if not dataclasses.is_dataclass(hints[name]):
                option = found.setdefault(name, Option([], {}))
                option.types.extend(part for part in written(hints[name]).split(" | ") if part not in option.types)
                option.owners.setdefault(about[name], []).append(owner)
    return found


def written(hint: Any) -> str:
    """Return a type as Python writes it; a path may also be given as a text."""
    if get_origin(hint) is Literal:
        values = ", ".join(f'"{value}"' for value in get_args(hint))
        return f"Literal[{values}]"
    if kinds := get_args(hint):
        return " | ".join(map(written, kinds))
    return {Path: "str | Path", NoneType: "None"}.get(hint, getattr(hint, "__name__", ""))


def typed_dict(name: str, bases: str, takers: str, options: dict[str, Option]) -> str:
    """Return the text of a class with such options."""
    lines = [f"class {name}({bases}, total=False):", f'    """List the options that {takers} may have."""', ""]
    for option, what in options.items():
        quoted = textwrap.wrap(f'"""{what.meaning()}"""', 116, break_on_hyphens=False, break_long_words=False)
        lines += [f"    {line}" for line in [f"{option}: {' | '.join(what.types)}", *quoted]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
