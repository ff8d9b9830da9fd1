"""Everyday questions are answered by the first or second page that the search of the site finds.

The site is the one in ``docs/_build/html``, or the folder in ``DP_HALFSPACE_SITE``; without one,
the tests that ask it are skipped. `.ci/run` builds it first. Its search runs as in a browser, by
``mini_racer`` (V8).
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = Path(os.environ.get("DP_HALFSPACE_SITE", ROOT / "docs" / "_build" / "html"))

# What is asked, and the pages of which one has to be found first or second.
QUESTIONS = {
    "feature importance": ("explaining",),
    "imbalanced": ("guide/rare_outcomes",),
    "how many rows": ("guide/small_tables", "guide/questions", "guide/limits", "planning"),
    "outlier": ("column_scales", "guide/questions"),
    "how to save a model": ("guide/saving",),
    "split": ("guide/scores", "command"),
    "conda": ("start",),
    "missing values": ("guide/missing_values",),
    "which class": ("guide/choosing_a_classifier",),
    "cross-validation": ("tutorials/pipeline",),
    "choose epsilon": ("choosing_epsilon",),
    "probabilities": ("guide/questions", "estimators/table"),
    "several rows per person": ("guide/persons",),
    "chance": ("guide/limits", "guide/questions"),
    "several classes": ("guide/questions",),
    "multiclass": ("guide/questions",),
    "GDPR": ("guide/report",),
}

# What a browser has and V8 alone does not, as far as the search asks for it.
BROWSER = """
var window = globalThis, SPHINX_HIGHLIGHT_ENABLED = false, _ready = () => {}, _ = (text) => text;
window.location = {search: ADDRESS};
var document = {getElementById: () => null, addEventListener: () => {}};
"""
ASK = """
(query) => {
  const [asked, ...terms] = Search._parseQuery(query);
  return JSON.stringify(Search._performSearch(asked, ...terms).reverse().map(([page]) => page));
}
"""

# Interpreters of the searches. One that is still open when the process ends may keep it for ever.
OPENED = []


@pytest.fixture(scope="module", autouse=True)
def _interpreters_are_closed():
    yield
    search.cache_clear()
    while OPENED:
        OPENED.pop().close()


@cache
def search(address=""):
    """Return the search of the built site at an address."""
    racer = pytest.importorskip("py_mini_racer")
    if not (SITE / "searchindex.js").exists():
        pytest.skip(f"no built site in {SITE}")
    context = racer.MiniRacer()
    OPENED.append(context)
    context.eval(BROWSER.replace("ADDRESS", json.dumps(address)))
    for name in ("_static/searchtools.js", "_static/language_data.js", "searchindex.js"):
        context.eval((SITE / name).read_text(encoding="utf-8"))
    context.eval(f"var ask = {ASK.strip()}")
    return lambda query: json.loads(context.eval(f"ask({json.dumps(query)})"))


def pages(query, address=""):
    """Return the pages that a query finds, each once, in their order."""
    return list(dict.fromkeys(search(address)(query)))


@pytest.mark.parametrize("query", QUESTIONS)
def test_everyday_questions_are_answered_by_the_first_or_second_page(query):
    assert set(pages(query)[:2]) & set(QUESTIONS[query]), pages(query)[:6]


def test_the_research_part_is_left_out_unless_it_is_asked_for():
    research = re.compile("(proofs|evidence|defaults|benchmarks|papers|generated/research)")
    for query in ("Gaussian noise", "sensitivity", "area", "margin_risk_bound"):
        assert not any(research.match(page) for page in pages(query))
        assert any(research.match(page) for page in pages(query, "?q=x&research=on"))


def test_no_page_of_research_escapes_the_list():
    """The list of the search is that of the navigation: what stands below research.md."""
    text = (ROOT / "docs" / "research.md").read_text("utf-8")
    text += (ROOT / "docs" / "evidence.md").read_text("utf-8")
    listed = re.findall(r"^(?:.*<)?([a-z_/]+)>?$", text, re.MULTILINE)
    scorer = (ROOT / "docs" / "_templates" / "scorer.js").read_text("utf-8")
    (pattern,) = re.findall(r"^  /(.*)/;$", scorer, re.MULTILINE)
    assert len(listed) > 30
    assert [page for page in listed if not re.match(pattern.replace("\\/", "/"), page)] == []
