"""The command line, a file a command; `main` says which there are."""

from droptop.cli.main import main

__all__ = ["main"]
