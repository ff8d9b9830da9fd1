"""Attacks on floating point, against every way to release something.

What can be reached does not depend on the data, and neighbours stay within the sensitivity
whatever the order, precision and size of the records and the number of threads. The naive sampler
is broken by the same code.
"""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from dp_halfspace import (
    AdaptiveMarginClassifier,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
)
from dp_halfspace.audit import replay
from dp_halfspace.audit.white_box import History, fit_and_record
from dp_halfspace.engine import linear
from dp_halfspace.papers.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.privacy import mechanisms
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise
from dp_halfspace.privacy.noise import RandomizedResponse
from dp_halfspace.privacy.randomness import OS_RANDOMNESS
from dp_halfspace.rows import float32_rows
from dp_halfspace.rows.rows import Rows
from tests.audit.paths import MODELS, OTHERS, SMALL, Table
from tests.instances import adjacency, label
from tests.privacy.oracles import grid_of
from tests.releases import record_releases

RECORD = 5
# A record that is replaced may move a value by its sensitivity; what is only rounded otherwise, by
# a millionth of it.
REPLACED, ROUNDED = 1.0, 1e-6
ENDS = [1e300, -1e-310, 0.0], [-1e300, 5e-324, 1e-160]


def people(X, y):
    """A fit in which three neighbouring rows belong to a person."""
    model = AdaptiveMarginClassifier(epsilon=20.0, data_norm=1.0, classes=[0, 1])
    return model.fit(X, y, groups=np.arange(len(y)) // 3)


# So small a budget buys no scales beside a stated norm: rows are read as they are stored.
UNSCALED = AdaptiveMarginClassifier(epsilon=0.1, data_norm=1.0, iterate="mean", classes=[0, 1])
PATHS = {
    "unscaled": UNSCALED,
    **{f"{label(model)}": model for model in MODELS},
    **OTHERS,
    "table": Table(epsilon=10.0, classes=[0, 1]),
    "small table": Table(epsilon=0.5, classes=[0, 1]),
    **SMALL,
    "people": people,
}
# One of each class, and cheap.
FAST = {
    "AdaptiveMarginClassifier-data_norm=None", "AdaptiveMarginClassifier-",
    "AdaptiveMarginClassifier-solver=phased_prox", "LabelPrivateClassifier-kernel=linear",
    "ObjectivePerturbationClassifier-", "OutputPerturbationClassifier-delta=0.0",
    "PrivateAUCClassifier-", "PrivateKernelClassifier-kernel=polynomial",
    "PureHalfspaceClassifier-n_stages=3", "PureNetworkClassifier-n_hidden=3-projection=rademacher",
    "scaler", "pure scaler", "search, pure", "roc_auc, 1e-06", "log_loss, 0.0", "table", "people",
    "small table", "small, stated", "small, three classes", "unscaled",
}  # fmt: skip
every_path = pytest.mark.parametrize(
    "path", [pytest.param(p, marks=[] if p in FAST else pytest.mark.slow) for p in PATHS]
)


def records(n=400, seed=0):
    """Rows of lengths from a thousandth to a thousand, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * 10.0 ** rng.uniform(-3, 3, (n, 1))
    return X, rng.integers(2, size=n)


def replaced(X, y, row, code):
    """The same records but for one."""
    X, y = X.copy(), y.copy()
    X[RECORD], y[RECORD] = row, code
    return X, y


def depends_on_order(estimator):
    """Persons, phases and public features go by the places of the rows."""
    params = estimator.get_params() if hasattr(estimator, "get_params") else {}
    is_phased = params.get("solver") == "phased_prox"
    return estimator is people or is_phased or protects_labels(estimator)


def protects_labels(estimator):
    return adjacency(estimator) == "replace-one-label"


def permuted(X, y):
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order]


def removed(X, y):
    """The record is taken out, so that all later ones move up; another comes at the end."""
    last = -X[RECORD], 1 - y[RECORD]
    return np.vstack([np.delete(X, RECORD, 0), last[0]]), np.append(np.delete(y, RECORD), last[1])


def single(X, y):
    return X.astype(np.float32), y


def pair(estimator, X, y, row, other):
    """Neighbours in one record: two rows with two labels, or one with both."""
    other = row if protects_labels(estimator) else other
    return replaced(X, y, row, y[RECORD]), replaced(X, y, other, 1 - y[RECORD])


def rounded(estimator):
    """How far an order of the records may move a value: features and scaled rows are in float32."""
    single = AdaptiveMarginClassifier, PrivateAUCClassifier, PrivateKernelClassifier, Table
    of_search = getattr(estimator, "estimator", estimator)
    is_single = isinstance(of_search, single) and estimator is not UNSCALED
    return 1e-3 if is_single else ROUNDED


# From an estimator and a data set to a pair of them, and how far its values may be apart.
ATTACKS = {
    "order": lambda e, X, y: ((X, y), permuted(X, y), rounded(e)),
    "removal": lambda e, X, y: ((X, y), removed(X, y), REPLACED),
    "nothing": lambda e, X, y: (*pair(e, X, y, X[RECORD], np.zeros(3)), REPLACED),
    "the ends of the floats": lambda e, X, y: (*pair(e, X, y, *ENDS), REPLACED),
    "float32": lambda e, X, y: (*pair(e, *single(X, y), X[RECORD], -X[RECORD]), REPLACED),
}


def attacked(estimator, attack, n=400):
    """Return the largest distance over what it may be, and what else is found."""
    first, second, most = ATTACKS[attack](estimator, *records(n))
    with threadpool_limits(2):
        result = replay(estimator, *first, *second, n_histories=2, random_state=1)
    # A perturbed minimiser has no value with noise added: findings are all that is compared.
    largest = max((release.ratio for release in result.releases), default=0.0)
    return largest / most, result.findings


@pytest.mark.sampled(5)
@every_path
@pytest.mark.parametrize("attack", ATTACKS)
def test_values_stay_within_their_sensitivity(path, attack):
    estimator = PATHS[path]
    if attack in ("order", "removal") and depends_on_order(estimator):
        pytest.skip("the places of the records are public")
    largest, findings = attacked(estimator, attack)
    assert largest <= 1.0
    assert not findings


@pytest.mark.sampled(1)
@pytest.mark.parametrize("attack", ["nothing", "the ends of the floats", "float32"])
def test_values_of_single_records_stay_within_theirs(attack):
    """Its steps are too many for the tables of the other paths, and go by the places of rows."""
    model = AdaptiveMarginClassifier(
        margin=0.3, solver="noisy_sgd", epsilon=20.0, data_norm=1.0, classes=[0, 1]
    )
    largest, findings = attacked(model, attack, n=8)
    assert largest <= 1.0
    assert not findings


def apart_by_threads(estimator):
    """Return how far values of one and of two threads are apart, over the sensitivity."""
    fit, data = partial(fit_and_record, estimator, 1), [records(9000) for _ in range(2)]

    def limited(one, answer):
        with threadpool_limits(1 + (one is data[1])):
            return fit(one, answer)

    history = History(limited, None, *data)
    history.run()
    return max((each.ratio for each in history.compare_releases()), default=0.0)


@pytest.mark.sampled(5)
@every_path
def test_threads_change_nothing_but_roundings(path):
    if "Pure" in path or "small" in path:
        pytest.skip("counts of records are exact, and take long")
    assert apart_by_threads(PATHS[path]) <= ROUNDED


def first_weighs_more(patch):
    """Planted: the first record has a weight that no other one has."""
    honest = Rows.fused_adjoint

    def rough(self, w, coefficients):
        first = np.arange(self.shape[0]) == 0
        return honest(self, w, coefficients) + 1e-3 * self.adjoint(first.astype(float))

    patch.setattr(Rows, "fused_adjoint", rough)


def coarse_with_two_threads(patch):
    """Planted: sums that are rounded to three digits by two threads, and no guard."""
    honest = float32_rows.Float32Rows.fused_adjoint

    def rough(self, w, slopes):
        total = honest(self, w, slopes)
        is_alone = max(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas") == 1
        return total if is_alone else np.array([float(f"{x:.2e}") for x in total])

    patch.setattr(float32_rows.Float32Rows, "fused_adjoint", rough)


DEFAULT = PATHS["AdaptiveMarginClassifier-"]


@pytest.mark.slow
def test_sums_that_notice_the_order_are_seen(monkeypatch):
    assert attacked(UNSCALED, "order")[0] <= 1.0
    first_weighs_more(monkeypatch)
    assert attacked(UNSCALED, "order")[0] > 1.0


@pytest.mark.slow
def test_threads_that_round_are_seen(monkeypatch):
    """Held at one thread they cannot."""
    coarse_with_two_threads(monkeypatch)
    assert apart_by_threads(DEFAULT) == 0.0
    monkeypatch.setattr(linear, "single_blas_thread", nullcontext)
    assert apart_by_threads(DEFAULT) > ROUNDED


def unreachable(release):
    """How many released numbers are none of those that every data set can reach."""
    mechanism, numbers = release.mechanism, np.asarray(release.released)
    match mechanism:
        case GaussianNoise():
            grid = grid_of(mechanism.sigma)
        case GaussianLinearTerm():
            grid = grid_of(mechanism.sigma, 32)
        case L2LaplaceNoise():
            grid = grid_of(mechanism.scale * np.sqrt(numbers.size))
        case LaplaceLinearTerm():
            grid = grid_of(mechanism.scale * np.sqrt(numbers.shape[1]), 30)
        case _:
            grid = 1.0
    steps = numbers / grid
    is_missed = (steps != np.rint(steps)) | (np.abs(steps) > 2.0**53)
    if numbers.shape != np.shape(release.value) or isinstance(mechanism, RandomizedResponse):
        is_missed |= (numbers < 0) | (
            numbers >= getattr(mechanism, "n_classes", release.value.size)
        )
    return int(is_missed.sum())


def unreachable_of(estimator):
    """The same of all that a fit releases; and of how many numbers."""
    X, y = records()
    with record_releases() as releases:
        clone(estimator).fit(X, y) if hasattr(estimator, "fit") else estimator(X, y)
    sizes = sum(np.size(release.released) for release in releases)
    return sum(map(unreachable, releases)), sizes


@pytest.mark.sampled(12)
@every_path
def test_what_can_be_reached_does_not_depend_on_the_data(path):
    missed, size = unreachable_of(PATHS[path])
    assert size > 0
    assert missed == 0


def naive_gaussian(value, noise, source):
    del source
    return value + np.random.default_rng().normal(0.0, noise.spread * noise.grid, np.shape(value))


def naive_laplace(value, scale, **options):
    del options
    return value + np.random.default_rng().laplace(0.0, scale, np.shape(value))


def plant_naive(patch):
    patch.setattr(mechanisms, "add_noise", naive_gaussian)
    patch.setattr(mechanisms, "l2_laplace", naive_laplace)


ADDITIVE = ["AdaptiveMarginClassifier-", "OutputPerturbationClassifier-delta=0.0",
            "PrivateAUCClassifier-", "scaler", "log_loss, 1e-06", "table",
            "people"]  # fmt: skip


@pytest.mark.parametrize("path", ADDITIVE)
def test_naive_noise_is_seen(monkeypatch, path):
    """Planted: textbook noise in floating point."""
    plant_naive(monkeypatch)
    missed, size = unreachable_of(PATHS[path])
    assert missed > 0.9 * size


def betrays_zero(released):
    """Numbers near zero with bits that a sum with a value of one or more has lost."""
    steps = released * 2.0**56
    return (np.abs(released) < 2.0**-4) & (steps != np.rint(steps))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [GaussianNoise, L2LaplaceNoise])
def test_low_bits_tell_zero_from_one_with_certainty_under_naive_noise(monkeypatch, kind):
    """Neighbours with the values zero and one: the attack never errs, and ours is silent."""
    noise = kind(1.0, 1.0)

    def told(value):
        draws = [noise.perturb(np.full(1, value), OS_RANDOMNESS) for _ in range(1000)]
        return int(betrays_zero(np.concatenate(draws)).sum())

    assert told(0.0) == told(1.0) == 0
    plant_naive(monkeypatch)
    assert told(0.0) > 10
    assert told(1.0) == 0
