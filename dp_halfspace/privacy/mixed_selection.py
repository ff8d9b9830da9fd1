r"""Selection of the best of a random number of runs that are not Gaussian, or not alike.

Each run draws one of several candidates, publicly, and each candidate has an account of its own:
Gaussian releases, objective perturbations, or both. The rank factors of the selection come from
the trade-off function of the mixture. Proofs: ``docs/proofs/selection.md``, section 8.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from dp_halfspace.privacy._event_losses import counted, gaussian_terms
from dp_halfspace.privacy._log_profiles import (
    EPSILON_SLACK,
    LOG_SLACK,
    FloatArray,
    log_gdp_delta,
)
from dp_halfspace.privacy._rank_ratio import chords_of, log_ratio_of
from dp_halfspace.privacy._run_law import RunLaw
from dp_halfspace.privacy._trade_off import trade_off
from dp_halfspace.privacy.events import (
    Event,
    Gaussian,
    MixedSelection,
    ObjectivePerturbation,
    Repeated,
)

__all__ = ["is_mixable", "mixed_selection_event"]

Term: TypeAlias = tuple[float, float, float]

_TOLERANCE = 2.0**-18
# Chords of a smaller ratio would be finer than the tolerance.
_SMALLEST = 2.0**-10
_UP = 1.0 + 2.0**-45


def is_mixable(events: Iterable[Event]) -> bool:
    """Whether a run that releases this can take part in `mixed_selection_event`.

    Parameters
    ----------
    events : iterable of Event

    Returns
    -------
    bool
        True if all are Gaussian or objective perturbations of a sum over records.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import Gaussian, Pure
    >>> from dp_halfspace.privacy.mixed_selection import is_mixable
    >>> is_mixable([Gaussian(0.1)]), is_mixable([Gaussian(0.1), Pure(0.1)])
    (True, False)
    """
    for charged in events:
        event = charged
        while isinstance(event, Repeated):
            event = event.event
        known = isinstance(event, ObjectivePerturbation) and not event.pairwise
        if not known and not isinstance(event, Gaussian):
            return False
    return True


def mixed_selection_event(
    law: RunLaw, runs: Sequence[Iterable[Event]], *, chords: bool = True
) -> MixedSelection:
    """Event of publishing the best of a random number of runs of random candidates.

    Parameters
    ----------
    law : RunLaw
        Law of the number of runs.
    runs : sequence of iterable of Event
        For each candidate everything that one run of it releases, its noisy score included.
        Each run draws one of them uniformly.
    chords : bool, default=True
        False splits no mass over smaller ratios: faster, and a larger bound.

    Returns
    -------
    MixedSelection
        To be charged once, instead of the events of the runs.

    Raises
    ------
    ValueError
        If there is no run, or one that is not `is_mixable`.

    Notes
    -----
    Privacy: valid for the output of `dp_halfspace.privacy.tune.select_best`. For runs that are
    all `mu`-GDP, `dp_halfspace.privacy.random_stopping.selection_event` says the same, up to a
    relative 1e-3.

    References
    ----------
    .. [1] A. Koskela, R. Redberg, Y.-X. Wang. Privacy profiles for private selection.
       ICML 2024.

    Examples
    --------
    >>> from dp_halfspace.privacy.accounting import delta
    >>> from dp_halfspace.privacy.events import Gaussian, ObjectivePerturbation
    >>> from dp_halfspace.privacy.mixed_selection import mixed_selection_event
    >>> from dp_halfspace.privacy.random_stopping import geometric_law
    >>> law = geometric_law(15.0)
    >>> f"{delta([mixed_selection_event(law, [[Gaussian(0.15)]])], 1.0):.2e}"
    '2.82e-07'
    >>> run = [ObjectivePerturbation(0.05, ((1, 0.0), (2, 0.06), (1, 0.12))), Gaussian(0.09)]
    >>> f"{delta([mixed_selection_event(law, [run, [Gaussian(0.15)]])], 1.0):.2e}"
    '6.16e-06'
    """
    terms = _terms(runs)
    weight, shift, mu = (np.array(x) for x in zip(*terms, strict=True))

    def log_delta(t: FloatArray) -> FloatArray:
        lowered = t * (1.0 - EPSILON_SLACK)
        logs = [
            math.log(w) + log_gdp_delta(float(m), lowered - s * (1.0 + EPSILON_SLACK))
            for w, s, m in zip(weight, shift, mu, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(logs, axis=0) + LOG_SLACK)

    bound = None if not np.isfinite([weight, shift, mu]).all() else trade_off(log_delta)
    whole = math.log(law.mean / law.probabilities[0]) * _UP + 2.0**-50
    if bound is None or law.k_max == 1 or not math.isfinite(bound.top):
        return MixedSelection(law.mean, whole, terms)
    ratio = log_ratio_of(law.probabilities, bound, _TOLERANCE)
    if not chords or ratio < _SMALLEST:
        return MixedSelection(law.mean, ratio, terms)
    shares = chords_of(law.probabilities, law.mean, bound, ratio)
    return MixedSelection(law.mean, ratio, terms, shares)


def _terms(runs: Sequence[Iterable[Event]]) -> tuple[Term, ...]:
    """Gaussian losses whose weighted sum bounds the profile of a run of a random candidate."""
    listed = [tuple(run) for run in runs]
    if not listed or not all(is_mixable(run) for run in listed):
        raise ValueError(
            "runs must be Gaussian releases or objective perturbations of sums over records, "
            "of one candidate at least"
        )
    weights: defaultdict[tuple[float, float], float] = defaultdict(float)
    for run, count in Counter(listed).items():
        counts = counted(run)
        product = None if counts is None else gaussian_terms(counts)
        for weight, shift, mu in product or [(1.0, math.inf, math.inf)]:
            weights[shift * _UP, mu] += count * weight * _UP
    total = len(listed)
    return tuple((w / total * _UP, *place) for place, w in sorted(weights.items()))
