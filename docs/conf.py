"""Sphinx configuration: ``sphinx-build -W docs docs/_build/html``."""

from importlib.metadata import version as installed_version

project = "dp_halfspace"
author = "the dp_halfspace developers"
version = release = installed_version("dp-halfspace")
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["dollarmath"]
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build"]
