"""Numbers in the text of the user's pages are those of the code.

Numbers in code blocks are what the tests run. Every other number of more than one digit has to
stand in a sentence below, which is made from the code, or among the words that are no facts about
it.
"""

from __future__ import annotations

import re
from importlib import import_module
from math import isclose
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.data.cells import canonical, number_of
from dp_halfspace.privacy import epsilon, gdp_mu
from dp_halfspace.privacy.events import Gaussian
from dp_halfspace.selection.rule import COUNTS_PAY
from tests.pages import FENCE, blocks

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FRONT = ("README.md", "CHANGELOG.md")


def of(path: str) -> float:
    """Value of a constant of the package."""
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"dp_halfspace.{module}"), name)


def short(value: float) -> str:
    """Write a number without the zero in front."""
    return f"{value:g}".removeprefix("0")


DEFAULTS, SCALES = "selection.rule", "engine.scales"
JOINT = of("engine.features._JOINT_PAY")
STEPS_PAY, PURE = of(f"{DEFAULTS}.STEPS_PAY"), of(f"{DEFAULTS}.DIRECTIONS_PAY")
LEAST, MOST = of(f"{DEFAULTS}._LEAST_COUNTED"), of(f"{DEFAULTS}._MOST_COUNTED")
PARTS = of(f"{SCALES}._PARTS")
UNSCALED = of(f"{SCALES}.LEAST_PURE_STRENGTH")
CLIP, STEPS = of("engine.linear.COLUMN_CLIP"), of("engine.steps.N_STEPS")
SHOWN = of("inspection.card._MOST_CURVES")


def ten_fits() -> float:
    """Epsilon of ten Gaussian fits at (1, 1e-6), which is that of so many of them."""
    return epsilon([Gaussian(gdp_mu(1.0, 1e-6))] * 10, 1e-6)


def elsewhere() -> float:
    """Epsilon at delta 1e-8 of noise that gives 3 at 1e-6."""
    return epsilon([Gaussian(gdp_mu(3.0, 1e-6))], 1e-8)


