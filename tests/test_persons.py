"""A person with all rows is the unit: neighbours differ in one person and in the number of rows.

Proofs: ``docs/proofs/persons.md``.
"""

import inspect
import io
import math
import pickle
import warnings
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import dp_halfspace
from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
    preprocessing,
)
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data import owners
from dp_halfspace.data import people as people_module
from dp_halfspace.data.owners import owners_of_rows
from dp_halfspace.data.people import People
from dp_halfspace.engine import scales as scales_module
from dp_halfspace.engine.scales import (
    CLIP,
    Columns,
    ColumnScales,
    clipped_moments,
    linear_counts,
    octave_counts,
    plan_column_scales,
)
from dp_halfspace.estimators import table as table_module
from dp_halfspace.estimators._ranking import threshold_grid, threshold_losses
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.metrics import METRICS, private_score
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.rows import blocks
from dp_halfspace.rows.rows import Rows, normalised_rows
from tests.adversarial import unit
from tests.metrics.problem import Known
from tests.permits import door_of
from tests.releases import record_releases
from tests.support import largest_ratio

pytestmark = [
    pytest.mark.filterwarnings("ignore:random_state"),
    pytest.mark.usefixtures("short_lists"),
]


def table(rng, n_people, d, most=50, scale=1.0, n_classes=2):
    """Lists of rows and labels of people, of one to `most` rows."""
    sizes = rng.integers(1, most + 1, n_people)
    persons = []
    for size in sizes:
        X = np.array([unit(rng, d) for _ in range(size)]) * scale
        persons.append(
            (X * rng.choice([0.0, 0.2, 1.0, 30.0], (size, 1)), rng.integers(n_classes, size=size))
        )
    return persons


def shuffled(persons, rng):
    """One table of rows in any order but of the first rows, labels and who they belong to."""
    owner = np.repeat(np.arange(len(persons)), [len(y) for _, y in persons])
    X, y = (np.concatenate(parts) for parts in zip(*persons, strict=True))
    first = np.unique(owner, return_index=True)[1]
    order = np.concatenate([first, rng.permutation(np.delete(np.arange(len(y)), first))])
    return X[order], y[order], owner[order]


def neighbours(trials, seed=0, d=2, n_classes=2):
    """Tables that differ in a person: opposite rows, other labels, few rows in place of many."""
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        persons = table(rng, int(rng.integers(1, 7)), d, n_classes=n_classes)
        x, size, other_size = unit(rng, d), *rng.choice([1, 2, 3, 50], 2)
        number = int(rng.integers(len(persons)))
        one = np.tile(x, (size, 1)), np.ones(size, dtype=int)
        sign = -1.0 if trial % 4 else 1.0
        label = trial % 2
        other = np.tile(sign * x, (other_size, 1)), np.full(other_size, label)
        if trial % 5 == 4:
            other = table(rng, 1, d, n_classes=n_classes)[0]
        if trial % 3 == 0:
            persons = [(np.tile(x, (len(y), 1)), np.ones_like(y)) for _, y in persons]
        pair = []
        for person in (one, other):
            changed = [*persons[:number], person, *persons[number + 1 :]]
            pair.append(shuffled(changed, rng))
        yield pair


def scored(metric, X, y, groups):
    """A score of held-out records; of several metrics the last."""
    with np.errstate(all="raise"):
        found = private_score(
            Known(), X, y, groups=groups, metric=metric, epsilon=5.0, delta=1e-6
        )  # fmt: skip
    return found if isinstance(metric, str) else found[-1]


CASES = {
    "units": AdaptiveMarginClassifier(epsilon=50.0),
    "stated": AdaptiveMarginClassifier(epsilon=50.0, data_norm=1.0),
    "margin": AdaptiveMarginClassifier(margin=0.3, epsilon=50.0, data_norm=1.0),
    "balanced": AdaptiveMarginClassifier(epsilon=50.0, data_norm=1.0, class_weight="balanced"),
    "balanced margin": AdaptiveMarginClassifier(
        margin=0.3, epsilon=50.0, data_norm=1.0, class_weight="balanced"
    ),
    "margin in scales": AdaptiveMarginClassifier(margin=0.3, epsilon=50.0),
    "additive": PrivateKernelClassifier(epsilon=50.0, n_components=30, cache_size=0.0),
    "fourier": PrivateKernelClassifier(epsilon=50.0, kernel="rbf", data_norm=1.0, n_components=16),
    "ranking": PrivateAUCClassifier(epsilon=50.0, threshold_share=0.3),
    "table": PrivateTableClassifier(epsilon=50.0),
    "scaler": PrivateScaler(epsilon=50.0),
    **{metric: partial(scored, metric) for metric in METRICS},
    "all metrics": partial(scored, list(METRICS)),
}


