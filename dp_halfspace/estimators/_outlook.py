"""The accuracy to expect of a fit, from public numbers alone and in microseconds.

:func:`~dp_halfspace.inspection.plan_accuracy` simulates tables and runs the estimator on them. The
curves here were fitted to its results once, so that every fit can be told beforehand whether its
budget is large enough for its table: ``docs/evidence/planning.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu
from dp_halfspace.selection.rule import MOST_CLASSES, small_table_rule

# A fit warns if it expects less than this share of the improvement over the majority class.
POOR = 0.5
# The warning states the number of records, and the epsilon, for this share of the improvement.
GOOD = 0.8
# Share of the records of the rare class that an outlook is about, if nothing else is known.
RARE = 0.05
# A fit that counts no classes warns that it hardly ranks a class of 5 % if it expects less than
# this share of the area under the curve above one half: half of such fits of seven real tables have
# an area below .6. Most tables have no such class.
HARDLY_RANKED = 0.08
# The same for a ranking, and for counted classes: an area of .6 if a model without privacy has .8.
HARDLY_BETTER = 1.0 / 3.0
# For a class below this share of a table, the limit is half of the area: with a third, three of
# ten fits of the hospital benchmark at chance level got no warning, because of noise in their
# counts.
_UNEVEN = 0.2
# No larger epsilon is recommended: it would hardly be a guarantee.
LARGEST_EPSILON = 1e6
# Pattern of the warnings that are based on public numbers, before a fit.
BEFOREHAND = r"epsilon=.* classes: expect about"
# Pattern of the warnings that are based on noisy counts of a fit.
BY_COUNTS = r"epsilon=.* classes: by a? ?noisy count"
_NO_BETTER = (
    ", so that its ranking may be no better than chance: do not rely on it unless a "
    "private score on other records confirms it"
)
_RANKED_BY_WEIGHTS = (
    "A class of a few percent may be ranked no better than chance at any budget, unless "
    "class_weight gives it more weight"
)


@dataclass(frozen=True, slots=True)
class _Curve:
    """Share of the improvement as a function of the signal.

    It is ``1 / (1 + (half / signal)^steepness)``. The signal is n mu, or n epsilon without Gaussian
    noise. Half of the improvement is reached at ``half = factor d^columns K^classes``, for d
    columns and K classes.
    """

    factor: float
    columns: float
    classes: float
    steepness: float

    def half(self, n_features: int, n_classes: int) -> float:
        """Return the signal at which half of the improvement is reached."""
        return self.factor * math.pow(n_features, self.columns) * math.pow(n_classes, self.classes)


# Fitted to 4 simulated tables for each of 2, 3, 6 and 12 classes, 3 to 100 columns, 100 to 10,000
# rows and epsilon .1 to 3; root mean square error .02 (two classes) to .1 (small tables).
_TWO_CLASSES = _Curve(1.9, 0.78, 0.0, 0.94)
_SEVERAL_CLASSES = _Curve(3.6, 0.30, 1.25, 1.12)
_SMALL_TABLE = _Curve(6.8, 0.68, 0.0, 0.89)
# Selections for three to seven classes: fitted to 14 real tables in addition, on which the number
# of columns makes no difference.
_SMALL_OF_SEVERAL = _Curve(45.0, 0.0, 0.70, 0.83)
# Steps for three to seven classes in stated scales: fitted to simulated and real tables, too.
_SEVERAL_IN_SCALE = _Curve(23.0, 0.10, 0.47, 0.94)
_PURE_TWO_CLASSES = _Curve(3.1, 0.90, 0.0, 0.77)
_PURE_SEVERAL_CLASSES = _Curve(4.3, 0.79, 1.43, 1.03)
# Rankings, by noise (Gaussian or not) and scales (stated or estimated). The signal is multiplied by
# p (1 - p) for a class of the share p. Fitted to classes of 5 %; the root mean square error is .06
# to .1 of the share of the area.
_RANKINGS = {
    (True, True): _Curve(1.18, 0.90, 0.0, 1.8),
    (True, False): _Curve(3.6, 0.71, 0.0, 1.5),
    (False, True): _Curve(1.07, 1.46, 0.0, 1.2),
    (False, False): _Curve(8.7, 1.26, 0.0, 1.3),
}
# A ranking by a selection for few records; the signal is p (1 - p) n epsilon.
_RANKED_BY_A_SELECTION = _Curve(78.0, 0.0, 0.0, 1.6)
# Tables of two classes, by noise (Gaussian or not): a curve of the accuracy, and one of the ranking
# with a signal that is multiplied by p (1 - p). Columns are those before the table is encoded.
_TABLES = {
    True: (_Curve(30.0, 0.5, 0.0, 1.3), _Curve(30.0, 0.0, 0.0, 1.5)),
    False: (_Curve(60.0, 0.4, 0.0, 1.0), _RANKED_BY_A_SELECTION),
}
# A ranking by one selected column; the signal is p (1 - p) n epsilon.
_RANKED_BY_A_COLUMN = _Curve(17.0, 0.0, 0.0, 1.2)


@dataclass(frozen=True, slots=True)
class Linear:
    """Public facts about a fit of a linear or kernel classifier.

    `selects` states whether few records of two classes are fitted by a selection from a list, and
    `ranks_rare` whether the curves hold for a class of a few percent. `share` is that of the rarer
    class: a guess, or a released number if `is_counted`.
    """

    selects: bool = True
    ranks_rare: bool = True
    share: float = RARE
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """Public facts about a ranking: whether scales are stated, and the share of a class."""

    is_scale_stated: bool
    share: float = RARE


@dataclass(frozen=True, slots=True)
class Table:
    """Public facts about a fit of a table that has `n_encoded` columns after it is encoded.

    `share` is that of the rarer class: a public number, or a released one. `n_facts` is the number
    of columns in which a column of texts counts once for each hashed column of its words, None for
    the number of columns of the table. Up to the share `column_limit` the rarer class is ranked by
    one selected column.
    """

    n_encoded: int
    share: float = RARE
    n_facts: int | None = None
    column_limit: float = 0.0


def with_counted_share(kind: Linear | Ranking | Table, share: float) -> Linear | Ranking | Table:
    """Return the facts about a fit that has counted the rarer class."""
    if isinstance(kind, Linear):
        # A fit that counts the classes takes steps.
        return replace(kind, share=share, is_counted=True, selects=False)
    return replace(kind, share=share)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Expected quality of a fit, for classes of about equal size.

    Attributes
    ----------
    improvement : float
        Share, in [0, 1], of the improvement over the majority class that a linear classifier
        without privacy has.
    n_samples, n_features, n_classes : int
        Size of the table.
    epsilon : float
        Budget of the fit.
    n_samples_wanted : int
        Rows for four fifths of the improvement at this budget.
    epsilon_wanted : float
        Budget for four fifths of the improvement with these rows; infinite beyond 1e6.
    rare_improvement : float or None
        With two classes, one of which holds `rare_share` of the records: share of the area under
        the curve above one half that a linear classifier without privacy has. None for more
        classes, and for fits that may rank a rare class no better than chance at any budget:
        those that count errors, and those of rows that are not centred.
    rare_share : float
        5 %, or the public share of the rarer class.
    unit : str
        What counts as one of `n_samples`: records or persons.
    is_poor : bool
        Whether less than half of the improvement is to be expected.
    cannot_rank_rare : bool
        Whether a class of that share of the records is hardly told from the other one.
    column_limit : float
        Share of the rarer class up to which the model is one selected column; 0 for no such model.
    least_share : float or None
        Smallest share of the rarer of two classes whose ranking is expected to be better than
        chance, 1/2 if there is none; None for more classes.
    """

    improvement: float
    n_samples: int
    n_features: int
    n_classes: int
    epsilon: float
    n_samples_wanted: int
    epsilon_wanted: float
    rare_improvement: float | None = None
    rare_share: float = RARE
    unit: str = "records"
    is_poor: bool = False
    cannot_rank_rare: bool = False
    column_limit: float = 0.0
    least_share: float | None = None

    def __str__(self) -> str:
        # Two significant digits, since the curves are no more exact.
        rows = round(self.n_samples_wanted, 2 - len(str(self.n_samples_wanted)))
        text = (
            f"{self._sizes}: expect about {self.improvement:.0%} of the improvement "
            "over the majority class that a linear model without privacy would have, if classes "
            "are of about equal size"
        )
        if self.improvement < GOOD:
            text += (
                f" (for {GOOD:.0%}: about {rows} {self.unit}, or epsilon={self.epsilon_wanted:.2g})"
            )
        if self.rare_improvement is None and self.n_classes == 2:
            return f"{text}. {_RANKED_BY_WEIGHTS}"
        if self.rare_improvement is None:
            return f"{text}, and less for a rare class"
        text += (
            f". If one class has {100 * self.rare_share:.2g}% of the {self.unit}: about "
            f"{self.rare_improvement:.0%} of the area under the curve above one half"
        )
        text += _NO_BETTER * self.cannot_rank_rare
        if self.least_share is not None and self.rare_share < self.least_share < 0.5:
            text += (
                ". The ranking of the rarer class is expected to be better than chance if the "
                f"class has about {100 * self.least_share:.2g}% of the {self.unit} or more"
            )
        if self.column_limit:
            text += (
                f". If a noisy count finds at most {100 * self.column_limit:.2g}% of the "
                f"{self.unit} in the rarer class, the model is one selected column, which ranks "
                "that class, and every predicted label is the other one"
            )
        return text

    def after_choice(self, found: str) -> str:
        """Return the sentence about a model that was chosen by what noisy counts have `found`."""
        return f"{self._sizes}: {found}"

    def after_counts(self, found: str) -> str:
        """Return the warning about a ranking, given a share that was `found` by noisy counts."""
        return (
            f"{self._sizes}: {found}, expect about {self.rare_improvement:.0%} of the area under "
            "the curve above one half that a model without privacy would have"
            f"{_NO_BETTER * self.cannot_rank_rare}"
        )

    @property
    def _sizes(self) -> str:
        """The public facts, as the beginning of a message."""
        return (
            f"epsilon={self.epsilon:g} for {self.n_samples} {self.unit}, {self.n_features} columns "
            f"and {self.n_classes} classes"
        )