SENTENCES = {
    "guide/choosing_a_classifier.md": (
        f"| up to {PURE:.0f} |",
        f"| above {PURE:.0f} |",
        f"not stated: {UNSCALED:.0f} times this number takes the place of {PURE:.0f}",
        # The parameter mu is about a fifth of epsilon.
        f"interactions $n\\epsilon$ of about {5 * JOINT:,.0f} times the root",
    ),
    "guide/small_tables.md": (
        f"is below {STEPS_PAY:.0f} times the root of the number of columns "
        f"({STEPS_PAY * 10**0.5:.0f} for ten columns, {STEPS_PAY * 10:.0f} for a hundred; of a "
        "table, the geometric mean of its columns and its encoded columns, indicators of missing "
        "values not counted), "
        f"and below {PURE:.0f} with `delta=0`, or below {UNSCALED:.0f} times the number",
        f"may first count two classes, from {LEAST:.0f} on",
        f"times epsilon must be below {of(f'{DEFAULTS}.SMALL_WITH_PRIOR'):.0f}, and",
    ),
    "guide/rare_outcomes.md": (
        f"From {LEAST:.0f} to {MOST:.0f} records times epsilon it counts",
        f"a class of at most {of(f'{DEFAULTS}._MOST_RARE'):.0f} records over epsilon",
    ),
    "column_scales.md": (
        "from $2^{{-{0}}}$ to $2^{{{0}}}$".format(of(f"{SCALES}.N_OCTAVES") // 2),
        "between {} and {}.".format(*of(f"{SCALES}._N_CELLS")),
        f"with $b={CLIP:g}$ in the default fit",
        f"take {short(of(f'{SCALES}.SHARE'))} of $\\mu^2$",
        f"step 1 has {short(PARTS[0])}, step 3 has {short(PARTS[1])}",
        f"and step 4 has {short(PARTS[2])}",
        f"{short(of(f'{SCALES}._PURE_SHARE'))} of $\\epsilon$ take the place of "
        f"{short(of(f'{SCALES}.SHARE'))} of $\\mu^2$",
        f"$n\\epsilon<{UNSCALED:.0f}\\,d$",
        f"steps for more than {of('engine.moment.WIDEST')} columns",
    ),
    "architecture.md": (f"| {STEPS} steps |",),
    "estimators/kernel.md": (f"$n\\mu\\ge{JOINT:.0f}\\sqrt d$",),
    "estimators/table.md": (f"{STEPS} sums of clipped slopes",),
    "estimators/adaptive_margin.md": (
        f"clips columns at {CLIP:g} of their scales",
        f"records times epsilon below {COUNTS_PAY:g} assume",
    ),
    "estimators/objective_perturbation.md": (f"$n\\epsilon$ above {PURE:.0f}",),
    "estimators/pure_halfspace.md": (f"$n\\epsilon$ up to {PURE:.0f}",),
    "explaining.md": (
        f"values beyond {CLIP:g} released widths of the released centres",
        f"model cards show the {SHOWN} most important coefficients",
    ),
    "planning.md": (
        f"plus {short(of('inspection.accuracy_plan._PLAN_ERROR'))} for the error of the simulation",
        f"Tables of more than {of('inspection.effect_displays.SIMULATED_ROWS')} rows (or "
        f"{of('inspection.accuracy_plan._ROWS_PER_COLUMN')} for each column)",
    ),
    "guide/weights.md": (
        f"At least {of('data.record_weights._FEWEST_WEIGHTED')} records are needed",
        f"multiples of $2^{{-{of('data.people.GRID_BITS')}}}$",
    ),
    "guide/ledger.md": (
        f"cost {ten_fits():.1f} times one of them",
        f"gives {elsewhere():.2f} at $10^{{-8}}$, and a fit that requests "
        f"$({elsewhere():.2f},10^{{-8}})$",
    ),
    "guide/schema.md": (f"word counts in {of('data.schema._N_WORD_COLUMNS')} columns",),
    "command.md": (
        f"if {of('_cli.guesses.NEARLY_ALL'):.0%}".replace("%", " %") + " of its non-missing cells",
        f"the effects of up to {SHOWN} columns",
    ),
}
# No facts about the code: names, dates, sizes of data sets that the page itself makes or describes,
# confidence of intervals, examples of cells.
NO_FACTS = (
    r"95 %|confidence of 95|IEEE 754|\b(?:19|20)\d\d\b|\$\(?10\^(?:\{-?\d+\}|\d)\)?\$|"
    r"\\delta=10\^\{-\d+\}|\b1[05] minutes|diffprivlib 0\.6\.6|issue \d+|section \d+|"
    r"Python 3\.10|scikit-learn 1\.6|version 1\.0\.0|1\.x|"
    r"\[1e-50, 1e50\]|2\^\{53\}|2\^\{-180\}|\\sqrt\{14\}|at most 14 are|\$\[-?[01],1\]\$"
)
EXAMPLES = {
    "choosing_epsilon.md": r"5 %",
    "column_scales.md": r"5,000 rows|above 120",
    "guide/questions.md": r"epsilon is 10 or more",
    "guide/scores.md": r"1\.5 standard deviations",
    "guide/ten_ways.md": r"10\. A seed",
    "command.md": r"2,000 stays of 1,500|1,5 and 1\.5|quoted 1,234 is 1234|130 after",
    "guide/ledger.md": r"all 2000 records",
    "guide/missing_values.md": r"read as 0\.3",
    "guide/schema.md": (
        r"\d[\d.,-]*(?: \||,)|45% is 45|U\+2212|0\.3 and |as 200|01\.02\.2026|1\.234|is 1\.5 in|"
        r"\b120 where|16 or 17 digits|\b1234\.5 unless|More than 4096 are"
    ),
    "guide/weights.md": r"mean weight of \.1|2\^\{22\}",
    "tutorials/csv_to_card.md": r"442 diabetes|above 140|rate of 5 %|132 rows",
    "tutorials/first_model.md": r"569 tumours with 30|398 patients|30 columns",
    "tutorials/pipeline.md": r"1797 images|64 grey|0 and 16|64 columns|\$\[-1,1\]",
    "explaining.md": r"otherwise 2\.5 released|below \.3 with",
    "architecture.md": r"at most 1,900",
    "audit.md": r"issue 10",
}
# Their numbers are tables that other tests compare, or measurements with a page of evidence.
OF_OTHERS = ("guide/limits.md", "planning.md", "tuning.md", "scaling.md", "operating_points.md")
RESEARCH = re.compile(
    r"(research|papers|theorems|proofs|evidence|defaults|benchmarks|real_tables|lower_bound|"
    r"risk_bounds|_build|generated|gallery)\b"
)
PAGES = sorted(
    page
    for path in DOCS.rglob("*.md")
    if not RESEARCH.match(page := path.relative_to(DOCS).as_posix()) and page not in OF_OTHERS
)


def flat(text: str) -> str:
    """Text of a page in one line."""
    return " ".join(text.split())


def untested(page: str, text: str) -> list[str]:
    """Numbers of more than one digit in the text of a page, with what is around them."""
    rest = flat(FENCE.sub("", text))
    for sentence in SENTENCES.get(page, ()):
        rest = rest.replace(sentence, "")
    rest = re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", " ", rest)
    rest = re.sub(NO_FACTS, " ", re.sub(EXAMPLES.get(page, r"(?!)"), " ", rest))
    return re.findall(r".{0,30}(?<![\w.])(?:\.\d+|\d[\d.,]*\d)(?!\w).{0,15}", rest)


@pytest.mark.parametrize("page", SENTENCES)
def test_sentences_state_the_numbers_of_the_code(page):
    text = flat((DOCS / page).read_text("utf-8"))
    assert [sentence for sentence in SENTENCES[page] if sentence not in text] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_the_text_is_tested(page):
    assert untested(page, (DOCS / page).read_text("utf-8")) == []


def test_the_users_book_is_as_short_as_it_has_to_be():
    texts = [DOCS / page for page in (*PAGES, *OF_OTHERS)]
    words = [len(path.read_text("utf-8").split()) for path in texts]
    front = {name: len((ROOT / name).read_text("utf-8").split()) for name in FRONT}
    assert sum(words) + sum(front.values()) <= 45_000
    assert front["CHANGELOG.md"] <= 800


def test_the_research_book_is_as_short_as_it_has_to_be():
    pages = [path for path in DOCS.rglob("*.md") if RESEARCH.match(str(path.relative_to(DOCS)))]
    made = {"_build", "generated", "gallery"}
    words = {p: len(p.read_text("utf-8").split()) for p in pages if not made & set(p.parts)}
    assert len(words) > 50
    assert sum(words.values()) <= 55_000


READING = (DOCS / "guide" / "schema.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        *[("<0.3", 0.3), ("> 200", 200), ("≤5", 5), (">=1,000", 1000), ("1,000", 1000)],
        *[("1,5", 1.5), ("1.234,5", 1234.5), ("45%", 45), ("$1,200", 1200), ("12 345", 12345)],
        *[("12'345", 12345), ("(12.3)", -12.3), ("12.3-", -12.3), ("20260131", 20260131)],
    ],
)
def test_cells_are_read_as_the_schema_reference_says(cell, number):
    assert f'`"{cell}"`' in READING
    assert isclose(number_of(canonical(cell)), number)


def test_the_accuracy_of_the_readme_is_that_of_its_fit():
    (code,) = (code for _, code in blocks((ROOT / "README.md").read_text("utf-8"), "python"))
    said, majority = (float(x) for x in re.findall(r"about (\.\d+).* has (\.\d+);", code)[0])
    X, y = load_breast_cancer(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    fit = AdaptiveMarginClassifier(classes=[0, 1]).fit(X, y)
    assert isclose(fit.score(X_new, y_new), said, abs_tol=0.03)
    assert isclose(max(y_new.mean(), 1 - y_new.mean()), majority, abs_tol=0.005)