def released(model):
    """All fitted numbers, to the last bit."""
    if isinstance(model, PrivateTableClassifier):
        curve = pickle.dumps(model.certainty_)
        return [*released(model.model_), model.column_scales_.scale.tobytes(), curve]
    names = ("coef_", "intercept_", "margin_", "center_", "scale_", "data_norm_")
    return [np.asarray(getattr(model, n)).tobytes() for n in names if hasattr(model, n)]


def worst(estimator, trials=25, seed=1, n_classes=2):
    """Largest change of a query over its sensitivity, in a real history and an adversary's."""
    largest = 0.0
    if hasattr(estimator, "classes"):
        estimator = clone(estimator).set_params(classes=list(range(n_classes)))
    for number, pair in enumerate(neighbours(trials, seed, n_classes=n_classes)):
        if type(estimator) is PrivateAUCClassifier or not getattr(estimator, "data_norm", 0):
            # Enough people for units: further ones, of one row each.
            pair = [
                (np.vstack([X, np.eye(400, 2)]), np.append(y, np.zeros(400, int)),
                 np.append(owner, 1000 + np.arange(400)))
                for X, y, owner in pair
            ]  # fmt: skip
        (X, y, groups), (other_X, other_y, other_groups) = pair

        def fit(data, y, seed=number):
            if not hasattr(estimator, "fit"):
                return estimator(data[0], y, groups=data[1])
            model = clone(estimator).set_params(random_state=seed)
            return model.fit(data[0], y, groups=data[1])

        data = (X, groups), y, (other_X, other_groups), other_y
        largest = max(largest, largest_ratio(fit, *data, random_state=number))
    return largest


def slow(*names):
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


# Each is the only one to see a mistake of its own.
OFTEN = ("units", "ranking", "table", "scaler", "average_precision", "f1")


@pytest.mark.parametrize("name", [*OFTEN, *slow(*(name for name in CASES if name not in OFTEN))])
def test_every_query_moves_by_its_sensitivity_at_most_whatever_rows_people_have(name):
    assert worst(CASES[name], 4) <= 1.0


@pytest.mark.parametrize(
    "name", ["units", "fourier", *slow("stated", "margin", "additive", "table")]
)
def test_so_does_every_query_of_three_classes(name):
    assert worst(CASES[name], 2, n_classes=3) <= 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "near", "seed"), [("stated", 0.8, 2), ("fourier", 0.9, 2), ("scaler", 0.99, 2)]
)
def test_some_people_come_near_the_bound(name, near, seed):
    assert near < worst(CASES[name], 8, seed) <= 1.0


def test_scales_before_a_published_algorithm_count_people():
    """Planted in the list of mutants: the rows are counted one by one."""
    assert 0.5 < worst(CASES["margin in scales"], 4) <= 1.0


# What a plan decides by the number of people: whether scales of columns pay, and joint features.
DECIDING = {
    "scales": ({}, 300, 20),
    "scales of a table": ({"schema": {str(j): [-3, 3] for j in range(20)}}, 300, 20),
    "joint features of a table": ({"schema": {"0": [-3, 3], "1": [-3, 3]}}, 1000, 2),
}


@pytest.mark.parametrize("name", DECIDING)
def test_no_rows_of_people_decide_what_a_plan_does(name):
    """Forty rows of each person would decide otherwise."""
    how, n, d = DECIDING[name]
    kind = PrivateTableClassifier if how else AdaptiveMarginClassifier
    model = kind(classes=[0, 1], random_state=0, **how, **({} if how else {"data_norm": 1.0}))
    X, y, ids = np.random.default_rng(0).normal(size=(n, d)), np.arange(n) % 2, np.arange(n)
    few, many = (
        model.plan(*(np.repeat(part, k, axis=0) for part in (X, y)), groups=np.repeat(ids, k))
        for k in (1, 40)
    )
    assert few == many
    as_records = model.plan(*(np.repeat(part, 40, axis=0) for part in (X, y)))
    decided, other = (
        (len(record.events), dict(record.public).get("n_components"))
        for record in (few, as_records)
    )
    assert decided != other


def owned(person_rows):
    """Rows of people, and who owns them."""
    return np.concatenate(person_rows), People(np.array([len(X) for X in person_rows]))


