"""The card of a model.

A model card is one HTML file for human readers, without scripts and without data. Everything on it
is public: parameters, the record of the fit, functions of released numbers, and what its author
states.
"""

from __future__ import annotations

import io
import math
import os
import platform
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from html import escape
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._files import write_whole
from dp_halfspace._html import page, printable, table
from dp_halfspace.estimators._outlook import Outlook
from dp_halfspace.estimators.base import PrivateClassifier
from dp_halfspace.inspection.coefficients import NaturalCoefficients, natural_coefficients
from dp_halfspace.inspection.effect_displays import (
    MOST_SHOWN,
    MOST_SHOWN_CLASSES,
    PANELS_IN_A_ROW,
    EffectsDisplay,
)
from dp_halfspace.ledger.ledger import PrivacyLedger, open_ledger
from dp_halfspace.ledger.store import belongs_to_ledger
from dp_halfspace.preprocessing.scalers import ReleasedScaler
from dp_halfspace.privacy.record import SHOWN_RATES, PrivacyRecord, rounded_text, unit_of

# Number of columns whose effects are shown, largest effects first.
_MOST_CURVES = 24
# Squared correlation with the score below which the effects of single columns are not shown.
_LEAST_EXPLAINED = 0.3
# Mark of a coefficient whose sign the noise may have decided.
_UNSURE = " (?)"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def model_card(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    purpose: str = "",
    population: str = "",
    limits: str = "",
    contact: str = "",
    groups: str | None = None,
    ledger: PrivacyLedger | str | os.PathLike[str] | None = None,
    scores: Any = (),
) -> str:
    """Describe a fitted model on one HTML page for people who decide about its use.

    Parameters
    ----------
    model : fitted estimator of the package, or a pipeline that ends in one
        Model to describe.
    path : path or None, default=None
        File to write the page to; an existing page is replaced. None only returns it.
    title : str or None, default=None
        Title of the page; None is the class of the model.
    purpose, population, limits, contact : str, default=""
        PUBLIC texts: the purpose of the model, the population of its training rows, what it must
        not be used for, and whom to ask. Empty texts are left out.
    groups : str or None, default=None
        PUBLIC name of the column that identifies persons, if the fit had `groups`.
    ledger : PrivacyLedger, path or None, default=None
        The ledger that was charged; the page states what is spent and left.
    scores : PrivateScore or sequence of them, default=()
        Scores of this model that :func:`~dp_halfspace.metrics.private_score` has released.

    Returns
    -------
    str
        The page, without scripts and external resources, with all texts escaped.

    Raises
    ------
    ValueError
        If the model has no record of what it spent, if a score is about other classes, if `groups`
        are given and the fit does not protect persons, or if `path` is a file of a ledger.
    OSError
        If the page cannot be written.

    Notes
    -----
    **Privacy.** Every line is a parameter, a text of the author, part of the record, or a function
    of released numbers, so the page may be published with the model. With `ledger` it also shows
    what the other releases cost.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> from dp_halfspace.inspection import model_card
    >>> X, y = make_halfspace(2000, 3, margin=0.2, random_state=0)
    >>> model = AdaptiveMarginClassifier(classes=[-1, 1], data_norm=1.0).fit(X, y)
    >>> "Triage on arrival" in model_card(model, purpose="Triage on arrival.")
    True
    """
    stated = {"Purpose": purpose, "Population": population, "Limits": limits, "Contact": contact}
    about = [(name, " ".join(text.split())) for name, text in stated.items() if text.strip()]
    inner, uncovered = private_part(model)
    if groups is not None and unit_of(inner.privacy_) != "person":
        raise ValueError(
            f"groups={groups!r} names persons, and this fit does not protect them: leave it out"
        )
    sections = {
        "About": table(*about) if about else "",
        "What is promised": "\n".join(
            [_promise(inner, groups), *(f"<p>{escape(printable(text))}</p>" for text in uncovered)]
        ),
        "What to expect": _expectation(inner),
        "What was taken as public": _public(inner, groups),
        "What was spent": _spent(inner.privacy_, open_ledger(ledger)),
        "How good it is": _measured(inner, [scores] if hasattr(scores, "privacy_") else scores),
        "What the columns do": _effects(model, inner),
        "For auditors": f"<pre>{escape(inner.privacy_.summary())}</pre>",
        "Made by": _made_by(),
    }
    part = getattr(inner, "learnt_part", "model")
    heading = type(inner).__name__ if title is None else f"Private {part} of {title}"
    text = page(heading, {name: text for name, text in sections.items() if text})
    if path is not None:
        if belongs_to_ledger(Path(path)):
            raise ValueError(f"{path} is a file of a privacy ledger: write to another one")
        write_whole(Path(path), lambda new: new.write_text(text, encoding="utf-8"))
    return text


