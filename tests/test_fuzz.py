"""Random parameters, shapes, types, frames and schemas: a good model, or an error with a name.

A case is a function of its number. All 20,000 run with ``-m slow``.
"""

from __future__ import annotations

import inspect
import re
import time
import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

import dp_halfspace
from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateSearchCV,
    PrivateTableClassifier,
)
from dp_halfspace._sklearn_compat import Interval, Options, StrOptions
from dp_halfspace.metrics import METRICS, private_score
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy.record import PrivacyRecord
from tests.instances import VARIANTS

CASES, PARTS, FEW = 20_000, 20, 24
# Of one processor; the plan of a multinomial model is what takes longest.
MOST_SECONDS = 5.0
# What asks for work, and how much of it is asked for here.
WORK = {
    "n_candidates": 400, "n_directions": 2000, "n_stages": 3, "n_components": 60, "n_fourier": 80,
    "n_hidden": 6, "degree": 4, "cache_size": 10, "n_repeats": 2,
}  # fmt: skip
# What an error may name beside parameters and the columns a, b, ...: arguments, and the budget.
ARGUMENTS = {"X", "y", "groups", "labels?", "columns?", "features?", "rows?", "target", "budget"}
TEXTS = np.array(["a", "b", "long text", "", "é", "1", "nan"], dtype=object)


# -- parameters ----------------------------------------------------------------------------


def inside(rule, name, rng):
    """A value that a rule allows, often at its ends; None if the rule is of another kind."""
    if isinstance(rule, Interval):
        low = -1e3 if rule.left is None else rule.left
        high = 1e3 if rule.right is None else rule.right
        if name in WORK:
            high = min(high, WORK[name])
        if rule.type is Integral:
            return int(rng.integers(int(low), int(high) + 1))
        if rng.random() < 0.15:
            ends = [
                end for side, end in (("left", low), ("right", high)) if side in CLOSED[rule.closed]
            ]
            return float(rng.choice(ends or [0.5 * (low + high)]))
        if low > 0 and rng.random() < 0.8:
            ends = np.log([max(low, 1e-3), min(max(high, 1e-3), 1e3)])
            return float(np.exp(rng.uniform(*ends)))
        return float(rng.uniform(low, min(high, 1e6)))
    if isinstance(rule, Options | StrOptions):
        return rng.choice(sorted(rule.options, key=str)).item()
    return bool(rng.integers(2)) if rule in ("boolean", "verbose") else None


ODD = [
    None, True, -1, 0, 1, 2.5, np.nan, np.inf, "nonsense", b"x", [], [0.1, 0.2], {}, 1e308,
    np.int64(3),
]  # fmt: skip
CLOSED = {"left": ("left",), "right": ("right",), "both": ("left", "right"), "neither": ()}


def value_of(name, rules, rng):
    """A value of a parameter, one in twelve of them odd."""
    if rng.random() < 0.08:
        return ODD[rng.integers(len(ODD))]
    rule = rules[rng.integers(len(rules))]
    if rule is Real:
        return float(rng.uniform(0, 0.5))
    found = inside(rule, name, rng)
    if found is None and rule == "array-like":
        return [0.05, 0.2] if name == "margin" else [3, 2]
    return found


OTHERWISE = {"classes", "class_weight", "ledger", "random_state", "schema", "verbose"}


def parameters(kind, rng):
    """Some parameters of an estimator."""
    variants = VARIANTS.get(kind.__name__, [{}])
    found = dict(variants[rng.integers(len(variants))])
    rules = kind._parameter_constraints
    names = sorted(set(rules) - OTHERWISE)
    for name in rng.choice(names, size=rng.integers(5)):
        found[str(name)] = value_of(name, rules[name], rng)
    if rng.random() < 0.6:
        found["epsilon"] = float(np.exp(rng.uniform(np.log(0.05), np.log(30.0))))
    if rng.random() < 0.6 and "data_norm" in rules:
        found["data_norm"] = 1.0
    for name in set(WORK) & set(rules):
        if name in ("n_candidates", "n_directions", "n_fourier") and name not in found:
            found[name] = WORK[name]
    return found


# -- data ------------------------------------------------------------------------------------


def numbers(rng, n, d):
    """A table of numbers, some of them extreme or missing."""
    X = rng.standard_normal((n, d)) * 10.0 ** rng.choice([0, 0, 0, 3, -8, 150, -200, 300])
    kind = rng.random()
    if kind < 0.05:
        X[rng.integers(n), rng.integers(d)] = rng.choice([np.nan, np.inf, -np.inf])
    elif kind < 0.1:
        X[:, 0] = rng.choice([0.0, 7.0])
    elif kind < 0.15:
        X[rng.integers(n)] = 0.0
    return X