def changes(statistic, trials=150, d=3):
    """Norms of the change of a statistic when a person is replaced, by orders 1 and 2."""
    rng = np.random.default_rng(0)
    pool = np.array([0.0, 1.0, -1.0, math.nan, 1e300, -1e-300, 3.9, *rng.normal(size=20)])
    for trial in range(trials):
        people = [rng.choice(pool, (rng.integers(1, 51), d)) for _ in range(rng.integers(1, 6))]
        values = []
        for size in (int(rng.integers(1, 51)), int(rng.integers(1, 51))):
            person = rng.choice(pool, (size, d))
            if trial % 2:
                person = np.full((size, d), 100.0 if not values else -100.0)
            values.append(statistic(*owned([*people, person])))
        change = (values[0] - values[1]).ravel()
        yield np.abs(change).sum(), np.linalg.norm(change)


ENDS = -np.ones(3), np.ones(3)
UNITS = ColumnScales(np.full(3, 0.3), np.full(3, 0.7))
STATISTICS = {
    "octaves": lambda X, people: octave_counts(X, people.weights),
    "cells": lambda X, people: linear_counts(X, range(3), ENDS, 8, people.weights),
    "moments": lambda X, people: clipped_moments(X, UNITS, people),
}
BOUNDS = {
    "octaves": (6, math.sqrt(6)),
    "cells": (6, math.sqrt(6)),
    "moments": (9, 2 * math.sqrt(3)),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_a_person_moves_a_statistic_of_columns_like_a_record(name):
    found = np.array(list(changes(STATISTICS[name]))).max(axis=0)
    absolute, euclidean = BOUNDS[name]
    assert found[0] <= absolute
    assert 1 - 1e-6 <= found[1] / euclidean <= 1 + 2.0**-40


def test_weights_of_a_person_add_up_to_one_at_most_and_sums_are_exact(monkeypatch):
    """As if a float had 40 bits, so that a thousand people are many."""
    monkeypatch.setattr(people_module, "EXACT_BITS", 40)
    counts = np.array([1, 2, 3, 7, 50, 1001, 2**16])
    for n_people in (7, 2**11):
        many = np.ones(n_people, dtype=np.int64)
        many[:7] = counts
        weights = People(many).weights
        starts = np.cumsum(many) - many
        one = 1 << min(30, 40 - n_people.bit_length())
        for start, size in zip(starts[:7], counts, strict=True):
            total = Fraction(int(weights[start] * one) * int(size), one)
            assert 1 - Fraction(int(size), one) < total <= 1
        assert (weights * one == np.rint(weights * one)).all()
        assert weights[starts[0]] == 1.0


def test_errors_of_a_threshold_move_by_one_at_most_and_do_not_grow_with_rows():
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(12):
        sizes = rng.integers(1, 51, 4)
        pair = []
        for size, label in ((int(rng.integers(1, 51)), True), (int(rng.integers(1, 51)), False)):
            people = People(np.append(sizes, size))
            seed = np.random.default_rng(3)
            scores = np.append(seed.uniform(-1, 1, sizes.sum()), np.full(size, -1.0))
            positive = np.append(seed.random(sizes.sum()) < 0.5, np.full(size, label))
            grid, weights = threshold_grid(1.0, 0.0), np.array([1.0, 0.7])
            pair.append(threshold_losses(
                scores, positive, weights, grid, largest=1.0, people=people
            ))  # fmt: skip
        largest = max(largest, np.abs(pair[0] - pair[1]).max())
    assert 0.69 < largest <= 1.0


TILE = people_module.AT_ONCE


def test_the_proof_has_the_tiles_of_the_code():
    page = (Path(__file__).parents[1] / "docs" / "proofs" / "persons.md").read_text()
    assert f"w=1,2,4,\\dots,{TILE // 2}$, in blocks of ${TILE}/w$ consecutive people" in page
    assert f"rows $j\\ge{TILE}$ of a person in blocks of {TILE}." in page


FORMS = {"C": np.asarray, "F": np.asfortranarray, "single": np.float32, "CSR": sparse.csr_array}


def own_bits(X, people):
    """What is computed for the rows of the last person but one, and after it."""
    rows = normalised_rows(X, 1.0, 0.2, people=people)
    size = rows.shape[1]
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((size, size)))[0]
    stretched = np.geomspace(0.25, 200.0, size)[:, None] * turn
    found = [rows.clip_images(m, 0.8, (0.6,))._scale for m in (stretched, stretched[-2:])]
    found += [rows._scale, rows.margins_over_constant(turn[:-1, 0])]
    return found


