"""What a number that a user states may be, and that no such number makes data visible."""

import ast
import importlib
import pkgutil
import re
import signal
import warnings
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from inspect import signature
from numbers import Real
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone

import dp_halfspace
from dp_halfspace import PrivacyWarning, PrivateSearchCV, model_selection, preprocessing
from dp_halfspace._params import is_public_number, require, storable
from dp_halfspace._sklearn_compat import Interval
from dp_halfspace.ledger import PrivacyLedger
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.solvers import newton_cg_path
from dp_halfspace.privacy.randomness import OS_RANDOMNESS
from dp_halfspace.rows.rows import clipped_rows
from tests.conftest import separated
from tests.instances import ESTIMATORS

X, Y = separated(30, 3)
one_of_each = pytest.mark.parametrize("name", ESTIMATORS)
pytestmark = pytest.mark.usefixtures("short_lists")


@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, [1.0], np.ones(2), object()])
def test_what_is_no_number_is_refused_by_the_name_of_the_parameter(value):
    with pytest.raises(ValueError, match="beta must be in"):
        require("in (0, 1]", beta=value)
    require("in (0, 1]", beta=np.float32(1), error=Fraction(1, 3))
    with pytest.raises(ValueError, match="beta must be in"):
        require("in [0, 1]", beta=-5e-324)


def test_the_range_of_a_public_number():
    for good in (1, 1e-50, 1e50, np.float32(3), np.int64(2), Fraction(1, 3)):
        assert is_public_number(good)
    for bad in (0, -1.0, 1e-51, 1e51, 10**400, np.nan, np.inf, True, np.True_, "1", None, 1j):
        assert not is_public_number(bad)


@one_of_each
def test_parameters_have_names(name):
    """A number without a name would be a margin or a loss to one reader, a budget to another."""
    kind = getattr(dp_halfspace, name)
    for given in ((0.1,), (1,), ("logistic", 0.1)):
        with pytest.raises(TypeError, match="takes 1 positional argument"):
            kind(*given)
    assert kind(epsilon=0.1).epsilon == clone(kind(epsilon=0.1)).epsilon == 0.1


def documented_defaults():
    """Yield callables with a parameter and the default that their docstring states."""
    for module in pkgutil.walk_packages(dp_halfspace.__path__, "dp_halfspace."):
        home = vars(importlib.import_module(module.name)) if "__main__" not in module.name else {}
        for own in [v for v in home.values() if getattr(v, "__module__", "") == module.name]:
            for each in (own, *(vars(own).values() if isinstance(own, type) else ())):
                text = each.__doc__ or "" if callable(each) and own is not PrivacyLedger else ""
                for names, default in re.findall(r"^ +([\w, ]+) : .*, default=(.+)$", text, re.M):
                    yield from ((each, name, default) for name in names.split(", "))


def test_defaults_are_those_of_the_docstrings():
    """But for those of a new ledger, which are taken where None stands."""
    found, known = 0, {"inf": np.inf, "OS_RANDOMNESS": OS_RANDOMNESS}
    for own, name, text in documented_defaults():
        if name in signature(own).parameters:
            default = signature(own).parameters[name].default
            stated = known[text] if text in known else ast.literal_eval(text)
            assert (own, name, default, type(default)) == (own, name, stated, type(stated))
            found += 1
    assert found > 300


def test_parameters_of_others_have_names_but_the_obvious_ones():
    """Only what every other library takes without a name, too: an estimator, its grid, ranges."""
    by_place = {
        dp_halfspace.PrivateSearchCV: ["estimator", "param_grid"],
        model_selection.PrivateThresholdClassifier: ["estimator"],
        model_selection.PrivateConformalClassifier: ["estimator"],
        preprocessing.PrivateScaler: [],
        preprocessing.PublicScaler: ["ranges"],
    }
    for kind, names in by_place.items():
        own = signature(kind).parameters.values()
        assert [each.name for each in own if each.kind is not each.KEYWORD_ONLY] == names
        with pytest.raises(TypeError):
            kind(*(None for _ in names), 3.0)


@one_of_each
def test_booleans_are_no_numbers(name):
    estimator = getattr(dp_halfspace, name)(classes=[0, 1])
    flags = {"fit_intercept", "preconditioner", "project", "verbose"}
    for parameter in set(estimator.get_params()) - flags - {"classes", "class_weight", "ledger"}:
        for value in (True, np.False_):
            model = clone(estimator).set_params(**{parameter: value})
            with pytest.raises(ValueError, match=f"'{parameter}' parameter of {name} must not be"):
                model.fit(X, Y)
    with pytest.raises(ValueError, match=r"class_weight\[1\] must be a positive number"):
        clone(estimator).set_params(class_weight={1: True}).fit(X, Y)


@one_of_each
def test_fractions_are_refused_by_name(name):
    for parameter in ("epsilon", "delta"):
        model = getattr(dp_halfspace, name)(classes=[0, 1], **{parameter: Fraction(1, 9)})
        with pytest.raises(ValueError, match=f"'{parameter}' parameter of {name} must be a float"):
            model.fit(X, Y)


def test_booleans_are_no_numbers_of_a_search():
    model = dp_halfspace.OutputPerturbationClassifier(classes=[0, 1])
    for parameter in ("epsilon", "delta", "miss", "n_jobs", "random_state"):
        search = PrivateSearchCV(model, {"alpha": [0.1]}).set_params(**{parameter: True})
        with pytest.raises(ValueError, match=f"'{parameter}' parameter .* must not be a boolean"):
            search.fit(X, Y)


