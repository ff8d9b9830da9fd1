"""The command line: a demonstration, and private models of the user's own tables."""

from dp_halfspace._cli.app import main

__all__ = ["main"]