def rows_that_moved(form):
    """How many rows of other people change a bit when the first person has other rows."""
    rng = np.random.default_rng(0)
    others = [rng.standard_normal((size, 60)) for size in rng.integers(1, 5, 70)]
    kept = sum(map(len, others))
    moved = 0
    with single_blas_thread():
        for sizes in ((1, 2), (5, 50), (3, 1)):
            found = []
            for size in sizes:
                X, people = owned([rng.standard_normal((size, 60)) * 1e3, *others])
                found.append(own_bits(FORMS[form](X), people))
            for a, b in zip(*found, strict=True):
                moved += int((a[-kept:] != b[-kept:]).any(axis=tuple(range(1, a.ndim))).sum())
    return moved


def test_sparse_rows_of_people_have_the_values_of_dense_ones():
    rng = np.random.default_rng(0)
    X, people = owned([rng.standard_normal((size, 7)) for size in rng.integers(1, 9, 40)])
    X[rng.random(X.shape) < 0.5] = 0.0
    with single_blas_thread():
        dense, csr = (own_bits(FORMS[form](X), people) for form in ("C", "CSR"))
    for a, b in zip(dense, csr, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("entries", "tile"), [(3 * 2**16, TILE), (64, TILE), (3 * 2**16, 2)])
def test_no_bit_of_a_row_depends_on_how_many_rows_others_have(monkeypatch, form, entries, tile):
    monkeypatch.setattr(blocks, "_SUMMED_ENTRIES", entries)
    monkeypatch.setattr(people_module, "AT_ONCE", tile)
    assert rows_that_moved(form) == 0


def lists_of(counts, block_rows):
    """The lists of rows that a function of rows is given."""
    lists = []
    found = People(np.array(counts)).row_by_row(lambda at: (lists.append(at), at)[1], block_rows)
    np.testing.assert_array_equal(found, np.arange(sum(counts)))
    return lists


def standing(counts, block_rows):
    """Where each row of each person is computed: its place, and the size of the block."""
    found, starts = {}, np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(counts)), counts)
    for index in lists_of(counts, block_rows):
        # A row that fills the places of others comes first at its own.
        for row, at in zip(*np.unique(index, return_index=True), strict=True):
            found.setdefault((owner[row], row - starts[owner[row]]), (at, len(index)))
    return found


@pytest.mark.parametrize("block_rows", [1, 7, 100])
def test_the_place_of_a_row_does_not_depend_on_how_many_rows_others_have(monkeypatch, block_rows):
    monkeypatch.setattr(people_module, "AT_ONCE", 8)
    rng = np.random.default_rng(0)
    for _ in range(12):
        counts = rng.choice([1, 1, 1, 2, 3, 9, 40], rng.integers(1, 40))
        others = np.where(np.arange(len(counts)) % 3, counts, rng.choice([1, 2, 5, 100]))
        places = standing(counts, block_rows), standing(others, block_rows)
        for key in places[0].keys() & places[1].keys():
            assert places[0][key] == places[1][key]


def test_the_rows_of_a_person_stay_in_their_order_whoever_comes_between_them():
    """Sums over rows in another order would be rounded differently."""
    groups = np.random.default_rng(0).integers(0, 40, 1000)
    rows, people, codes = owners.sort_by_person(groups, np.arange(1000)[:, None], np.arange(1000))
    np.testing.assert_array_equal(rows[:, 0], codes)
    assert all((np.diff(part) > 0).all() for part in np.split(codes, people.starts[1:]))


def test_scales_count_people_in_every_release():
    """A column far from zero is counted again in equal cells."""
    people = People(np.full(200, 3))
    X = 1000.0 + np.random.default_rng(0).normal(size=(600, 1))
    plan = plan_column_scales(200, 1, Budget.gaussian(10.0))
    with record_releases() as releases:
        plan.run(door_of(Columns(X, people), *plan.events))
    assert [abs(each.value[0].sum()) <= 200.0 for each in releases] == [True] * 3


def test_moments_of_people_are_whole_steps_of_the_grid(monkeypatch):
    """Sums of other numbers would be rounded, and depend on their order."""
    people = People(np.array([1, 2, 3, 7, 30, 1000]))
    X = np.random.default_rng(0).normal(size=(people.counts.sum(), 3))
    sums, squares = clipped_moments(X, UNITS, people)
    for steps in (sums * 2.0**10, squares * 2.0**20 / 1.5):
        np.testing.assert_array_equal(steps, np.rint(steps))
    with monkeypatch.context() as patch:  # two people at a time
        patch.setattr(scales_module, "CACHED_NUMBERS", 6)
        np.testing.assert_array_equal(clipped_moments(X, UNITS, people), (sums, squares))
    # A mean square is at least the square of the mean: 5/2 counts as 3, and 3/2 as 1.
    rows = UNITS.center + UNITS.scale * np.array([[1.0], [2.0]]) * CLIP / 2.0**10
    sums, squares = clipped_moments(rows, UNITS, People(np.array([2])))
    np.testing.assert_array_equal(sums * 2.0**10, np.ones(3))
    np.testing.assert_array_equal(squares * 2.0**20 / 1.5, np.full(3, 3.0))


