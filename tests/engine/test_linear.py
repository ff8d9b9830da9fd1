"""The linear fit as a list of releases: sensitivities, rows of norm one, precision, signs."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.engine import linear, moment, steps
from dp_halfspace.engine.linear import Known, final_rows, first_rows, sum_of_squares
from dp_halfspace.engine.moment import centring_of, packed, unpacked
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.engine.release import Release, described, run
from dp_halfspace.engine.scales import ColumnScales
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Gaussian, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs
from tests.engine.pairs import plan_of, ratios, training_data
from tests.permits import assert_costs, door_of


def worst_ratio(trials, *, n_classes=2, copies=1, **how):
    """Largest distance over the sensitivity of the length, the moment and the steps."""
    rng = np.random.default_rng(0)
    worst = np.zeros(3)
    for X, y, other, z in neighbouring_pairs(rng, trials, n_classes=n_classes):
        X, other = np.repeat(X, copies, axis=0), np.repeat(other, copies, axis=0)
        # One record is replaced, not its copies.
        other[1:copies], y, z = X[1:copies], np.repeat(y, copies), np.repeat(z, copies)
        z[1:copies] = y[1:copies]
        # With little noise its moment tells the directions of so few rows.
        plan = plan_of(X, n_classes, is_scale_stated=True, epsilon=100.0, **how)
        pair = (training_data(a, k, n_classes) for a, k in ((X, y), (other, z)))
        found = ratios(plan, *pair, rng, noise=rng.choice([0.0, 1.0, 30.0]) * 0.01)
        worst = np.maximum(worst, [*found[:2], found[2:].max()])
    return worst


@pytest.mark.core
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sensitivities_against_brute_force(n_classes):
    worst = worst_ratio(60 if n_classes == 2 else 30, n_classes=n_classes)
    assert (worst <= 1).all()
    assert worst[1] > 0.75
    # Slopes of three classes are never opposite.
    assert worst[2] > (0.9 if n_classes == 2 else 0.85)


def worst_length(rng):
    """Largest distance of sums of squared lengths over their sensitivity."""
    found = []
    for row in ([0.0, 0.0], [3.0, 4.0], [1e300, -1e300], [1e-200, 0.0]):
        X = rng.normal(size=(40, 2))
        other = X.copy()
        X[11], other[11] = row, rng.choice([0.0, 1e9], size=2)
        plan = plan_of(X, is_scale_stated=True, data_norm=5.0)
        pair = (training_data(each, np.zeros(40, dtype=int)) for each in (X, other))
        found.append(ratios(plan, *pair, rng)[0])
    return max(found)


@pytest.mark.core
def test_a_record_moves_the_length_by_one_at_most():
    rng = np.random.default_rng(11)
    assert 0.99 < max(worst_length(rng) for _ in range(5)) <= 1.0


def test_lengths_of_people_and_of_chunks_are_exact():
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 9, size=4000)
    X, labels = rng.normal(size=(counts.sum(), 4)), np.zeros(counts.sum(), dtype=int)
    data = training_data(X, labels, people=counts)
    limited = np.minimum(np.square(X / 2.5).sum(axis=1), 1.0)
    each = np.add.reduceat(limited / np.repeat(counts, counts), np.cumsum(counts) - counts)
    assert sum_of_squares(data, 2.5) == pytest.approx(each.sum(), abs=4000 * 2.0**-15)
    # Sums are exact in any order, so that another person changes no other term.
    behind = training_data(X[::-1], labels, people=counts[::-1])
    assert sum_of_squares(behind, 2.5) == sum_of_squares(data, 2.5)
    other = X.copy()
    other[: counts[0]] = 1e9
    rest = sum_of_squares(training_data(other, labels, people=counts), 2.5)
    own = training_data(X[: counts[0]], labels[: counts[0]], people=counts[:1])
    largest = sum_of_squares(replace(own, X=other[: counts[0]]), 2.5)
    assert 0.99 < largest <= 1.0
    assert 0.0 < rest - sum_of_squares(data, 2.5) <= 1.0
    whole = sum_of_squares(training_data(X, labels), 2.5)
    chunks = LocalChunks.of([X[:100], X[100:]])
    assert sum_of_squares(training_data(chunks, labels), 2.5) == whole
    assert sum_of_squares(training_data(sparse.csr_array(X), labels), 2.5) == whole
    # Every entry is stored as two halves.
    places = np.tile(np.repeat(np.arange(4), 2), len(X)), np.arange(len(X) + 1) * 8
    halves = sparse.csr_array((np.repeat(X / 2.0, 2), *places), shape=X.shape)
    assert sum_of_squares(training_data(halves, labels), 2.5) == whole


def test_a_length_is_one_deviation_of_its_noise_at_least():
    noise = GaussianNoise(1.0, 0.01)
    expected = moment.LONGER * math.sqrt((50.0 + noise.sigma) / 1e4)
    assert linear.length_of(50.0, 10_000, noise) == pytest.approx(expected)


def test_a_loosely_stated_norm_costs_little():
    X, y = make_halfspace(4000, 5, margin=0.3, random_state=1)
    loose = [plan_of(X, is_scale_stated=True, epsilon=0.5, data_norm=norm) for norm in (1.0, 50.0)]
    found = []
    for plan in loose:
        released = plan.run(door_of(training_data(X, (y > 0).astype(int)), *plan.events))
        scores = X @ released.coefficients[0] + released.intercepts
        found.append(((scores > 0) == (y > 0)).mean())
    assert min(found) > 0.95


def hard_pair(rng, n=60, d=3):
    """Natural units: scales that differ by ten orders, missing and huge entries."""
    X = rng.standard_normal((n, d)) * [1e-3, 1.0, 1e7] + [5.0, 0.0, -1e7]
    X[rng.random((n, d)) < 0.1] = np.nan
    y = (rng.random(n) < 0.15).astype(int)
    other, z = X.copy(), y.copy()
    other[7], z[7] = rng.choice([np.nan, 1e300, -1e300, 0.0, 5.0], d), 1 - y[7]
    return X, y, other, z


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_release_in_column_scales_against_brute_force(kind):
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(8):
        X, y, other, z = hard_pair(rng)
        plan = plan_of(X, epsilon=2000.0, copies_are_single=kind is np.float32)
        assert plan.shape.scales is not None
        assert plan.shape.is_single == (kind is np.float32)
        with np.errstate(over="ignore"):
            pair = [training_data(a.astype(kind), k) for a, k in ((X, y), (other, z))]
        found = ratios(plan, *pair, rng)
        worst = max(worst, float(found.max()))
    assert 0.5 < worst <= 1


def test_people_and_weights_against_brute_force():
    rng = np.random.default_rng(2)
    for trial in range(10):
        counts = rng.integers(1, 5, size=12)
        other_counts = counts.copy()
        other_counts[3] = 1 + trial % 6
        rows = [rng.standard_normal((count, 3)) for count in counts]
        changed = [*rows]
        changed[3] = 5.0 * rng.standard_normal((other_counts[3], 3))
        labels = [rng.integers(2, size=len(each)) for each in rows]
        relabelled = [*labels]
        relabelled[3] = 1 - rng.integers(2, size=len(changed[3]))
        X, Z = np.concatenate(rows), np.concatenate(changed)
        plan = plan_of(X, people=counts, is_scale_stated=True)
        pair = (
            training_data(X, np.concatenate(labels), people=counts),
            training_data(Z, np.concatenate(relabelled), people=other_counts),
        )
        assert ratios(plan, *pair, rng, noise=0.01).max() <= 1
        w, v = rng.random(len(X)), rng.random(len(X))
        v[1:] = w[1:]
        other = X.copy()
        other[0] = -X[0]
        plan = plan_of(X, weights=w, is_scale_stated=True)
        y = np.concatenate(labels)
        pair = training_data(X, y, weights=w), training_data(other, y, weights=v)
        assert ratios(plan, *pair, rng, noise=0.01).max() <= 1


@pytest.mark.parametrize("single", [False, True])
def test_final_rows_have_norm_at_most_one_for_every_released_moment(single):
    rng = np.random.default_rng(3)
    for scale in (1e-12, 0.1, 1.0, 1e12):
        X = (rng.standard_normal((200, 5)) * scale).astype(np.float32 if single else np.float64)
        plan = plan_of(X, is_scale_stated=True, is_single=single)
        shape = plan.shape
        private = first_rows(shape, plan.known, training_data(X, np.zeros(200, dtype=int)))
        size = 6 * 7 // 2
        for spread in (0.0, 1.0, 1e3, 1e9):
            # Any numbers can be released.
            released = packed(np.eye(6) * 40.0) + spread * rng.standard_normal(size)
            noise = GaussianNoise(math.sqrt(2.0), 0.3)
            centring, total = centring_of(released, 200.0, noise, constant=1.0)
            assert total == 200.0
            assert np.linalg.norm(centring.to_final, 2) <= moment.LARGEST_STRETCH
            final = final_rows(Known(centring=centring), private).X
            logical = np.array([final.fused_adjoint(np.zeros(7), one(i)) for i in range(200)])
            image = logical[:, :6] @ centring.to_final.T
            norms = np.sqrt((image**2).sum(axis=1) + logical[:, 6] ** 2)
            assert norms.max() <= 1.0 + 1e-12
            assert logical[:, 6] == pytest.approx(centring.constants[0], rel=1e-6)


@pytest.mark.parametrize("single", [False, True])
def test_columns_are_clipped_as_in_a_prediction(single):
    X = np.random.default_rng(8).standard_normal((300, 3)) * [1e-3, 1.0, 1e6]
    plan = plan_of(X, epsilon=2000.0, copies_are_single=single)
    data = training_data(X, np.zeros(300, dtype=int))
    known = replace(plan.known, scales=ColumnScales(np.zeros(3), np.array([1e-3, 1.0, 1e6])))
    rows = linear.scaled_rows(plan.shape, known, data).X
    assert np.abs(rows).max() == linear.COLUMN_CLIP
    assert rows.dtype == (np.float32 if single else np.float64)


@pytest.mark.parametrize("form", ["float64", "float32", "sparse"])
def test_first_rows_have_norm_at_most_one_however_long_they_are(form):
    X = (
        np.random.default_rng(3).standard_normal((200, 5))
        * 10.0 ** np.array([*range(-3, 4), 30]).repeat(25)[:, None]
    )
    made = {"float64": np.asarray, "float32": np.float32, "sparse": sparse.csr_array}[form](X)
    plan = plan_of(made, is_scale_stated=True, is_single=form == "float32")
    rows = first_rows(plan.shape, plan.known, training_data(made, np.zeros(200, dtype=int))).X
    logical = np.array([rows.fused_adjoint(np.zeros(6), one(i)) for i in range(200)])
    norms = np.linalg.norm(logical, axis=1)
    assert 1.0 - 1e-5 < norms[100:].min() <= norms.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("noise", [GaussianNoise(1e-30, 1.0), NoNoise()])
def test_no_map_stretches_rows_by_more_than_the_public_number(noise):
    """Of rows in one of many directions, in whose place nothing but noise could be, too."""
    for size in (0.0, 1e-300, 1.0, 8.0, 200.0):
        released = packed(np.diag(np.append(size, np.zeros(100))))
        centring, _ = centring_of(released, 200.0, noise, constant=1.0)
        assert np.linalg.norm(centring.to_final, 2) <= moment.LARGEST_STRETCH
        assert np.linalg.norm(centring.whitening, 2) <= 1024.0 * (1.0 + 1e-9)


def test_a_far_mean_in_an_empty_direction_is_stretched_by_no_more_than_the_public_number():
    """Of a map with a constant the mean is a column of its own: here it has norm one."""
    size, total = 100, 200.0
    A = np.zeros((size + 1, size + 1))
    # All rows are at one place, but for a spread along another direction.
    A[0, 0], A[1, 1], A[-1, -1] = total, 0.05 * total, moment.CONSTANT**2 * total
    A[0, -1] = A[-1, 0] = moment.CONSTANT * total
    released = packed(A) / moment.LENGTHENED**2
    centring, _ = centring_of(released, total, GaussianNoise(1e-30, 1.0), constant=1.0)
    assert np.linalg.norm(centring.mean) == pytest.approx(1.0)
    stretch = np.linalg.norm(centring.to_final, 2)
    assert 0.7 * moment.LARGEST_STRETCH < stretch <= moment.LARGEST_STRETCH


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_slopes_of_a_record_are_no_longer_than_the_clip_at_any_score(n_classes, kind):
    rng = np.random.default_rng(6)
    classes, weights = rng.integers(n_classes, size=800), np.ones(800, dtype=kind)
    scores = rng.standard_normal((800, n_classes)) * 10.0 ** rng.uniform(-3, 3, (800, 1))
    make = linear.clipped_slopes if n_classes == 2 else linear.clipped_slopes_of_many
    given = (scores[:, 1] if n_classes == 2 else scores).astype(kind)
    found = make(classes, weights)(given, 0, 800).reshape(800, -1)
    norms, clip = np.linalg.norm(found.astype(float), axis=1), steps.clip_of(n_classes)
    assert clip * (1.0 - 1e-6) < norms.max() <= clip * (1.0 + 1e-6)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_every_query_is_in_the_ball_that_roundings_are_bounded_in(n_classes):
    """Whatever was released: a longer query would have margins with larger rounding errors."""
    plan, asked = plan_of(np.eye(5), n_classes, is_scale_stated=True), []
    step, walk, noiseless = (
        plan.releases[-1],
        plan.shape.walk(plan.known, 1.0),
        np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 5.0]),
    )
    sizes = 5, 6, n_classes, plan.shape.block_rows, moment.LARGEST_STRETCH
    paid = steps.step_sensitivity(*sizes, is_single=False)
    assert step.noise(plan.known).sensitivity == pytest.approx(paid, rel=1e-15)
    rows = SimpleNamespace(fused_adjoint=lambda w, slopes: (asked.append(w), 0.0 * w)[1])
    centring = centring_of(packed(noiseless), 5, NoNoise(), constant=1.0)[0]
    known = replace(plan.known, centring=replace(centring, whitening=1e3 * np.eye(5)))
    for size in (1.0, 1e6, 1e100):
        walk = walk.after(size * np.random.default_rng(0).standard_normal(walk.point.shape))
        radius = steps.ball(walk.point.shape) * (1.0 + 1e-12)
        assert np.linalg.norm(walk.ahead) <= radius
        step.ask(replace(known, walk=walk), linear.SlopedRows(rows, None))
        assert np.linalg.norm(asked[-1]) <= 64.0 * radius
    assert np.linalg.norm(walk.point) > steps.ball(walk.point.shape)


def one(i):
    """Slopes that are one for row i, and zero for all others."""

    def slopes(margins, lo, hi):
        margins[:] = 0.0
        if lo <= i < hi:
            margins[i - lo] = 1.0
        return margins

    return slopes


def test_a_packed_moment_has_the_frobenius_norm():
    A = np.random.default_rng(4).standard_normal((5, 5))
    A = A + A.T
    assert np.linalg.norm(packed(A)) == pytest.approx(np.linalg.norm(A))
    assert unpacked(packed(A), 5) == pytest.approx(A)


def fitted(X, y, n_classes=2, *, epsilon=math.inf, **how):
    plan = plan_of(X, n_classes, epsilon=epsilon, **how)
    return plan.run(door_of(training_data(X, y, n_classes), *plan.events))


@pytest.mark.core
def test_rows_are_centred_so_that_the_larger_class_pulls_no_column():
    """A rare flag without an effect and a column with one, 15 % of positives, no noise."""
    rng = np.random.default_rng(5)
    n = 8000
    flag = (rng.random(n) < 0.03) * 1.0
    X = np.column_stack([rng.standard_normal(n), flag, np.exp(1.5 * rng.standard_normal(n))])
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(2.0 - 0.7 * X[:, 0] - 1.2 * flag))).astype(int)
    w = fitted(X, y, copies_are_single=True).coefficients[0]
    assert w[0] > 0
    assert w[1] > 0
    # Nothing but the intercept follows the sizes of the classes.
    few = fitted(X, np.where(rng.random(n) < 0.9, 0, y), copies_are_single=True).coefficients[0]
    assert few[0] > 0


def test_sparse_and_dense_rows_agree():
    X, y = make_halfspace(2000, 6, margin=0.1, random_state=0)
    X[np.abs(X) < 0.2] = 0.0
    k = (y > 0).astype(int)
    a = fitted(sparse.csr_array(X), k, is_scale_stated=True)
    plan = plan_of(sparse.csr_array(X), is_scale_stated=True, epsilon=math.inf)
    assert plan.shape.scales is None
    b = fitted(sparse.csr_array(X), k, is_scale_stated=True)
    assert a.coefficients == pytest.approx(b.coefficients)


def test_the_budget_is_used_exactly():
    X, _ = make_halfspace(3000, 6, margin=0.1, random_state=0)
    plan = plan_of(X, epsilon=1.0)
    assert isinstance(plan.events[-1], Repeated)
    assert_costs(plan.events, Budget.of(1.0, 1e-6).mu)


class Guarded:
    """Private rows that may be read only while a question is asked."""

    is_open = False

    def read(self):
        if not Guarded.is_open:
            raise AssertionError("private rows were read outside a question")
        return np.array([1.0])


def guarded_release(use):
    def ask(known, rows):
        Guarded.is_open = True
        try:
            return rows.read()
        finally:
            Guarded.is_open = False

    return Release("all", NoNoise().event, lambda known: NoNoise(), ask, use)


def test_only_questions_read_private_rows():
    seen = []
    release = guarded_release(lambda known, answer: seen.append(answer) or known)
    assert run([release] * 2, door_of(Guarded(), NoNoise().event), "known")[0] == "known"
    assert len(seen) == 2
    assert all(each == 1.0 for each in seen)


def test_equal_neighbouring_events_become_one():
    release = Release("one", Gaussian(0.1), lambda known: None, None, None)
    other = Release("two", Gaussian(0.2), lambda known: None, None, None)
    events = Gaussian(0.2), Repeated(Gaussian(0.1), 2)
    assert described([other, release, release]) == (events, ("two", "2 ones"))
    exact = replace(release, event=NoNoise().event)
    whole = (NoNoise().event,), ("everything, without noise",)
    assert described([other, exact, exact]) == whole


def test_roundings_are_those_of_the_blocks_in_which_rows_are_summed():
    rows = Rows(np.zeros((20_000, 20)), constant=1.0)
    shape = linear.Shape(PublicFacts(20_000, 20, 2, (1.0, 1.0)))
    budget = Budget.gaussian(1.0)
    release = linear.moment_release(shape, budget)
    planned = moment.moment_noise(20_000, rows.block_rows, budget, is_single=False)
    assert 1 < rows.block_rows < 20_000
    assert release.noise(Known()) == planned
    sizes = 20_000, 21, 2, rows.block_rows, moment.LARGEST_STRETCH
    planned = steps.step_sensitivity(*sizes, is_single=False)
    noise = linear.step_release(shape, budget).noise(Known())
    assert noise.sensitivity == planned
    # Standard errors count the noise of the steps.
    walk = shape.walk(Known(total=20_000), budget.mu)
    assert walk.deviation == pytest.approx(noise.sigma, rel=1e-3)
    assert replace(shape, n_averaged=7).walk(Known(total=20_000), budget.mu).n_averaged == 7


@pytest.mark.parametrize(("stretch", "factor"), [(0.5, 0.5), (2.0, 2.0), (1e3, 64.0)])
def test_a_mapped_point_is_brought_back_to_a_ball_that_grows_with_the_map(stretch, factor):
    radius, point = factor * steps.ball((3,)), np.ones(3)
    edge = np.array([0.0, radius, 0.0])
    assert steps.into_mapped_ball(edge, point, stretch) is edge
    np.testing.assert_allclose(steps.into_mapped_ball(3.0 * edge, point, stretch), edge)


def test_wide_rows_have_neither_scales_nor_a_moment():
    """From 513 columns on; their constant column is as long as its factor says."""
    for width, is_wide in ((512, False), (513, True)):
        plan = plan_of(np.broadcast_to(0.0, (10**6, width)))
        assert (plan.shape.scales is None) == (not plan.shape.has_moment) == is_wide
        # The steps of wide rows take what a moment would cost.
        assert_costs(plan.events, Budget.of(1.0, 1e-6).mu)
    longer = replace(plan.shape, constant=3.0)
    assert longer.first_constant == 3.0 * plan.shape.first_constant > 0.0


def test_scales_that_nobody_states_are_estimated_from_fewer_records():
    for n_samples, by_kind in ((60, (False, False)), (100, (True, False)), (140, (True, True))):
        X = np.broadcast_to(0.0, (n_samples, 4))
        plans = (plan_of(X, is_scale_stated=is_stated) for is_stated in (False, True))
        assert tuple(plan.shape.scales is not None for plan in plans) == by_kind


def test_steps_without_noise_are_as_long_as_the_curvature_allows():
    """A quarter for two classes, and a half for the scores of more."""
    for n_classes, curvature in ((2, 0.25), (3, 0.5)):
        walk = steps.first_walk(4, n_classes, 100.0, math.inf, 2.0)
        assert walk.size == pytest.approx(2.0**2 / (curvature * 100.0))
