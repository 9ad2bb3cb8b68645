"""What `import droptop` gives, and which words no name in the source is."""

import ast
import importlib
from pathlib import Path

import pytest

import droptop


def test_public_names_are_where_they_are_said_to_be():
    """Type checkers read one list, Python another."""
    tree = ast.parse(Path(droptop.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    checked = {(node.module.removeprefix("droptop."), name.name) for node in block.body for name in node.names}
    assert checked == {(home, name) for home, names in droptop._HOMES.items() for name in names}
    assert sorted(droptop.__all__) == sorted(name for _, name in checked)
    assert set(droptop.__all__) <= set(dir(droptop))
    for home, name in checked:
        assert getattr(droptop, name) is getattr(importlib.import_module(f"droptop.{home}"), name)
    modules = {path.stem for path in Path(droptop.__file__).parent.iterdir()}
    assert not modules & set(droptop.__all__)  # importing such a module would hide the name
    with pytest.raises(AttributeError, match="has no attribute 'atach'"):
        droptop.atach  # noqa: B018


# Words that once meant something of their own here, each of which a newcomer reads in another way.
PRIVATE = {
    "cook", "book", "notebook", "found", "exhibits", "look", "looks", "portrait", "trained", "free", "resident",
    "together", "lane", "taps", "fusing", "tree", "stored", "own",
}  # fmt: skip
SOURCE = Path(droptop.__file__).parent


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_class_or_function_has_a_private_name(path):
    defined = [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    names = {name.strip("_").lower() for name in (*path.relative_to(SOURCE).with_suffix("").parts, *defined)}
    assert not names & PRIVATE