def test_a_function_of_rows_is_given_lists_of_public_length(monkeypatch):
    monkeypatch.setattr(people_module, "AT_ONCE", 8)
    counts = np.random.default_rng(0).choice([1, 1, 2, 3, 9, 40], 48)
    lengths, rows = [], np.arange(counts.sum())

    def double(index):
        lengths.append(len(index))
        return 2.0 * rows[index]

    np.testing.assert_array_equal(People(counts).row_by_row(double), 2.0 * rows)
    assert (lengths[0], set(lengths[1:])) == (48, {8})


def effort(counts):
    """Rows that are computed, with empty places, and blocks of them, for each row of a table."""
    sizes = list(map(len, lists_of(counts, 4096)))
    return sum(sizes) / sum(counts), len(sizes) / sum(counts)


ONE = np.ones(20_000, dtype=np.intp)
CROWDS = {
    "one row each": ONE,
    "two rows each": 2 * ONE,
    "thirty rows each": 30 * ONE[:1000],
    "one person with a third": np.append(10_000, ONE),
    "one person with nearly all": np.append(200_000, ONE[:10]),
    "ten persons with a third": np.append(ONE, 1000 * ONE[:10]),
    "one person": 10_000 * ONE[:1],
}


@pytest.mark.parametrize("name", CROWDS)
def test_the_work_is_in_proportion_to_the_rows(name):
    rows, calls = effort(CROWDS[name])
    assert rows <= 3.0
    assert calls <= 0.02


def sum_error(n_rows):
    """Error of a sum over rows of one person, in units of rounding and of the sum."""
    X = np.full((n_rows, 1), 0.7)  # a sum of equal numbers errs in one direction
    people = People(np.array([n_rows]))
    rows = Rows(X, row_bound=10.0, people=people)
    exact = n_rows * Fraction(0.7) * Fraction(people.weights[0])
    return float(abs(Fraction(rows.adjoint(people.weights)[0]) - exact) / exact) * 2.0**53


@pytest.mark.slow
def test_sums_of_many_rows_are_as_exact_as_those_of_few():
    """One person plans one block of one row: block_rows + n_blocks + 5 roundings."""
    assert sum_error(10_000) <= 7


def small_table(n=300, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.array([1.0, 1e3, 1e-3])
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore:X is sparse")
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, np.float32, sparse.csr_array])
@pytest.mark.parametrize("name", [name for name in CASES if hasattr(CASES[name], "classes")])
def test_people_of_one_row_each_are_records_bit_for_bit(name, form):
    X, y = small_table()
    if isinstance(CASES[name], PrivateTableClassifier) and form is sparse.csr_array:
        return  # a table is dense
    model = clone(CASES[name]).set_params(classes=[0, 1], random_state=3)
    plain = clone(model).fit(form(X), y)
    grouped = clone(model).fit(form(X), y, groups=np.random.default_rng(0).permutation(len(y)))
    if "precision" in dict(plain.privacy_.public):
        return  # rows of people are read in float64
    assert released(plain) == released(grouped)
    assert plain.privacy_.events == grouped.privacy_.events
    assert plain.privacy_.adjacency == "replace-one"
    assert grouped.privacy_.adjacency == "replace-one-person"
    assert "differ in one of them, with all rows" in grouped.privacy_.summary()
    assert clone(model).plan(form(X), y, groups=range(len(y))) == grouped.privacy_