def outlook_for(model: Any) -> Outlook | None:
    """Return what to expect of a fitted model by public numbers, None if it is unknown."""
    record = model.privacy_
    n_columns = model._n_columns(None) if isinstance(model, PrivateClassifier) else None
    if n_columns is None or not math.isfinite(record.epsilon):
        return None
    facts = dict(record.public)
    # The best model of a search was fitted with a part of the budget.
    epsilon = float(facts.get("epsilon_of_a_run", record.epsilon))
    return Outlook(int(facts["n_samples"]), n_columns, epsilon, f"{unit_of(record)}s")


def _promise(model: Any, groups: str | None) -> str:
    """State the guarantee, the unit of privacy and the largest success of an attack."""
    record, part = model.privacy_, getattr(model, "learnt_part", "model")
    unit = {
        "replace-one": "one row of the table, its features and its label",
        "replace-one-person": "one person with all rows",
        "replace-one-label": "the label of one row; its features are not protected",
    }[record.adjacency]
    if groups is not None:
        unit = f"one person: all rows with the same value of the column {groups!r}"
    if not math.isfinite(record.epsilon):
        return '<p class="claim">Nothing: the fit had no noise (ε is infinite).</p>'
    if record.noise == "seeded":
        why = "the noise of the fit was drawn from a seed, and anyone who knows it can subtract it"
        return f'<p class="claim">Nothing: {why}.</p>'
    with np.errstate(over="ignore"):
        factor = rounded_text(float(np.exp(record.epsilon)), 2)
    slack = f", up to a probability of {rounded_text(record.delta, 2)}" if record.delta > 0 else ""
    sure = rounded_text(50.0 * (1.0 + record.attack_advantage()), 2)
    rates = [
        (f"{100 * rate:g} %", f"{rounded_text(100.0 * record.attack_tpr(rate), 2)} % at most")
        for rate in SHOWN_RATES
    ]
    return (
        f'<p class="claim">{_claim(record)}. The unit of privacy is {escape(unit)}.</p>\n'
        f"<p>The {part} would have been almost as likely if any one such unit had been replaced "
        f"with another one: no outcome becomes more than {factor} times as likely{slack}. "
        "Suppose an attacker knows everything else and has to decide which of two possible units "
        f"was in the table. With this {part} the decision is right in at most {sure} % of the "
        "cases; without it in 50 %. Other releases about the same table add to this, and facts "
        "about the population as a whole are not hidden. Numbers are rounded up.</p>\n"
        "<p>Limits for an attacker who tests for one of the two units:</p>\n"
        + table(("false positive rate", "true positive rate"), *rates)
    )


def _claim(record: PrivacyRecord) -> str:
    epsilon, delta = rounded_text(record.epsilon, 3), rounded_text(record.delta, 2)
    return f"(ε, δ)-differential privacy with ε = {epsilon} and δ = {delta}"


def _expectation(model: Any) -> str:
    """State what public numbers let expect, and what the released model shows."""
    found = outlook_for(model)
    if found is None:
        return ""
    kind = ' class="claim"' if found.is_poor else ""
    text = (
        f"<p{kind}>{escape(str(found))}.</p>\n<p>Computed from the number of {found.unit} and of "
        "encoded columns and the budget alone; no row was read.</p>"
    )
    shown = escape(printable(model._finding))
    return f'{text}\n<p class="claim">{shown}.</p>' if shown else text


def _public(model: Any, groups: str | None) -> str:
    """List the facts and steps that the guarantee does not cover."""
    facts = dict(model.privacy_.public)
    is_seen = "seen" in str(facts.get("classes_source", ""))
    source = "found in the table and declared public" if is_seen else "stated"
    estimated: frozenset[str] = getattr(model, "_columns_in_estimated_scales", frozenset())
    kinds = list(facts.get("columns", ()))
    note = "scale estimated within the budget"
    used = [(name, kind) for name, kind in kinds if kind != "drop"]
    columns = [(name, kind, note if name in estimated else "") for name, kind in used]
    dropped = [name for name, kind in kinds if kind == "drop"]
    n_columns = len(columns) or getattr(model, "n_features_in_", None)
    people = groups is not None or unit_of(model.privacy_) == "person"
    text = table(
        ("Number of persons" if people else "Number of rows", facts["n_samples"]),
        (f"Labels, {source}", ", ".join(map(str, model.classes_))),
        *([] if n_columns is None else [("Number of columns", n_columns)]),
        *([("Columns not used", ", ".join(map(str, dropped)))] if dropped else []),
    )
    return text + (f"\n<p>Types of the columns:</p>\n{table(*columns)}" if columns else "")