def frame(rng, X):
    """A table of pandas with columns of several types."""
    n = len(X)
    table = pd.DataFrame({chr(97 + j): X[:, j] for j in range(X.shape[1])})
    makers = [
        lambda: pd.Categorical(rng.choice(["u", "v", "w"], n)),
        lambda: pd.array(rng.integers(0, 3, n), dtype="Int64"),
        lambda: pd.array(rng.choice([True, False, None], n), dtype="boolean"),
        lambda: TEXTS[rng.integers(len(TEXTS), size=n)],
        lambda: pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        lambda: pd.Series(rng.choice(np.array([1, None, "x", 2.5], dtype=object), n), dtype=object),
        lambda: np.full(n, np.nan),
        lambda: rng.integers(0, 2, n).astype(bool),
    ]
    for _ in range(rng.integers(3)):
        table[chr(97 + rng.integers(X.shape[1] + 2))] = makers[rng.integers(len(makers))]()
    return table


def table(rng, *, takes_frames):
    """A table of any type, and how many rows it has."""
    n, d = int(rng.choice([1, 2, 3, 10, 30, 60])), int(rng.choice([1, 2, 3, 8]))
    X = numbers(rng, n, d)
    makers = [
        lambda: X.astype(np.float32),
        lambda: np.asfortranarray(X),
        lambda: np.clip(X, -9, 9).astype(np.int64),
        lambda: X > 0,
        lambda: X.astype(object),
        lambda: sparse.csr_array(X),
        lambda: sparse.coo_matrix(X * (rng.random(X.shape) < 0.5)),
        X.tolist,
        lambda: X[:, 0],
        lambda: X[:, :0],
        lambda: X[:, :, None],
        lambda: X.astype(complex),
        lambda: X[::-1],
        partial(frame, rng, X),
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if takes_frames and rng.random() < 0.7:
            return frame(rng, X), n
        return (X if rng.random() < 0.5 else makers[rng.integers(len(makers))]()), n


def labels(rng, n):
    """Labels of any type, and a label set that mostly holds them."""
    kinds = [[0, 1], [-1, 1], ["no", "yes"], [False, True], [0.0, 1.5], [0, 1, 2], ["a", "b", "c"]]
    classes = kinds[rng.integers(len(kinds))]
    y = np.array(classes, dtype=object if isinstance(classes[0], str) else None)
    y = y[rng.integers(len(classes), size=n)]
    odd = rng.random()
    if odd < 0.03:
        y = y.astype(object)
        y[0] = rng.choice(np.array([None, np.nan, "other", 17], dtype=object))
    elif odd < 0.05:
        y = y[:-1]
    elif odd < 0.07:
        y = y[:, None]
    elif odd < 0.1:
        y = pd.Series(y)
    more = [*classes, "z" if isinstance(classes[0], str) else 9]
    stated = [classes, more, classes[:1], None][rng.choice(4, p=[0.88, 0.04, 0.04, 0.04])]
    weigh = rng.random()
    weights = None if weigh < 0.8 else {classes[0]: float(10.0 ** rng.integers(-3, 3))}
    weights = "balanced" if weigh > 0.98 else weights
    return y, stated, weights


def schema(rng):
    """Public facts about columns, right or wrong."""
    words = ["text", "drop", "number", "date", "boolean", "?"]
    rules = [[0, 1], [-5, 5], [1, 0], ["u", "v"], ["u", "u"], 3, [], *words]
    names = [chr(97 + j) for j in range(3)] + ["0", "1"]
    return {str(rng.choice(names)): rules[rng.integers(len(rules))] for _ in range(rng.integers(3))}


# -- cases -----------------------------------------------------------------------------------


def fitted_by(kind, rng, **more):
    """A fit of an estimator, and of what its errors may speak."""
    X, n = table(rng, takes_frames=kind is PrivateTableClassifier)
    y, classes, weights = labels(rng, n)
    params = {**parameters(kind, rng), "classes": classes, "class_weight": weights, **more}
    owned = "groups" in inspect.signature(kind.fit).parameters and rng.random() < 0.1
    groups = {"groups": rng.integers(0, max(n // 2, 1), n)} if owned else {}

    def run():
        return kind(**params).fit(X, y, **groups)

    return (
        run,
        X,
        set(kind._parameter_constraints),
        f"{kind.__name__}(**{params}), X={X!r}, y={y!r}, {groups}",
    )


def scaler_case(rng):
    X, n = table(rng, takes_frames=False)
    params = parameters(PrivateScaler, rng)
    groups = rng.integers(0, max(n // 2, 1), n) if rng.random() < 0.2 else None
    run = lambda: PrivateScaler(**params).fit(X, groups=groups)  # noqa: E731 - may refuse itself
    return run, X, set(PrivateScaler._parameter_constraints), f"PrivateScaler(**{params}), X={X!r}"


def table_case(rng):
    stated = schema(rng) if rng.random() < 0.5 else None
    return fitted_by(PrivateTableClassifier, rng, schema=stated)


def score_case(rng):
    n = int(rng.choice([1, 2, 10, 60]))
    X, y = numbers(rng, n, 2), rng.integers(0, 2, n)
    asked = {
        "metric": str(rng.choice([*METRICS, "x"])),
        "epsilon": float(10.0 ** rng.uniform(-3, 3)),
        "delta": [0.0, "auto", 1e-6, 0.3, 0.7][rng.integers(5)],
        "groups": rng.integers(0, max(n // 2, 1), n) if rng.random() < 0.2 else None,
    }
    if rng.random() < 0.1:
        asked["epsilon"] = ODD[rng.integers(len(ODD))]
    run = partial(private_score, MODEL, X, y, **asked)
    return run, None, set(asked) | {"model"}, f"private_score(**{asked}), X={X!r}"


def search_case(rng):
    kind = [OutputPerturbationClassifier, AdaptiveMarginClassifier][rng.integers(2)]
    n = int(rng.choice([2, 10, 60]))
    X, y = numbers(rng, n, 2), rng.integers(0, 2, n)
    grids = [
        {"alpha": [0.1, 1.0]}, {"data_norm": [1.0, 2.0, 5.0]}, {"fit_intercept": [True, False]},
        {"nonsense": [1]}, {}, {"epsilon": [1]},
    ]  # fmt: skip
    params = {
        "param_grid": grids[rng.integers(len(grids))],
        "epsilon": float(10.0 ** rng.uniform(-2, 2)),
        "delta": [0.0, "auto", 1e-6][rng.integers(3)],
        "selection": str(rng.choice(["auto", "exponential", "random_stopping", "x"])),
        "scoring": ["accuracy", "balanced_accuracy", "roc_auc", "x"][rng.integers(4)],
        "miss": float(rng.choice([0.3, 0.5, 0.9, 1.5])),
    }
    model = kind(data_norm=1.0, classes=[0, 1])
    names = set(PrivateSearchCV._parameter_constraints) | {"grid"}
    run = partial(PrivateSearchCV(model, **params).fit, X, y)
    return run, X, names, f"search {model}, {params}, X={X!r}"


MODEL = AdaptiveMarginClassifier(data_norm=1.0, epsilon=50.0, classes=[0, 1])
MODEL.fit(np.eye(2), [0, 1])
KINDS = [
    *[partial(fitted_by, getattr(dp_halfspace, name)) for name in VARIANTS],
    scaler_case, table_case, score_case, search_case,
]  # fmt: skip


def released(value, seen=None):
    """Yield every number that can be reached from public attributes."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            yield value
    elif isinstance(value, float):
        yield np.array(value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from released(item, seen)
    elif isinstance(value, PrivacyRecord | type) or callable(value):
        return
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("dp_halfspace"):
        for name, item in vars(value).items():
            if name.endswith("_") or not hasattr(value, "fit"):
                yield from released(item, seen)


def check(number):
    """Run one case."""
    rng = np.random.default_rng([20_26, number])
    run, X, names, text = KINDS[number % len(KINDS)](rng)
    speaks = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted({*names, *ARGUMENTS}))})(?![A-Za-z])")
    started = time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = run()
        except ValueError as error:
            model, refusal = None, str(error)
    assert model is not None or speaks.search(refusal), f"{refusal!r} names nothing: {text}"
    assert time.process_time() - started < MOST_SECONDS, text
    said = {warning.category for warning in heard}
    assert said <= {PrivacyWarning, DataConversionWarning}, f"{said}: {text}"
    if model is None:
        return False
    assert not any(np.isnan(values).any() for values in released(model)), text
    if hasattr(model, "predict"):
        guess = model.predict(X)
        assert np.isin(guess, model.classes_).all(), text
        if hasattr(model, "decision_function"):
            assert not np.isnan(model.decision_function(X)).any(), text
    elif hasattr(model, "transform"):
        assert np.isfinite(model.transform(X)).all(), text
    return True


def run_cases(cases):
    """Run cases, and see that there are models and errors among them."""
    good = 0
    for number in cases:
        try:
            good += check(number)
        except Exception as error:
            raise AssertionError(f"case {number}") from error
    assert 0.2 * len(cases) < good < 0.95 * len(cases)


def test_a_few_cases():
    run_cases(range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_cases(part):
    size = CASES // PARTS
    run_cases(range(part * size, (part + 1) * size))
