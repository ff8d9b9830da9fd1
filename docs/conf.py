"""Sphinx configuration: ``sphinx-build -W docs docs/_build/html``."""

import logging
import re
import sys
import warnings
from pathlib import Path
from typing import Any

# The pages belong to the code beside them, whatever else is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dp_halfspace

ROOT = Path(__file__).resolve().parents[1]

# The examples fit simulated tables many times.
warnings.filterwarnings("ignore", category=dp_halfspace.RepeatedFitWarning)


def addresses(project: str) -> dict[str, str]:
    """Read the addresses that the text of pyproject.toml states: the one place to state them."""
    return dict(re.findall(r'^(Repository|Documentation) = "(https://[^"]+?)/?"$', project, re.M))


def links(found: dict[str, str]) -> dict[str, Any]:
    """Return the settings that the addresses turn on; none without them.

    A repository gives every page an "Edit on" button and the header its link; the address of the
    documentation is the root of the links of the 404 page.
    """
    settings: dict[str, Any] = {}
    if "Documentation" in found:
        settings["html_baseurl"] = found["Documentation"] + "/"
    if "Repository" in found:
        host, owner, name = found["Repository"].removeprefix("https://").split("/", 2)
        kind = "gitlab" if "gitlab" in host else "github"
        settings["html_context"] = {
            f"{kind}_url": f"https://{host}",
            f"{kind}_user": owner,
            f"{kind}_repo": name,
            f"{kind}_version": "main",
            "doc_path": "docs",
        }
        settings["html_theme_options"] = {
            "use_edit_page_button": True,
            f"{kind}_url": found["Repository"],
        }
    return settings


project = "dp_halfspace"
author = "the dp_halfspace developers"
version = release = dp_halfspace.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath"]
# Headings of pages may be linked to.
myst_heading_anchors = 3
autosummary_generate = True
# A name in single backticks is a link where the reference has it.
default_role = "autolink"
numpydoc_show_class_members = False
# The sections of a docstring state types; a signature with them fills a screen.
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
html_theme = "pydata_sphinx_theme"
html_title = "dp_halfspace"
html_theme_options = {
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "footer_start": ["copyright", "release"],
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
}
exclude_patterns = ["_build", "_templates", "examples"]
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
# Light or dark as the reader's system is, until a reader chooses.
html_context = {"default_mode": "auto"}
html_search_scorer = str(ROOT / "docs" / "_templates" / "scorer.js")
copybutton_exclude = ".linenos, .gp, .go"
# What a block prints has no button.
copybutton_selector = "div.highlight-python pre, div.highlight-bash pre"
html_extra_path = ["llms.txt"]
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "min_reported_time": 1e9,
    # The page of run times asks for scripts of other sites.
    "write_computation_times": False,
    "show_memory": False,
    "abort_on_example_error": True,
}

_linked = links(addresses((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
html_theme_options |= _linked.pop("html_theme_options", {})
html_context |= _linked.pop("html_context", {})
globals().update(_linked)

_REFERENCE = re.compile(r":ref:`([^`<]*?)\s*<[^`>]*>`")
_PAGE = re.compile(r"``docs/([a-z_/]+)\.md``")


def _with_links(*event: Any) -> None:
    """Let a page that a docstring names be a link, and keep only the text of other references.

    Those are in docstrings that are inherited from scikit-learn, and refer to pages of its own.
    """
    lines = event[-1]
    lines[:] = [_PAGE.sub(r":doc:`/\1`", _REFERENCE.sub(r"\1", line)) for line in lines]


def _without_defaults(*event: Any) -> bool | None:
    """Skip defaults of parameters and fields, which are attributes of a class but say nothing."""
    return True if event[3] is None or isinstance(event[3], str | float | int) else None


_NAME = re.compile(r'(?<=<span class="pre">)[^<]+(?=</span>)')
_PART = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


_FORMULA = re.compile(r'<(pre|code|script)\b.*?</\1>|<(span|div) class="math.*?</\2>', re.DOTALL)


# A logger below that of Sphinx, whose warnings `-W` makes errors.
_LOG = logging.getLogger("sphinx.dp_halfspace")


def unread_formulas(body: str) -> list[str]:
    """Return the text around dollar signs that are in no formula and in no code of a page."""
    return re.findall(r".{0,40}\$.{0,40}", _FORMULA.sub("", body))


def _with_breaks(*event: Any) -> None:
    """Let the names of classes be broken between their words, where a column is narrow.

    Formulas that were not read as such are reported: a display needs an empty line before it.
    """
    page, context = event[1], event[3]
    if "body" in context:
        for text in unread_formulas(context["body"]):
            _LOG.warning("formula that was not read: %s", text, extra={"location": page})
        context["body"] = _NAME.sub(lambda name: _PART.sub("<wbr>", name[0]), context["body"])


_OWN_ADDRESS = re.compile(r'(\b(?:href|src)=")(?![a-z]+:|[/#])([^"]*")')


def _with_base(app: Any, error: Exception | None) -> None:
    """Let the links of the 404 page start at the root, since a server shows it at any address.

    The root is ``html_baseurl``, and "/" where that is not set. ``DOCUMENTATION_OPTIONS`` of the
    theme hold the root of a page as an attribute, which is replaced with it.
    """
    page = Path(app.outdir) / "404.html"
    if error is None and page.exists():
        root = app.config.html_baseurl.rstrip("/") + "/"
        text = _OWN_ADDRESS.sub(rf"\g<1>{root}\g<2>", page.read_text(encoding="utf-8"))
        text = text.replace('data-content_root="./"', f'data-content_root="{root}"')
        page.write_text(text.replace('action="search.html"', f'action="{root}search.html"'))


def setup(app: Any) -> None:
    """Connect the hooks above."""
    app.connect("build-finished", _with_base)
    app.connect("html-page-context", _with_breaks)
    app.connect("autodoc-process-docstring", _with_links)
    app.connect("autodoc-skip-member", _without_defaults)