def _spent(record: PrivacyRecord, ledger: PrivacyLedger | None) -> str:
    """State what the fit cost, and what the ledger says of all releases and of its rest."""
    fit = f"ε = {rounded_text(record.epsilon, 3)}, δ = {rounded_text(record.delta, 2)}"
    rows = [("This fit", fit)]
    if record.delta > 0 and record.delta_at(record.epsilon) == 0.0:
        rows.append(("Of that δ", "nothing is spent: the guarantee of this fit is pure ε-DP"))
    if ledger is None:
        return f"{table(*rows)}\n<p>No ledger was given: other releases are not accounted for.</p>"
    return f"{table(*rows)}\n<pre>{escape(ledger.summary())}</pre>"


def table_of_scores(scores: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Return a table of scores, with the majority class of the first one that counts classes."""
    rows = [("score", "value", "95 % interval")]
    rows += [row for score in scores for row in score.rows()]
    shares = (score.majority for score in scores)
    for share, low, high in filter(None, shares):
        return [*rows, ("majority class", f"{share:.3f}", f"{low:.3f} to {high:.3f}")]
    return rows


def _measured(model: Any, scores: Sequence[Any]) -> str:
    """Show the given scores and what they cost."""
    own = np.unique(model.classes_).tolist()
    for score in scores:
        others = score.classes.tolist()
        if others != own:
            raise ValueError(f"a score is of the classes {others}, and the model of {own}")
    if not scores:
        return "<p>No score was given, so this card does not state how good the model is.</p>"
    costs = dict.fromkeys(_cost_of_scores(score.privacy_) for score in scores)
    return (
        f"{table(*table_of_scores(scores))}\n<p>The intervals cover the sampling of the held-out "
        f"records and the noise. {' '.join(costs)} Compare any accuracy with the share of the "
        "majority class, which is the accuracy of a model that ignores all columns.</p>"
    )


def _cost_of_scores(record: PrivacyRecord) -> str:
    what = f"The scores on {dict(record.public)['n_samples']} {unit_of(record)}s"
    if not math.isfinite(record.epsilon):
        return f"{what} have no noise (ε is infinite), so they are not private."
    if record.noise == "seeded":
        return f"{what} have noise from a seed, which protects from nobody who knows the seed."
    return f"{what} were released with {_claim(record)}."


def _effects(model: Any, inner: Any) -> str:
    """Show the effect of every column: curves for a table, coefficients for a linear model."""
    if hasattr(inner, "learnt_part"):
        return "<p>Not shown: they are those of the model inside, which has a card of its own.</p>"
    if len(inner.classes_) > MOST_SHOWN_CLASSES:
        return f"<p>Not shown: the model has more than {MOST_SHOWN_CLASSES} classes.</p>"
    with suppress(ValueError):
        return _coefficients(natural_coefficients(model))
    is_alone = getattr(model, "best_estimator_", model) is inner
    is_scaled = is_alone and isinstance(getattr(inner, "scaler_", None), ReleasedScaler)
    if is_scaled or hasattr(inner, "encoding_"):
        return _curves(EffectsDisplay.from_estimator(inner), inner)
    return "<p>Not shown: the columns have no public ranges and no released scales.</p>"


def _coefficients(natural: NaturalCoefficients) -> str:
    """Show the most important coefficients with their standard errors."""
    importances, errors = natural.importances, natural.errors
    noise = (
        f"Behind ± is the standard error due to the noise of the fit;{_UNSURE} marks a coefficient "
        "within two of them of zero, whose sign the noise may have decided."
    )
    if errors is None:
        errors = np.full(natural.coefficients.shape, math.nan)
        noise = "The noise in the coefficients is not known, and may have decided any sign."
    rows = []
    for name in list(importances)[:_MOST_CURVES]:
        j = natural.names.index(name)
        column = natural.coefficients[:, j], errors[:, j], natural.has_sign[:, j]
        rows.append((name, *map(_coefficient, *column), f"{importances[name]:.2g}"))
    heads = ("Column", *(f"score of {label}, per unit" for label in natural.classes), "importance")
    return (
        f"<p>The {len(rows)} of {len(natural.names)} columns with the largest importance, and what "
        "one unit of each adds to the score. The importance is the change of the score over about "
        "one standard deviation of the column, as far as the fit released it; of several scores, "
        "the largest difference. A rare flag may seem more important than it is. "
        f"{noise}</p>\n{table(heads, *rows)}"
    )


def _coefficient(value: float, error: float, has_sign: bool) -> str:
    """Write a coefficient and, if its standard error is known, that and a mark without a sign."""
    noise = "" if math.isnan(error) else f" ± {error:.2g}{'' if has_sign else _UNSURE}"
    return f"{value:.3g}{noise}"


def _curves(display: EffectsDisplay, model: Any) -> str:
    """Draw the effects that explain something, if matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        return "<p>Not drawn: matplotlib was not installed when this page was made.</p>"
    if not display.columns:
        return "<p>No column has a known range or known categories to draw.</p>"
    if display.explained is not None and display.explained.max() < _LEAST_EXPLAINED:
        why = "effects of single columns do not describe the score of this model"
        return f"<p>Not shown: {why}. {_explained_note(display)}</p>"
    flat = [column.name for column in display.columns if not column.is_effect]
    rest = sorted((c for c in display.columns if c.is_effect), key=lambda c: -c.importance)
    why = "Not shown, because they cannot be told from noise or are zero"
    left_out = f" {why}: {', '.join(map(printable, flat))}." if flat else ""
    if not rest:
        return f"<p>No effect is shown.{escape(left_out)}</p>"
    shown = EffectsDisplay(rest[:_MOST_CURVES], display.classes)
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "card", "font.size": 8}):
        size = 9, 2.4 * math.ceil(len(shown.columns) / PANELS_IN_A_ROW)
        shown.plot(figure=matplotlib.figure.Figure(figsize=size, layout="constrained"))
        shown.figure_.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    drawing = file.getvalue()
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.S)
    of = f" of {escape(printable(model.classes_[1]))}" if len(model.classes_) == 2 else ""
    has_odds = getattr(model, "probability", False) and hasattr(model, "predict_proba")
    odds = "log odds" if has_odds else "score"
    noise = "The amount of noise in it is not known."
    if shown.columns[0].deviations is not None:
        noise = "Grey effects may be due to noise alone: the band has two standard errors."
    return (
        f"<p>The {len(shown.columns)} of {len(rest)} columns with the largest effects: what the "
        f"value of one column adds to the {odds}{of} of a row with numbers in the middle of their "
        f"axes and other entries missing. {noise}{escape(left_out)} {_explained_note(display)} "
        "Drawn from released numbers, over stated ranges or around the released centres, so it "
        "shows no row. Columns of strings without a list of categories, columns of more than "
        f"{MOST_SHOWN} categories, and columns of numbers with neither a stated range nor a "
        f"released scale are left out.</p>\n<figure>{drawing}</figure>"
    )


