"""The command line: a file per command; `main` names them."""

from droptop.cli.main import main

__all__ = ["main"]