@pytest.mark.parametrize(
    "model",
    [
        AdaptiveMarginClassifier(solver="objective_perturbation"),
        AdaptiveMarginClassifier(delta=0.0),
        AdaptiveMarginClassifier(selection="exponential"),
        AdaptiveMarginClassifier(solver="phased_prox"),
        AdaptiveMarginClassifier(projection="rademacher", n_components=2, data_norm=1.0),
        AdaptiveMarginClassifier(
            margin=0.1, projection="rademacher", n_components=2, data_norm=1.0
        ),
        PrivateKernelClassifier(delta=0.0),
        PrivateKernelClassifier(margin="select"),
        PrivateKernelClassifier(margin=0.3, data_norm=1.0),
        PrivateAUCClassifier(mechanism="objective"),
        PrivateAUCClassifier(delta=0.0),
        PrivateTableClassifier(delta=0.0),
        ObjectivePerturbationClassifier(),
        ObjectivePerturbationClassifier(rows="clipped"),
        OutputPerturbationClassifier(),
        OutputPerturbationClassifier(preconditioner=False),
        OutputPerturbationClassifier(tilt=0.1),
    ],
)
def test_what_does_not_protect_people_refuses_groups_before_it_pays(model):
    X, y = small_table()
    model.set_params(classes=[0, 1], ledger=PrivacyLedger(epsilon=10, delta=1e-3))
    use = model.plan if type(model) is ObjectivePerturbationClassifier else model.fit
    with pytest.raises(ValueError, match=r"groups is not supported .* which have delta > 0"):
        use(X, y, groups=np.arange(300) // 2)
    assert not model.ledger.entries()


PURE = {
    "scales": lambda ledger, **groups: PrivateScaler(delta=0.0, ledger=ledger).fit(
        small_table()[0], **groups
    ),
    "score": lambda ledger, **groups: private_score(
        Known(), *small_table(), delta=0.0, ledger=ledger, **groups
    ),
}


@pytest.mark.parametrize("name", PURE)
def test_noise_for_whole_numbers_is_not_added_to_shares_of_people(name):
    """Shares that are cut to whole numbers could all move when a person is replaced."""
    ledger = PrivacyLedger(epsilon=10, delta=1e-3)
    with pytest.raises(ValueError, match="groups needs delta > 0"):
        PURE[name](ledger, groups=np.arange(300) // 2)
    assert not ledger.entries()
    PURE[name](ledger)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (["secret"] * 299, "same number of rows"),
        (np.zeros((300, 1)), "one-dimensional"),
        ([["secret"]] * 300, "a list or tuple"),
        ([("secret", 1)] * 300, "a list or tuple"),
        ([frozenset(["secret"])] * 300, "a list or tuple"),
        ("secret" * 50, "one-dimensional"),
        (7, "one-dimensional"),
        (["secret", None] * 150, "missing"),
        ([1.0, math.nan] * 150, "missing"),
        (pd.Series(["secret", pd.NA] * 150, dtype="string"), "missing"),
        (np.array(["2020", "NaT"] * 150, dtype="datetime64[D]"), "missing"),
        (np.ma.array(np.arange(300), mask=[True] + [False] * 299), "mask"),
        (pd.MultiIndex.from_arrays([["secret", None] * 150, [1] * 300]), "missing"),
        (np.array([(1, math.nan), (1, 2.0)] * 150, dtype="i4,f8"), "missing"),
        ([pa.scalar("secret"), pa.scalar(None, pa.string())] * 150, "missing"),
        ([pa.scalar(1.0), pa.scalar(math.nan)] * 150, "missing"),
        (pa.chunked_array([["secret", None] * 150]), "missing"),
        (pa.array(["secret", None] * 150), "missing"),
        ([2**53 + 1.0, 1.5] * 150, r"float from 2\^53 on"),
        (pd.Series([2**60, 2**60 + 1, 1.5] * 100), r"float from 2\^53 on"),
    ],
)
def test_bad_groups_are_refused_without_a_value_or_a_count(groups, match):
    X, y = small_table()
    with pytest.raises(ValueError, match=match) as caught:
        AdaptiveMarginClassifier(classes=[0, 1]).fit(X, y, groups=groups)
    shown = f"{caught.value}{caught.value.__context__}"
    assert "groups" in shown
    assert not any(word in shown for word in ("secret", "299", "300"))


PEOPLE = {
    "stated": AdaptiveMarginClassifier(data_norm=1.0, classes=[0, 1]),
    "units": AdaptiveMarginClassifier(classes=[0, 1]),
    "open": AdaptiveMarginClassifier(data_norm=1.0),
    "ranking": PrivateAUCClassifier(classes=[0, 1]),
    "kernel": PrivateKernelClassifier(data_norm=1.0, classes=[0, 1]),
    "table": PrivateTableClassifier(classes=[0, 1]),
    "open table": PrivateTableClassifier(),
    "scaler": PrivateScaler(),
}


def takers():
    """Everything with a fit or a plan, parts of a search included."""
    names = [name for name in dp_halfspace.__all__ if hasattr(getattr(dp_halfspace, name), "fit")]
    made = [getattr(dp_halfspace, name) for name in names]
    kinds = [*made, *(kind for kind in vars(preprocessing).values() if hasattr(kind, "fit"))]
    return [(kind, way) for kind in kinds for way in ("fit", "plan") if hasattr(kind, way)]


@pytest.mark.parametrize(("kind", "way"), takers())
def test_only_features_and_labels_go_by_position(kind, way):
    parameters = list(inspect.signature(getattr(kind, way)).parameters.values())
    kinds = {p.name: p.kind for p in parameters if p.name not in ("self", "X", "y")}
    assert set(kinds.values()) <= {inspect.Parameter.KEYWORD_ONLY}


