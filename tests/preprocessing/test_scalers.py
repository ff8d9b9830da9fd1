"""Scalers as scikit-learn transformers: budgets, ranges, missing values, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger import PrivacyLedger
from dp_halfspace.preprocessing import PrivateScaler, PublicScaler, ReleasedScaler
from dp_halfspace.preprocessing.scalers import CellScaler
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Pure
from tests.releases import record_releases


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(55, 12, n), rng.exponential(1e5, n), rng.integers(0, 2, n)])


@pytest.mark.sampled(16)
@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
@parametrize_with_checks([PrivateScaler(epsilon=3.0)])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_scalers_say_that_they_take_missing_entries():
    scalers = PrivateScaler(), PublicScaler([(0, 1)]), ReleasedScaler([0.0], [1.0]), CellScaler(0)
    assert all(get_tags(scaler).input_tags.allow_nan for scaler in scalers)


def test_units_are_released_and_booked():
    X, ledger = table(), PrivacyLedger(epsilon=1.1, delta=2e-6)
    scaler = PrivateScaler(epsilon=1.0, delta=1e-6, ledger=ledger)
    planned = scaler.plan(X)
    scaler.fit(X)
    assert scaler.privacy_.events == planned.events
    assert accounting.epsilon(planned.events, 1e-6) == pytest.approx(1.0, rel=1e-6)
    assert len(ledger.entries()) == 1
    ratio = scaler.scale_ / X.std(axis=0)
    assert (ratio > 0.3).all()
    assert (ratio < 3).all()
    Z = scaler.transform(X)
    assert np.abs(Z).max() <= 4.0
    before = dict(vars(scaler))
    with record_releases() as releases, pytest.raises(BudgetError):
        scaler.fit(X[:, :2])
    assert releases == []
    assert vars(scaler).keys() == before.keys()
    assert all(vars(scaler)[name] is value for name, value in before.items())


@pytest.mark.parametrize("epsilon", [0.3, 30.0])
def test_a_pure_scaler_spends_its_epsilon_and_no_delta(epsilon):
    X, ledger = table(6000), PrivacyLedger(epsilon=epsilon, delta=0)
    scaler = PrivateScaler(epsilon=epsilon, delta=0, ledger=ledger).fit(X)
    assert all(isinstance(event, Pure) for event in scaler.privacy_.events)
    assert accounting.delta(scaler.privacy_.events, epsilon) == 0
    assert accounting.epsilon(scaler.privacy_.events, 0) == pytest.approx(epsilon)
    ratio = scaler.scale_ / X.std(axis=0)
    assert (ratio > 0.25).all()
    assert (ratio < 4).all()


def test_rows_are_transformed_one_by_one():
    X = table(200)
    scaler = PrivateScaler(epsilon=math.inf).fit(X)
    whole = scaler.transform(X)
    assert np.array_equal(np.vstack([scaler.transform(row[None]) for row in X]), whole)
    released = ReleasedScaler(scaler.center_, scaler.scale_).fit(X)
    assert np.array_equal(released.transform(X), whole)


def test_public_ranges_by_name_and_by_number():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [0.0, 60.0, 500.0, np.nan], "smoker": [0, 1, 1, 0]})
    expected = [[-1, -1], [0, 1], [1, 1], [0, -1]]
    by_name = PublicScaler({"smoker": (0, 1), "age": (0, 120)}).fit_transform(frame)
    by_number = PublicScaler([(0, 120), (0, 1)]).fit_transform(frame.to_numpy())
    assert by_name.tolist() == by_number.tolist() == expected
    assert PublicScaler([(1e308, 1.5e308)]).fit_transform([[1.25e308]]).tolist() == [[0.0]]
    assert PublicScaler([(0, 120), (0, 1)]).fit(frame).get_feature_names_out().tolist() == [
        "age",
        "smoker",
    ]


@pytest.mark.parametrize(
    ("scaler", "word"),
    [
        (PublicScaler([(0, 1)]), "low < high for each of the 3 columns"),
        (PublicScaler([(0, 1), (2, 2), (0, 1)]), "low < high"),
        (PublicScaler([(0, 1), (0, math.inf), (0, 1)]), "low < high"),
        (PublicScaler({0: (0, 1), 1: (0, 1)}), "column '2'"),
        (PublicScaler({0: (0, 1), 1: (0,), 2: "0-1"}), "for each of the 3 columns"),
        (ReleasedScaler(["a", 0, 0], [1, 1, 1]), "center must be a list of finite numbers"),
        (ReleasedScaler([0, 0, 0], [1, 1, 1], clip=None), "clip must be positive"),
        (ReleasedScaler([0, 0], [1, 1]), "3 columns"),
        (ReleasedScaler([0, 0, 0], [1, 0, 1]), "positive"),
        (ReleasedScaler([0, 0, math.inf], [1, 1, 1]), "center"),
        (PrivateScaler(epsilon=0.0), "epsilon"),
        (PrivateScaler(clip=0.0), "clip"),
    ],
)
def test_bad_parameters_are_named(scaler, word):
    before = dict(vars(scaler))
    with pytest.raises(ValueError, match=word):
        scaler.fit(table(50))
    assert vars(scaler) == before


def test_parameters_in_columns_of_tables_are_stored_as_lists():
    io = pytest.importorskip("skops.io")
    numbers = pd.Series([1.0, 2.0])
    for scaler in (ReleasedScaler(numbers, numbers), PublicScaler({0: numbers})):
        stored = io.dumps(scaler)
        again = io.loads(stored, trusted=io.get_untrusted_types(data=stored))
        rows = [[1.5], [1.0]] if hasattr(scaler, "ranges") else [[1.5, 1.0]]
        assert again.fit_transform(rows).tolist() == scaler.fit_transform(rows).tolist()


def test_sparse_and_infinite_entries_are_refused():
    X = table(50)
    with pytest.raises(ValueError, match="sparse"):
        PrivateScaler().fit(sparse.csr_array(X))
    with pytest.raises(ValueError, match="data frame of sparse columns"):
        PrivateScaler().fit(pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)))
    X[3, 1] = math.inf
    with pytest.raises(ValueError, match="infinity in column 1"):
        PrivateScaler().fit(X)


@pytest.mark.parametrize("transformer", [PrivateScaler(), PublicScaler([(0, 1)])])
def test_messages_name_the_column_and_never_an_entry(transformer):
    with pytest.raises(ValueError, match="column 0") as refusal:
        transformer.fit(np.array([["1.5"], ["a private diagnosis"]], dtype=object))
    assert "diagnosis" not in str(refusal.value)
    assert refusal.value.__context__ is None


def test_a_scaler_forgets_names_and_plans_for_people():
    X, people = np.random.default_rng(0).normal(size=(120, 2)), np.arange(120) // 3
    scaler = PrivateScaler().fit(pd.DataFrame(X, columns=["a", "b"]))
    assert list(scaler.feature_names_in_) == ["a", "b"]
    plan = scaler.plan(X, groups=people)
    assert scaler.fit(X, groups=people).privacy_ == plan
    assert dict(plan.public)["n_samples"] == 40
    assert dict(plan.public)["private_column_scales"] is True
    assert not hasattr(scaler, "feature_names_in_")


def test_parameters_of_scalers_reach_their_results():
    X = np.random.default_rng(0).normal(size=(500, 1))
    assert np.abs(PrivateScaler(epsilon=3.0, clip=0.5).fit_transform(X)).max() == 0.5
    (cell,) = CellScaler(0, data_norm=10.0).fit_transform([[10.0]])[0]
    assert cell == round(256 * math.asinh(1.0))
