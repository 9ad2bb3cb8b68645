"""Functions and classes of droptop as Markdown: signatures as they stand in the source, docstrings by section."""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, get_overloads

from pages_tables import cell

import droptop
from droptop.options import help_of_fields

LINE = 88  # columns of a signature; a longer one has a line per parameter
SECTION = re.compile(r"^(Args|Returns|Raises|Yields):$")


def described(name: str, members: Sequence[str]) -> str:
    """Return what a public name is; `members` are those of a class that are shown, all that are public by default."""
    thing = getattr(droptop, name.removeprefix("droptop."))
    title = thing.__name__
    if not inspect.isclass(thing):
        return "\n\n".join([f"### {title}", block(signatures(thing, title)), *docstring(thing)])
    parts = [f"### {title}"]
    told = thing.__init__.__doc__ if "__init__" in vars(thing) and not dataclasses.is_dataclass(thing) else ""
    if dataclasses.is_dataclass(thing) or "Args:" in f"{thing.__doc__}{told}":  # others are made by droptop
        parts.append(block([signature(made_by(thing), title)]))
    parts += [*docstring(thing), *(docstring(thing.__init__) if told else [])]
    if dataclasses.is_dataclass(thing) and help_of_fields(thing):
        parts.append(fields_table(thing))
    for member, function in functions_of(thing).items():
        if member in members or not members:
            is_value = isinstance(vars(thing)[member], property | cached_property)
            called = "" if is_value else signature(definition(function), member)
            heading = f"#### {title}.{member}"
            parts += [heading, *([block([called])] if called else []), *docstring(function)]
    return "\n\n".join(parts)


def functions_of(kind: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods and properties of a class, in the order of its source, and their functions."""
    found = {}
    for name, member in vars(kind).items():
        function = getattr(member, "fget", None) or getattr(member, "func", None) or member
        if isinstance(function, FunctionType) and not name.startswith("_") and function.__doc__:
            found[name] = function
    return found


def signatures(function: Callable[..., Any], title: str) -> list[str]:
    """Return the signature of a function, or those of its overloads."""
    return [signature(definition(each), title) for each in get_overloads(function) or [function]]


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the definition of a function as it stands in the source."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


def made_by(kind: type) -> ast.FunctionDef:
    """Return the definition by which a class is made: its `__init__`, or its fields."""
    if not dataclasses.is_dataclass(kind):
        return definition(kind.__init__)  # type: ignore[misc]
    fields = [
        each
        for base in reversed(kind.__mro__[:-1])
        for each in ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        if isinstance(each, ast.AnnAssign)
    ]
    by_name = {ast.unparse(each.target): each for each in fields}
    listed = ", ".join(ast.unparse(each) for each in by_name.values())
    (made,) = ast.parse(f"def {kind.__name__}({listed}): ...").body
    assert isinstance(made, ast.FunctionDef)
    return made


def signature(function: ast.FunctionDef, title: str) -> str:
    """Return how something is called, in a line or with a line per parameter."""
    arguments = function.args
    bare = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(bare) - len(arguments.defaults)) + [*arguments.defaults]
    listed = [parameter(each, default) for each, default in zip(bare, defaults) if each.arg not in ("self", "cls")]
    listed += [f"*{parameter(arguments.vararg, None)}"] if arguments.vararg else ["*"] * bool(arguments.kwonlyargs)
    listed += [parameter(each, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    listed += [f"**{parameter(arguments.kwarg, None)}"] if arguments.kwarg else []
    returned = f" -> {plain(function.returns)}" if function.returns and function.name != "__init__" else ""
    line = f"{title}({', '.join(listed)}){returned}"
    if len(line) <= LINE:
        return line
    return "\n".join([f"{title}(", *(f"    {each}," for each in listed), f"){returned}"])


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    """Return a parameter with its type and default."""
    kind = f": {plain(argument.annotation)}" if argument.annotation else ""
    made = ast.unparse(default).replace("'", '"') if default else ""
    made = re.sub(r"^field\(default_factory=(\w+)\)$", r"\1()", made)
    return f"{argument.arg}{kind}{' = ' if kind else '='}{made}" if made else f"{argument.arg}{kind}"


def plain(hint: ast.expr | None) -> str:
    """Return a type as it stands in the source, without the quotes of a name that comes later."""
    return "" if hint is None else re.sub(r"^'(\w+)'$", r"\1", ast.unparse(hint)).replace("'", '"')


def block(lines: Sequence[str]) -> str:
    """Return lines as a block of text."""
    return "\n".join(["```text", *lines, "```"])


def docstring(thing: Any) -> list[str]:
    """Return a docstring as paragraphs of Markdown: of a section, its entries as a list."""
    paragraphs, section = list[str](), ""
    for paragraph in re.split(r"\n\n+", inspect.cleandoc(thing.__doc__ or "")):
        head, _, rest = paragraph.partition("\n")
        if match := SECTION.match(head):
            section = match[1]
            paragraphs.append(listed(section, textwrap.dedent(rest)))
        else:
            paragraphs.append(paragraph if section == "" and "    " in paragraph else " ".join(paragraph.split()))
    return paragraphs


def listed(section: str, text: str) -> str:
    """Return the entries of a section: those of arguments and errors by name."""
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?! )", text)]
    if section in ("Returns", "Yields"):
        return f"{section}: {' '.join(entries)}"
    named = [re.sub(r"^([\w*, ]+?): ", lambda name: f"`{name[1]}`: ", entry) for entry in entries]
    return "\n".join([f"{section}:", "", *(f"- {entry}" for entry in named)])


def fields_table(kind: type) -> str:
    """Return what the fields of a dataclass mean."""
    lines = [f"| `{name}` | {cell(text)} |" for name, text in help_of_fields(kind).items()]
    return "\n".join(["| field | |", "|---|---|", *lines])
