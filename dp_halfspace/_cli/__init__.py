"""The command line: compare the estimators of the suite on built-in or own data."""

from dp_halfspace._cli.app import main

__all__ = ["main"]