def _explained_note(display: EffectsDisplay) -> str:
    shares = [] if display.explained is None else [f"{part:.2f}" for part in display.explained]
    return (
        f"The sum of the effects of all columns has a squared correlation of {', '.join(shares)} "
        "with the score on simulated rows, in which columns are independent and take all displayed "
        "values equally often; the difference to 1 is due to interactions."
    )


def _made_by() -> str:
    # A checkout need not be installed.
    ours = import_module("dp_halfspace").__version__
    rows = [("Python", platform.python_version()), ("dp-halfspace", ours)]
    for name in _PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            rows.append((name, "unknown"))
    return table(*rows, ("Date", datetime.now(timezone.utc).strftime("%Y-%m-%d")))


def private_part(estimator: Any) -> tuple[Any, list[str]]:
    """Find the estimator that has a record, and list the parts that the record leaves out."""
    if hasattr(estimator, "privacy_"):
        # The best model of a search has the record of the search.
        return getattr(estimator, "best_estimator_", estimator), _around_a_part(estimator)
    if isinstance(estimator, Pipeline) and estimator.steps:
        inner, uncovered = private_part(estimator.steps[-1][1])
        steps = [type(step).__name__ for _, step in estimator.steps[:-1] if hasattr(step, "fit")]
        if steps:
            learnt = "What they learnt from private rows is not protected."
            uncovered.append(f"Not covered: {', '.join(steps)}. {learnt}")
        return inner, uncovered
    check_is_fitted(estimator)
    raise ValueError(f"{type(estimator).__name__} has no privacy record: give one of this package")


def _around_a_part(estimator: Any) -> list[str]:
    """Say what the record of a wrapper of a fitted model leaves out: the model."""
    part = getattr(estimator, "learnt_part", None)
    if part is None:
        return []
    model = estimator.estimator
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    alone = f"This is the guarantee of the {part} alone, for the held-out records."
    try:
        inner, uncovered = private_part(model)
    except ValueError:
        return [
            f"{alone} Not covered: the model inside, {type(model).__name__}, which has no record "
            "of what it spent. If it was fitted to private records, nothing protects them."
        ]
    return [
        f"{alone} The model inside, {type(inner).__name__}, has another one for the records that "
        f"it was fitted to: {inner.privacy_}. If both are records of one data set, the two add up.",
        *uncovered,
    ]
