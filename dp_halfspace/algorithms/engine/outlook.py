"""What accuracy to expect of a fit, from public numbers alone and in microseconds.

:func:`~dp_halfspace.inspection.plan_accuracy` simulates tables and runs the estimator on them. The
curves here were fitted to its results once, so that every fit can be told beforehand whether its
budget is large enough for its table: ``docs/planning.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_halfspace.algorithms.engine.defaults import small_table_rule
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu

# Below this share of the improvement a fit warns, and for this share it says what it would take.
POOR, GOOD = 0.5, 0.8
# A class of this share of the records is rare; below this share of the area a fit warns of that.
RARE, HARDLY_RANKED = 0.05, 0.2
_LARGEST_EPSILON = 1e6


@dataclass(frozen=True, slots=True)
class _Curve:
    """Share of the improvement against the signal: ``1 / (1 + (half / signal)^steepness)``.

    The signal is n mu, or n epsilon without Gaussian noise; ``half``, at which half of the
    improvement is reached, is ``factor d^columns K^classes``.
    """

    factor: float
    columns: float
    classes: float
    steepness: float

    def half(self, n_features: int, n_classes: int) -> float:
        """Signal at which half of the improvement is reached."""
        return self.factor * math.pow(n_features, self.columns) * math.pow(n_classes, self.classes)

    def share(self, signal: float, n_features: int, n_classes: int) -> float:
        """Share of the improvement that is reached at a signal."""
        return 1.0 / (1.0 + math.pow(self.half(n_features, n_classes) / signal, self.steepness))

    def signal(self, share: float, n_features: int, n_classes: int) -> float:
        """Signal at which a share of the improvement is reached."""
        odds = share / (1.0 - share)
        return self.half(n_features, n_classes) * math.pow(odds, 1.0 / self.steepness)


# Fitted to 4 simulated tables for each of 2, 3, 6 and 12 classes, 3 to 100 columns, 100 to 10,000
# rows and epsilon .1 to 3; root mean square error .02 (two classes) to .1 (small tables).
_TWO_CLASSES = _Curve(1.9, 0.78, 0.0, 0.94)
_SEVERAL_CLASSES = _Curve(3.6, 0.30, 1.25, 1.12)
_SMALL_TABLE = _Curve(6.8, 0.68, 0.0, 0.89)
_PURE_TWO_CLASSES = _Curve(3.1, 0.90, 0.0, 0.77)
_PURE_SEVERAL_CLASSES = _Curve(4.3, 0.79, 1.43, 1.03)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect of a fit, for classes of about equal size.

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
        With two classes, one of which holds 5 % of the records: share of the area under the curve
        above one half that a linear classifier without privacy has. None for more classes.
    """

    improvement: float
    n_samples: int
    n_features: int
    n_classes: int
    epsilon: float
    n_samples_wanted: int
    epsilon_wanted: float
    rare_improvement: float | None = None

    def __str__(self) -> str:
        rows, epsilon = _rounded(self.n_samples_wanted), f"{self.epsilon_wanted:.2g}"
        text = (
            f"epsilon={self.epsilon:g} for {self.n_samples} records, {self.n_features} columns and "
            f"{self.n_classes} classes: expect about {self.improvement:.0%} of the improvement "
            "over the majority class that a linear model without privacy would have, if classes "
            "are of about equal size"
        )
        if self.improvement < GOOD:
            text += f" (for {GOOD:.0%}: about {rows} records, or epsilon={epsilon})"
        if self.rare_improvement is None:
            return f"{text}, and less of a rare class"
        text += (
            f". If one class has {RARE:.0%} of the records: about {self.rare_improvement:.0%} of "
            "the area under the curve above one half"
        )
        if self.cannot_rank_rare:
            text += ", so that its ranking is hardly better than chance: do not rely on it"
        return text

    @property
    def is_poor(self) -> bool:
        """Whether less than half of the improvement is to be expected."""
        return self.improvement < POOR

    @property
    def cannot_rank_rare(self) -> bool:
        """Whether a class of 5 % of the records is hardly told from the other one."""
        return self.rare_improvement is not None and self.rare_improvement < HARDLY_RANKED


def _rounded(number: int) -> int:
    """Round to two digits: the curves know no more."""
    digits = max(0, len(str(number)) - 2)
    return round(number, -digits)


def outlook_of(
    n_samples: int,
    n_features: int,
    n_classes: int,
    epsilon: float,
    delta: float,
) -> Outlook:
    """Say what to expect of the default classifier."""
    is_small_table = small_table_rule(
        n_samples=n_samples,
        n_features=n_features,
        n_classes=n_classes,
        epsilon=epsilon,
        delta=delta,
        is_scale_stated=False,
    )
    # Of several classes a selection takes the place of steps only where it is more accurate.
    is_gaussian = delta > 0 and not (is_small_table and n_classes == 2)
    if n_classes > 2:
        curve = _SEVERAL_CLASSES if is_gaussian else _PURE_SEVERAL_CLASSES
    elif is_small_table and delta > 0:
        curve = _SMALL_TABLE
    else:
        curve = _TWO_CLASSES if is_gaussian else _PURE_TWO_CLASSES
    if math.isinf(epsilon):
        sizes = (n_samples, n_features, n_classes)
        return Outlook(1.0, *sizes, epsilon, n_samples, epsilon, 1.0 if n_classes == 2 else None)
    strength = gdp_mu(epsilon, delta) if is_gaussian else epsilon
    wanted = curve.signal(GOOD, n_features, n_classes)
    needed = wanted / n_samples
    if is_gaussian:
        needed = gdp_epsilon(needed, delta) if needed < 1e3 else math.inf
    # Of two classes the records of the rarer one are what counts.
    rare = curve.share(RARE * n_samples * strength, n_features, n_classes)
    return Outlook(
        curve.share(n_samples * strength, n_features, n_classes),
        n_samples,
        n_features,
        n_classes,
        epsilon,
        math.ceil(wanted / strength),
        needed if needed <= _LARGEST_EPSILON else math.inf,
        rare if n_classes == 2 else None,
    )