def outlook_of(
    n_samples: int,
    n_features: int,
    n_classes: int,
    epsilon: float,
    delta: float,
    *,
    is_scale_stated: bool = False,
    kind: Linear | Ranking | Table = Linear(),
    unit: str = "records",
) -> Outlook:
    """Return the expected quality of the default classifier, or of another `kind` of fit.

    If scales are stated, and for tables, selections are replaced by steps at a smaller budget. The
    steps of three to seven classes have a curve of their own then; those of two classes have not.
    Selections rank a rare class of any columns like one of a table.
    """
    is_table = isinstance(kind, Table)
    selects = n_classes > 2 or not isinstance(kind, Linear) or kind.selects
    is_small_table = (
        selects
        and not isinstance(kind, Ranking)
        and small_table_rule(
            n_samples=n_samples,
            n_features=kind.n_encoded if isinstance(kind, Table) else n_features,
            n_classes=n_classes,
            epsilon=epsilon,
            delta=delta,
            is_scale_stated=is_scale_stated,
            has_features=is_table,
        )
    )
    is_gaussian = delta > 0 and not is_small_table
    sizes = (n_samples, n_features, n_classes)
    if math.isinf(epsilon):
        ranked = 1.0 if n_classes == 2 else None
        return Outlook(1.0, *sizes, epsilon, n_samples, epsilon, ranked, unit=unit)
    strength = gdp_mu(epsilon, delta) if is_gaussian else epsilon
    # A ranking depends on the number of records of the rarer class.
    share, least = kind.share, HARDLY_BETTER
    rare = share * (1.0 - share)
    if isinstance(kind, Linear) and not kind.is_counted:
        least = HARDLY_RANKED
    elif not isinstance(kind, Ranking) and share < _UNEVEN:
        least = POOR
    even = 0.25 if isinstance(kind, Ranking) else 1.0
    curve, ranking = _curves(
        kind,
        n_classes,
        is_gaussian=is_gaussian,
        is_small_table=is_small_table,
        is_pure=delta == 0,
        is_scale_stated=is_scale_stated,
    )
    n_facts = n_features
    if isinstance(kind, Table) and kind.n_facts is not None:
        n_facts = kind.n_facts
    half = curve.half(n_facts, n_classes)
    odds = GOOD / (1.0 - GOOD)
    wanted = half * math.pow(odds, 1.0 / curve.steepness) / even
    needed = wanted / n_samples
    if is_gaussian:
        needed = gdp_epsilon(needed, delta) if needed < 1e3 else math.inf
    signal = n_samples * strength
    improvement = 1.0 / (1.0 + math.pow(half / (even * signal), curve.steepness))
    ranked = least_share = None
    column_limit = kind.column_limit if isinstance(kind, Table) else 0.0
    if n_classes == 2 and not (isinstance(kind, Linear) and not kind.ranks_rare):
        half = ranking.half(n_facts, n_classes)
        least_share = _least_share(kind, ranking, half / signal)
        ranking_signal = rare * signal
        if share <= column_limit:
            ranking, ranking_signal = _RANKED_BY_A_COLUMN, rare * n_samples * epsilon
            # The area of a single column varies too much from fit to fit to be relied on.
            least = 1.0
        half = ranking.half(n_facts, n_classes)
        ranked = 1.0 / (1.0 + math.pow(half / ranking_signal, ranking.steepness))
    return Outlook(
        improvement,
        *sizes,
        epsilon,
        math.ceil(wanted / strength),
        needed if needed <= LARGEST_EPSILON else math.inf,
        ranked,
        share,
        unit,
        is_poor=improvement < POOR,
        cannot_rank_rare=ranked is not None and ranked < least,
        column_limit=column_limit,
        least_share=least_share,
    )