def test_ids_of_any_kind_are_people():
    X, y = small_table()
    model = AdaptiveMarginClassifier(classes=[0, 1])
    for ids in (
        [f"a-{i // 2}" for i in range(300)],
        [pa.scalar(i // 2) for i in range(300)],
        pa.chunked_array([[i // 2 for i in range(300)]]),
        pd.Index(np.arange(300) // 2),
        pd.array(np.arange(300) // 2, dtype="Int64"),
    ):
        assert dict(model.plan(X, y, groups=ids).public)["n_samples"] == 150


def refused_tables(n_rows):
    """What has no right shape: features, labels and 100 people of so many rows."""
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    y, groups = np.arange(n_rows) % 2, np.minimum(np.arange(n_rows), 99)
    return {
        "two columns of labels": (X, np.column_stack([y, y]), groups),
        "a row of labels": (X, y[None], groups),
        "a frame of labels": (X, pd.DataFrame({"a": y, "b": y}), groups),
        "no dimension": (X, 1, groups),
        "ragged labels": (X, [*y.tolist()[:-1], [1, 2]], groups),
        "labels in lists": (X, [[1]] * (n_rows - 1) + [[1, 2]], groups),
        "labels of real numbers": (X, X[:, 0], groups),
        "labels that all differ": (X, np.arange(n_rows), groups),
        "no columns": (X[:, :0], y, groups),
        "no columns in lists": ([[]] * n_rows, y, groups),
        "no columns in a frame": (pd.DataFrame(index=range(n_rows)), y, groups),
        "ragged rows": ([[1.0]] * (n_rows - 1) + [[1.0, 2]], y, groups),
        "one dimension": (X[:, 0], y, groups),
        "three dimensions": (X[None], y, groups),
        "fewer labels": (X, y[:-1], groups),
        "fewer ids": (X, y, groups[:-1]),
        "text": (np.where(np.arange(n_rows)[:, None] == 7, "secret", X.astype(object)), y, groups),
    }


def refusal(use):
    """The errors and warnings of a call, contexts included."""
    said, shown = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            use()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            shown.append(error)
    while shown:
        error = shown.pop()
        said.append(f"{type(error).__name__}: {error}")
        shown += [e for e in (error.__context__, error.__cause__) if e is not None]
    # What follows from the released model differs between two fits of one table, too.
    messages = [str(warning.message) for warning in caught]
    return said + [text for text in messages if "every row has the same score" not in text]


@pytest.fixture(scope="module")
def scored_model():
    """A model whose scores of refused tables are asked for."""
    return AdaptiveMarginClassifier(data_norm=1.0, classes=[0, 1]).fit(*small_table(200))


def refusals(case, n_rows, scored_model):
    """All that is said of a table by fits, plans and scores of people."""
    X, y, groups = refused_tables(n_rows)[case]
    for name, model in PEOPLE.items():
        ways = [clone(model).fit, *([clone(model).plan] if "table" in name else [])]
        for use in ways:
            yield name, refusal(lambda use=use: use(X, y, groups=groups))
    for metric in ("accuracy", "roc_auc", "log_loss"):
        asked = {"metric": metric, "groups": groups, "delta": 1e-6}
        yield metric, refusal(lambda asked=asked: private_score(scored_model, X, y, **asked))


@pytest.mark.parametrize("case", refused_tables(100))
def test_no_refusal_tells_how_many_rows_people_have(case, scored_model):
    found = [list(refusals(case, n_rows, scored_model)) for n_rows in (131, 167)]
    assert found[0] == found[1]
    assert any(said for _, said in found[0])
    assert not any(word in str(found) for word in ("131", "167", "130", "166", "secret"))


@pytest.mark.parametrize("name", ["open", "open table"])
def test_no_warning_and_no_limit_tells_how_many_rows_people_have(name, monkeypatch):
    """Of labels of which half differ; with 100 people in both tables."""
    found = []
    for n_rows in (100, 1000):
        asked = []
        monkeypatch.setattr(table_module, "refuse_beyond_memory", lambda n, *_: asked.append(n))  # noqa: B023
        y, groups = np.arange(n_rows) % 60, np.minimum(np.arange(n_rows), 99)
        model = clone(PEOPLE[name]).set_params(epsilon=100.0)
        said = refusal(lambda: model.plan(np.ones((n_rows, 2)), y, groups=groups))  # noqa: B023
        found.append((said, asked))
    assert found[0] == found[1]
    assert bool(found[0][1]) == (name == "open table")


@pytest.mark.parametrize("adjacency", ["replace-one-label", "replace-one", "replace-one-person"])
def test_ledger_takes_what_protects_as_much_as_it_does(adjacency):
    X, y = small_table()
    model = AdaptiveMarginClassifier(classes=[0, 1])
    ledger = PrivacyLedger(epsilon=5, delta=1e-3, adjacency=adjacency)
    ledger.charge(model.plan(X, y, groups=np.arange(300) // 2))
    if adjacency != "replace-one-person":
        ledger.charge(model.plan(X, y))
        return
    with pytest.raises(
        BudgetError, match=r"does not protect what this ledger .*replace-one-person.* give groups"
    ):
        ledger.charge(model.plan(X, y))
    assert len(ledger.entries()) == 1


def test_routing_carries_groups_through_pipelines_and_cross_validation():
    X, y = small_table()
    groups = np.arange(300) // 3
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = PrivateScaler().set_fit_request(groups=True)
        model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=2.0).set_fit_request(groups=True)
        pipeline = make_pipeline(scaler, model).fit(X, y, groups=groups)
        assert dict(pipeline[-1].privacy_.public)["n_samples"] == 100
        assert pipeline[0].privacy_.adjacency == "replace-one-person"
        scores = cross_val_score(
            pipeline, X, y, cv=GroupKFold(5), params={"groups": groups}, error_score="raise"
        )
    assert scores.shape == (5,)


@pytest.mark.parametrize("other", ["9", "A9"])
def test_one_name_changes_nobody_else_whatever_a_reader_makes_of_the_column(other):
    """A letter in one name turns the others from numbers into texts with zeros in front."""
    names = ["007", "7", "8", "8.0", other, "10"]
    column = pd.read_csv(io.StringIO("\n".join(["who", *names]) + "\n"))["who"]
    owners = owners_of_rows(column, 6)
    assert owners.tolist() == [0, 0, 1, 1, 2, 3]
    by_arrow = pa.csv.read_csv(io.BytesIO("\n".join(["who", *names]).encode()))["who"]
    for ids in (names, by_arrow):
        assert owners_of_rows(ids, 6).tolist() == owners.tolist()
    assert owners_of_rows(["NA", "na ", "7", 7, b"7"], 5).tolist() == [0, 1, 2, 2, 2]
    # One name in bytes turns all names of a column of Arrow into bytes.
    in_bytes = pa.array([*names[:4], other.encode(), "10"])
    assert in_bytes.type == pa.binary()
    assert owners_of_rows(in_bytes, 6).tolist() == owners.tolist()


@pytest.mark.parametrize("other", [5, "x", 2.5, date(2024, 5, 1)])
def test_who_is_one_person_depends_neither_on_others_nor_on_their_order(other):
    """Values that are equal and have different names, and the other way round."""
    day = date(2020, 1, 1)
    values = [True, 1, 1.0, Decimal(1), np.float64(1.0), day, datetime(2020, 1, 1), False, 0, other]
    expected = [[a == b for b in "bnnnnddfzo"] for a in "bnnnnddfzo"]
    for order in (range(10), range(9, -1, -1), np.random.default_rng(0).permutation(10)):
        owners = owners_of_rows([values[i] for i in order], 10)
        same = owners[:, None] == owners
        assert same.tolist() == np.array(expected)[np.ix_(list(order), list(order))].tolist()


def test_rows_that_are_clipped_again_belong_to_the_same_people():
    """Before and after the moment, whatever is summed counts a person once."""
    X = np.random.default_rng(0).normal(size=(9, 2)) / 9.0
    rows = Rows(X, people=People(np.array([6, 2, 1])))
    later = rows.clip_images(np.eye(2), 1.0, (0.5,))
    assert (later.shares == rows.shares).all()
    assert rows.shares.sum() < 4.0


@pytest.mark.slow
def test_a_block_of_all_people_for_every_row_is_seen(monkeypatch):
    """Planted: as many blocks of all people as the person with most rows has rows."""

    def rounds(people):
        for number in range(1, people.counts.max()):
            index = people.starts + np.minimum(number, people.counts - 1)
            yield index, people.counts > number

    monkeypatch.setattr(People, "_tiles", rounds)
    assert effort(CROWDS["one person with a third"])[0] > 1000


def test_what_is_computed_in_the_order_of_the_rows_is_seen(monkeypatch):
    """Planted: lengths and scores where the rows are, not where their people are."""
    monkeypatch.setattr(Rows, "_by_person", lambda rows, function: function(rows))
    assert rows_that_moved("F") > 0