@one_of_each
def test_messages_show_plain_numbers(name):
    kind = getattr(dp_halfspace, name)
    bad = [
        {"epsilon": np.float64(0.0)},
        {"epsilon": np.int64(-1)},
        {"data_norm": np.float64("nan")},
        {"random_state": np.int64(-1)},
        {"class_weight": {np.int64(7): 1.0}},
        {"class_weight": {np.int64(1): np.float64(-1.0)}},
    ]
    for params in bad:
        with pytest.raises(ValueError, match=next(iter(params))) as caught:
            kind(classes=[0, 1], **params).fit(X, Y)
        assert "np." not in str(caught.value)


def test_ranges_hold_where_scikit_learn_is_told_to_validate_nothing():
    with (
        sklearn.config_context(skip_parameter_validation=True),
        pytest.raises(ValueError, match="epsilon"),
    ):
        dp_halfspace.OutputPerturbationClassifier(epsilon=-1.0, classes=[0, 1]).fit(X, Y)


@contextmanager
def at_most(seconds):
    """Raise in a block that does not come to an end."""

    def ring(*_):
        raise TimeoutError("the fit does not end")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ends(kind):
    """Both ends of every range, and weights whose product with a norm is extreme."""
    for name, rules in kind._parameter_constraints.items():
        for rule in rules:
            if isinstance(rule, Interval) and name != "random_state":
                for end, inward in ((rule.left, np.inf), (rule.right, -np.inf)):
                    if end is not None:
                        value = float(end) if rule.type is Real else int(end)
                        yield {name: value if value in rule else float(np.nextafter(end, inward))}
    for low, high in ((1e-50, 1e50), (1.0, 1e50), (1e-50, 1e-50), (1e50, 1e50)):
        for norm in (1e-50, 1.0, 1e50):
            yield {"class_weight": {0: low, 1: high}, "data_norm": norm}
    if "tilt" in kind._parameter_constraints:
        yield from ({"tilt": tilt} for tilt in (1e-50, 1e3, 1e50))
        weights = {0: 1.0, 1: 1e50}
        for loss in ("hinge", "squared", "squared_hinge", "huber_hinge"):
            yield {"loss": loss, "alpha": 1e-50, "class_weight": weights}
    if "adversary_radius" in kind._parameter_constraints:
        yield from ({"adversary_radius": radius} for radius in (1e-50, 1 - 1e-9))


def hostile_neighbours():
    """Rows of norm 1e-150, 1 and 1e150, one of which is replaced by one of another size."""
    for scale, other in ((1e-150, 1e150), (1.0, -1e-150), (1e150, -1e150)):
        rows, labels = X * scale, Y.copy()
        rows[0], labels[0] = X[0] * other, 1 - Y[0]
        yield (X * scale, Y), (rows, labels)


def outcome(estimator, rows, labels):
    """What can be seen of a fit besides the model."""
    with warnings.catch_warnings(record=True) as heard, at_most(60):
        warnings.simplefilter("always")
        try:
            model = clone(estimator).fit(rows, labels)
            said = f"finite: {np.isfinite(np.column_stack([model.coef_, model.intercept_])).all()}"
        except (ValueError, FloatingPointError) as error:
            said = f"{type(error).__name__}: {error}"
    assert {warning.category for warning in heard} <= {PrivacyWarning}
    # What the released model shows differs between two fits of one table, too.
    texts = [str(warning.message) for warning in heard]
    return said, [text for text in texts if "every row has the same score" not in text]


@pytest.mark.sampled(1)
@one_of_each
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_neighbours_fare_alike_at_both_ends_of_every_range(name, step):
    """Neighbours take turns; every end meets all of them in the slow tests."""
    kind = getattr(dp_halfspace, name)
    for turn, params in enumerate(ends(kind)):
        if step > 1 and params.get("n_candidates", 0) > 1000:
            continue  # seconds a fit
        few = {"n_candidates": 30} if "n_candidates" in kind._parameter_constraints else {}
        model = kind(**{"classes": [0, 1], **few, **params})
        for one, other in list(hostile_neighbours())[turn % step :: step]:
            first, second = outcome(model, *one), outcome(model, *other)
            assert first == second, params
            assert first[0] != "finite: False", params


def test_that_test_sees_a_power_that_overflows(monkeypatch):
    """Planted: a third power of the rows, which overflows on one of two neighbours."""

    def careless(rows, *args):
        with np.errstate(over="raise"):
            assert np.sum(rows**3) < np.inf
        return clipped_rows(rows, *args)

    module = importlib.import_module("dp_halfspace.estimators._centred")
    monkeypatch.setattr(module, "clipped_rows", careless)
    with pytest.raises(AssertionError, match="FloatingPointError"):
        test_neighbours_fare_alike_at_both_ends_of_every_range("OutputPerturbationClassifier", 3)


def overflowing():
    """An objective whose gradient has a finite norm with an infinite square."""
    rows = clipped_rows(np.eye(3), 1.0)
    return MarginObjective(rows, np.ones(3), np.full(3, 1e200), LOGISTIC, 1.0)


def test_a_path_of_ridges_ends_where_its_start_overflows():
    with at_most(20), np.errstate(all="ignore"):
        newton_cg_path(overflowing(), 1e-9, 100)


def test_parameters_inside_of_others_are_stored_without_their_libraries():
    held = [pd.Series([1, 2]), (Path("a"), range(2))], {"key": pd.Index(["x"])}
    assert storable(held) == ([[1, 2], ("a", [0, 1])], {"key": ["x"]})
    assert type(storable([pd.Timestamp("2026-01-31")])[0]) is datetime
