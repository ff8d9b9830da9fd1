"""Whitened Fourier features: sensitivity, what frequencies depend on, budget, rule, layouts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ortho_group

from dp_halfspace import PrivateKernelClassifier, PrivateTableClassifier, audit
from dp_halfspace.algorithms.engine import kernel_features as module
from dp_halfspace.algorithms.engine.defaults import additive_sizes, n_whitened, whitened_length
from dp_halfspace.algorithms.engine.kernel_features import (
    fine_length,
    frequency_lengths,
    n_coarse_frequencies,
    plan_whitening,
    whitening_map,
)
from dp_halfspace.algorithms.engine.training import Problem
from dp_halfspace.datasets import in_chunks
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.projection import AdditiveMap, Spectrum, draw_fourier
from dp_halfspace.rows.rows import Rows, normalised_rows
from tests.adversarial import neighbouring_pairs
from tests.algorithms.support import assert_costs, permit_for
from tests.conftest import separated
from tests.releases import record_releases
from tests.support import fitted, public

ROOT_TWO = math.sqrt(2.0)


def drawn(d, n_plain=0):
    fourier = draw_fourier(Spectrum("rbf"), d - n_plain, np.ones(16), np.random.default_rng(0))
    return AdditiveMap(d, 2, fourier, n_plain=n_plain, joint_length=1.0)


def planned(n, d, n_plain=0, mu=1.0):
    return plan_whitening(Problem(n, d, 2, False, 1.0), drawn(d, n_plain), mu, mu)


def query(rows, plan, feature_map):
    with record_releases() as releases:
        plan.run(rows, feature_map, permit_for(plan.moment.mechanism.event))
    return releases[0]


def worst_ratio(rows_of, n_plain=0):
    worst = 0.0
    for X, _, other, _ in neighbouring_pairs(np.random.default_rng(0), 60):
        d = X.shape[1]
        if d <= n_plain:
            continue
        plan = planned(len(X), d, n_plain, mu=50.0)
        a, b = (query(rows_of(rows), plan, drawn(d, n_plain)) for rows in (X, other))
        size = d - n_plain + 1
        assert len(a.value) == size * (size + 1) // 2
        change = float(np.linalg.norm(a.value - b.value))
        worst = max(worst, change / a.mechanism.sensitivity)
    return worst


def unit_rows(X):
    return normalised_rows(X, 0.1, 1.0 / math.sqrt(X.shape[1]))


@pytest.mark.parametrize("n_plain", [0, 1])
def test_sensitivity_against_brute_force(n_plain):
    assert 0.9 < worst_ratio(unit_rows, n_plain) <= 1


def test_brute_force_sees_rows_that_are_too_long():
    """Planted: the constant stands beside rows that are not brought to norm one."""
    assert worst_ratio(lambda X: Rows(X, constant=0.5)) > 1


def big(n=4000, d=3):
    X = np.random.default_rng(0).standard_normal((n, d)) @ np.diag(np.arange(1.0, d + 1.0))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def model(**params):
    return PrivateKernelClassifier(
        **{"epsilon": 3.0, "classes": [0, 1], "random_state": 0, **params}
    )


def maps_of_neighbours():
    """Feature maps of several data sets, the releases of all being the same."""
    X, y = big()
    given, found = [], []
    for rows in (X, np.vstack([-5.0 * X[:1], X[1:]]), 0.3 * X[:, ::-1]):
        again = iter(given[:])

        def answer(value, mechanism, source, again=again):
            given.append(next(again, None))
            if given[-1] is None:
                given[-1] = mechanism.perturb(value, source)
            return given[-1]

        with intercept_releases(answer):
            found.append(fitted(model(), rows, y).feature_map_.fourier.frequencies)
    return found


def test_frequencies_are_a_function_of_the_release():
    first, *others = maps_of_neighbours()
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_frequencies_by_a_moment_that_was_not_released_are_seen(monkeypatch):
    """Planted: the release is made and charged, and the exact moment is used."""
    real = module.released_moment

    def exact(rows, mechanism, permit):
        real(rows, mechanism, permit)
        return rows.gram()

    monkeypatch.setattr(module, "released_moment", exact)
    first, *others = maps_of_neighbours()
    assert all(not np.array_equal(first, other) for other in others)


def replayed():
    X, y = separated(200, 3, seed=1)
    other = X.copy()
    other[0] = -X[0]
    fresh = PrivateKernelClassifier(epsilon=60.0, delta=1e-4, classes=[0, 1])
    return audit.replay(fresh, X, y, other, y, n_histories=3, random_state=0)


def test_replay():
    assert not replayed().findings


def test_replay_sees_half_of_the_noise(monkeypatch):
    """Planted: the sensitivity of the moment is taken for a half of what it is."""
    real = module.plan_preconditioner

    def too_small(*args, **kwargs):
        plan = real(*args, **kwargs)
        mechanism = replace(plan.mechanism, sensitivity=0.5 * plan.mechanism.sensitivity)
        return replace(plan, mechanism=mechanism)

    monkeypatch.setattr(module, "plan_preconditioner", too_small)
    X, y = separated(200, 3, seed=1)
    X[0], other = [1.0, 0.0, 0.0], X.copy()
    other[0] = [0.0, 1.0, 0.0]
    fresh = PrivateKernelClassifier(epsilon=60.0, delta=1e-4, classes=[0, 1])
    assert audit.replay(fresh, X, y, other, y, n_histories=2, random_state=0).findings


def test_budget_and_record():
    X, y = big()
    found = fitted(model(delta=1e-6), X, y)
    events = found.privacy_.events
    assert_costs(events, gdp_mu(3.0, 1e-6))
    assert public(found)["private_whitening"]
    other = fitted(model(kernel="additive"), X, y)
    assert not public(other)["private_whitening"]
    assert len(events) == len(other.privacy_.events) + 1


@pytest.mark.parametrize(
    "params",
    [
        {"epsilon": 0.1},
        {"data_norm": 4.0, "epsilon": 1.5},
        {"delta": 0.0},
        {"margin": 0.2},
        {"solver": "objective_perturbation"},
        {"kernel": "additive"},
        {"kernel": "rbf"},
    ],
    ids=str,
)
def test_other_fits_release_no_moment_of_the_columns(params):
    X, y = big(600 if "solver" in params else 2000)
    assert not public(fitted(model(**{"n_components": 64, **params}), X, y))["private_whitening"]


def test_numbers_of_features_are_within_their_limits():
    for n in (1000, 5734, 13314, 32011, 10**6):
        for d in (1, 9, 60, 300):
            for mu in (0.05, 0.5, 50.0, math.inf):
                joint = n_whitened(n, d, 2, mu, 1023)
                assert joint % 2 == 0
                assert joint == 0 or joint >= 32
                assert joint <= max(192, n / 25)
                assert joint + 8 * d <= max(1023, 2.75 * (192 + 8 * d))
                assert 1 / 3 - 1e-9 <= whitened_length(n, d, 2, mu) ** 2 <= 1


def test_map_flattens_what_is_released():
    basis = ortho_group.rvs(4, random_state=np.random.default_rng(0))
    values = np.array([4.0, 3.0, 0.9, 0.1])
    root, left = whitening_map(1000.0 * (basis * values) @ basis.T, 1.0)
    scaled = values * 4 / values.sum()
    np.testing.assert_allclose(np.sort(left), np.sort(scaled / (scaled + 0.1)))
    flat = root @ (basis * scaled) @ basis.T @ root
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(flat)), np.sort(left), atol=1e-12)


@pytest.mark.parametrize("moment", [np.zeros((3, 3)), -np.eye(3), 1e12 * np.eye(3)], ids=str)
@pytest.mark.parametrize("edge", [0.0, 5.0])
def test_any_release_has_a_finite_map(moment, edge):
    root, left = whitening_map(moment, edge)
    assert np.isfinite(root).all()
    assert 0.15 <= fine_length(left, 100.0) <= 1.0


def test_fine_features_tell_so_many_parts_apart():
    spectrum = np.array([0.9, 0.5, 0.2])
    length = fine_length(spectrum, 20.0)
    assert np.prod(np.sqrt(1 + 4 * spectrum / (3 * length**2))) == pytest.approx(20.0)
    assert fine_length(spectrum, 1e9) == pytest.approx(0.15)
    assert fine_length(spectrum, 1.0) == pytest.approx(1.0)


def test_the_fewer_directions_rows_have_the_fewer_frequencies_are_coarse():
    """The square of the parts that the coarse kernel tells apart, times six."""
    assert n_coarse_frequencies(np.array([1.0]), 400) == 30
    assert n_coarse_frequencies(np.array([1.0, 0.1, 0.1]), 400) == round(6 * 7 / 3 * (17 / 15) ** 2)
    assert n_coarse_frequencies(np.ones(9), 400) == 96
    assert n_coarse_frequencies(np.ones(9), 64) == n_coarse_frequencies(np.ones(9), 63) == 32


@pytest.mark.parametrize(("size", "coarse"), [(64, 32), (400, 65)])
def test_half_of_the_frequencies_are_coarse_but_not_more_than_directions_allow(size, coarse):
    """Behind a moment that is flat, with its noise, a coarse frequency is as it was drawn."""
    fourier = draw_fourier(Spectrum("rbf"), 3, np.ones(size), np.random.default_rng(0))
    plan = plan_whitening(Problem(900, 3, 2, False, 1.0), drawn(3), 50.0, 1.0)
    plan = replace(plan, n_cells=50.0)
    rows = Rows(np.tile(np.eye(3), (300, 1)), constant=0.0)
    given = AdditiveMap(3, 2, fourier, joint_length=1.0)
    found = plan.run(rows, given, permit_for(plan.moment.mechanism.event)).fourier.frequencies
    stretched = np.linalg.norm(found, axis=0) / np.linalg.norm(fourier.frequencies, axis=0)
    np.testing.assert_allclose(stretched[:coarse], 1.1**-0.5, rtol=0.02)
    assert stretched[coarse:].min() > 1.2


def test_rows_in_chunks_have_the_same_fit():
    X, y = big()
    whole = fitted(model(), X, y)
    parts = fitted(model(), in_chunks(X, 1500), in_chunks(y, 1500))
    expected = whole.feature_map_.fourier.frequencies
    np.testing.assert_allclose(parts.feature_map_.fourier.frequencies, expected, rtol=1e-5)


def test_people_have_it():
    X, y = big()
    with pytest.warns(PrivacyWarning):
        alone = model().fit(X, y, groups=np.arange(len(X)))
    assert public(alone)["private_whitening"]


def test_columns_of_a_table_without_features_have_no_part():
    X, y = big()
    table = np.column_stack([X, np.where(y ^ (X[:, 2] > 0), "a", "b")]).astype(object)
    schema = {"0": [-4, 4], "1": [-6, 6], "2": [-9, 9], "3": ["a", "b", "c"]}
    found = PrivateTableClassifier(epsilon=3.0, schema=schema, classes=[0, 1]).fit(table, y)
    fourier = found.model_.feature_map_.fourier
    assert fourier.n_features_in == 3
    assert public(found)["private_whitening"]


def test_fourier_features_of_many_columns_in_estimated_scales_need_as_many_records_as_cosines():
    """Of the same budget a stated scale has them, too."""
    for d, mu in ((40, 0.07), (80, 0.07), (80, 0.2)):
        n_terms, joint = additive_sizes(5600, d, 2, mu, 511)
        assert (joint > 0) == (n_terms > 1)
        assert additive_sizes(5600, d, 2, mu, 511, is_stated=True)[1] > 0
        assert (n_whitened(5600, d, 2, mu, 1023) > 0) == (n_terms > 1)


def test_half_of_the_fine_frequencies_of_two_columns_distinguish_at_least_28_parts():
    two = np.array([1.0, 0.8])
    lengths = frequency_lengths(two, 100, 7.0)
    n_coarse = n_coarse_frequencies(two, 100)
    n_finer = (100 - n_coarse) // 2
    assert (lengths[:n_coarse] == 1.0).all()
    assert (lengths[n_coarse : 100 - n_finer] == fine_length(two, 7.0)).all()
    assert (lengths[100 - n_finer :] == fine_length(two, 28.0)).all()
    assert fine_length(two, 28.0) < fine_length(two, 7.0)
    # Where records resolve more parts, all fine frequencies distinguish as many.
    assert (frequency_lengths(two, 100, 60.0)[n_coarse:] == fine_length(two, 60.0)).all()
    three = np.array([1.0, 0.8, 0.8])
    n_coarse = n_coarse_frequencies(three, 100)
    assert (frequency_lengths(three, 100, 7.0)[n_coarse:] == fine_length(three, 7.0)).all()