def _curves(
    kind: Linear | Ranking | Table,
    n_classes: int,
    *,
    is_gaussian: bool,
    is_small_table: bool,
    is_pure: bool,
    is_scale_stated: bool,
) -> tuple[_Curve, _Curve]:
    """Return the curve of the improvement, and that of the ranking of a rare class."""
    if isinstance(kind, Ranking):
        curve = _RANKINGS[is_gaussian, kind.is_scale_stated]
    elif n_classes > 2:
        is_in_scale = (is_scale_stated or isinstance(kind, Table)) and n_classes <= MOST_CLASSES
        steps = _SEVERAL_IN_SCALE if is_in_scale else _SEVERAL_CLASSES
        several = steps if is_gaussian else _PURE_SEVERAL_CLASSES
        curve = _SMALL_OF_SEVERAL if is_small_table else several
    elif isinstance(kind, Table):
        return _TABLES[is_gaussian]
    elif is_small_table:
        return _PURE_TWO_CLASSES if is_pure else _SMALL_TABLE, _RANKED_BY_A_SELECTION
    else:
        curve = _TWO_CLASSES if is_gaussian else _PURE_TWO_CLASSES
    return curve, curve


def _least_share(kind: Linear | Ranking | Table, ranking: _Curve, half: float) -> float:
    """Return the smallest share for which ``cannot_rank_rare`` is false if it is counted.

    The result is at most one half. `half` is relative to the signal, which is multiplied by
    p (1 - p) for a class of the share p.
    """
    shares = []
    for least in (POOR, HARDLY_BETTER):
        variance = half * math.pow(least / (1.0 - least), 1.0 / ranking.steepness)
        shares.append(0.5 - math.sqrt(max(0.25 - variance, 0.0)))
    rare, even = shares
    if isinstance(kind, Ranking):
        return even
    limit = kind.column_limit if isinstance(kind, Table) else 0.0
    return max(rare if rare < _UNEVEN else max(even, _UNEVEN), limit)
