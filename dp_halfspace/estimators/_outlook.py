"""The ranking to expect of a fit, from public numbers alone and in microseconds.

One rule for all classes that use the engine, fitted to real tables: ``docs/planning.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_halfspace._params import EPSILON_RANGE

# At this n epsilon, over the root of the number of encoded columns, a fit is expected to have half
# of the area above one half of a model without privacy.
_HALF = 70.0
# A fit that expects less than this share of that area warns: a smaller limit finds few more good
# fits, and a larger one few more that rank by chance.
_POOR = 0.3
# This share is enough: the next step is stated for it.
ENOUGH = 0.8
# Standard deviation of the share over fits and tables, as a multiple of what is missing from the
# whole.
_SPREAD = 1.2


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect of the ranking of a fit to classes of which none is rare.

    Attributes
    ----------
    n_samples, n_features : int
        Number of records, or of persons, and of columns after encoding.
    epsilon : float
        Budget of the fit.
    unit : str
        What counts as one of `n_samples`: records or persons.
    """

    n_samples: int
    n_features: int
    epsilon: float
    unit: str = "records"

    @property
    def improvement(self) -> float:
        """Share of the area above one half that a model without privacy would have, in [0, 1]."""
        return 1.0 / (1.0 + _half(self.n_features) / (self.n_samples * self.epsilon))

    @property
    def spread(self) -> float:
        """Standard deviation of this share over fits and tables."""
        # No number in [0, 1] has a standard deviation above one half.
        return min(0.5, _SPREAD * (1.0 - self.improvement))

    @property
    def n_samples_wanted(self) -> int:
        """Records for four fifths at this budget."""
        return math.ceil(_wanted(self.n_features) / self.epsilon)

    @property
    def epsilon_wanted(self) -> float:
        """Budget for four fifths with these records."""
        return _wanted(self.n_features) / self.n_samples

    @property
    def is_poor(self) -> bool:
        """Whether less than three tenths are to be expected, so that a fit warns."""
        return self.improvement < _POOR

    @property
    def expectation(self) -> str:
        """What to expect of the ranking, in words, without the sizes that it follows from."""
        return (
            f"expect about {self.improvement:.0%} (give or take {self.spread:.0%}) of the area "
            "under the ROC curve above one half that a model without privacy would have"
        )

    def __str__(self) -> str:
        text = (
            f"epsilon={self.epsilon:g} for {self.n_samples} {self.unit}: if no class is rare, "
            f"{self.expectation}"
        )
        if self.improvement >= ENOUGH:
            return text
        # Two significant digits, since the rule is no more exact.
        n, epsilon = self.n_samples_wanted, self.epsilon_wanted
        way = f" or epsilon={float(f'{epsilon:.2g}'):g}" if epsilon <= EPSILON_RANGE[1] else ""
        return f"{text}; for {ENOUGH:.0%}, use about {round(n, 2 - len(str(n)))} {self.unit}{way}"


def _half(n_features: int) -> float:
    return _HALF * math.sqrt(n_features)


def _wanted(n_features: int) -> float:
    return _half(n_features) * ENOUGH / (1.0 - ENOUGH)
