"""A callable of the user's own: shown a mean over records, heard by nobody, never trusted."""

import logging
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import newton_krylov

from dp_halfspace.optim.losses import LOGISTIC, SQUARED_HINGE
from dp_halfspace.optim.objectives import Adversary, MarginObjective, SoftmaxObjective
from dp_halfspace.optim.solvers import FiniteSum, certified_minimum, silent_answer
from dp_halfspace.rows.rows import clipped_rows

N = 30
RNG = np.random.default_rng(5)
ROWS = clipped_rows(RNG.standard_normal((N, 3)), 1.0, 0.5)
SIGNS = np.where(RNG.random(N) < 0.4, -1.0, 1.0)
WEIGHTS = RNG.random(N) + 0.5
LINEAR = RNG.standard_normal(4)
PLAIN = MarginObjective(ROWS, SIGNS, WEIGHTS, LOGISTIC, 3.0, LINEAR)
MULTI = SoftmaxObjective(ROWS, RNG.integers(3, size=N), 3, WEIGHTS, 3.0)
MOVED = MarginObjective(
    ROWS, SIGNS, WEIGHTS, SQUARED_HINGE, 3.0, adversary=Adversary(0.1, 2, 3, 0.05), radius=2.0
)
EVERY = pytest.mark.parametrize("J", [PLAIN, MULTI, MOVED], ids=["plain", "softmax", "adversary"])


@EVERY
def test_it_is_the_mean_of_its_records(J):
    F, w = FiniteSum(J, 2.0), RNG.standard_normal(J.size)
    each = np.array([F.gradient_of(i, w) for i in range(N)])
    np.testing.assert_allclose(each.mean(axis=0), F.gradient(w), atol=1e-14)
    np.testing.assert_allclose(F.gradient(w), J.gradient(w) / N, atol=1e-15)
    np.testing.assert_allclose(F.gradient_of([4, 4, 7], w), (2 * each[4] + each[7]) / 3, atol=1e-14)
    value, gradient = F(w)
    assert value == F.value(w) == J.value_and_gradient(w)[0] / N
    np.testing.assert_allclose(gradient, F.gradient(w), atol=1e-15)


@EVERY
def test_every_record_is_as_smooth_and_convex_as_it_says(J):
    F = FiniteSum(J, 2.0)
    for _ in range(300):
        i, w = int(RNG.integers(N)), RNG.standard_normal(J.size)
        step = 10.0 ** RNG.uniform(-3, 0) * RNG.standard_normal(J.size)
        change = F.gradient_of(i, w + step) - F.gradient_of(i, w)
        assert np.linalg.norm(change) <= F.smoothness * np.linalg.norm(step) * (1 + 1e-9)
        assert change @ step >= F.strong_convexity * step @ step * (1 - 1e-9)


def test_a_tilted_objective_is_no_mean_over_records():
    F = FiniteSum(replace(PLAIN, tilt=0.5, radius=2.0), 2.0)
    w = np.ones(4)
    assert F.value(w) == F(w)[0]
    with pytest.raises(ValueError, match="no mean over records"):
        F.gradient_of(0, w)


def test_nothing_that_a_user_writes_to_reaches_the_problem():
    """Nor what is done to an answer, which is brought to the ball."""
    F, w = FiniteSum(PLAIN, 2.0), np.ones(4)
    before, kept = F.gradient(w), np.ones(4)
    for array in (w, F.gradient(w), F.gradient_of([1], w), F(w)[1]):
        array[:] = 1e9
    np.testing.assert_array_equal(F.gradient([[1], [1], [1], [1]]), before)
    with pytest.raises(AttributeError):
        F.radius = 3.0
    found = silent_answer(lambda fun, x0: kept, PLAIN, 0.5)
    kept[:] = 9.0
    np.testing.assert_allclose(found, np.full(4, 0.25))
    found, kept[:] = silent_answer(lambda fun, x0: kept, PLAIN, 50.0), 1.0
    np.testing.assert_array_equal(found, 9.0)


@pytest.mark.parametrize("answer", [np.zeros((4, 1)), np.zeros(5), np.full(4, np.nan)])
def test_an_answer_that_is_no_finite_vector_is_zero(answer):
    np.testing.assert_array_equal(silent_answer(lambda fun, x0: answer, PLAIN, 0.5), np.zeros(4))


# -- silence -------------------------------------------------------------------------


def noisy(fun, x0):
    warnings.warn("seen", UserWarning, stacklevel=1)
    np.log(np.zeros(1))
    print("seen")
    print("seen", file=sys.stderr)
    logging.getLogger("seen").critical("seen")
    logging.disable(logging.NOTSET)
    warnings.simplefilter("error")
    np.seterr(all="raise")
    return x0


def leave(fun, x0):
    raise SystemExit(3)


def wrong(answer):
    return lambda fun, x0: answer


class Explodes:
    def __array__(self, *args, **kwargs):
        print("seen")
        raise ArithmeticError("seen")


BAD = {
    "noisy": noisy,
    "raises": lambda fun, x0: 1 / 0,
    "exits": leave,
    "signature": lambda: None,
    "nan": wrong(np.full(4, np.nan)),
    "shape": wrong(np.zeros(5)),
    "ragged": wrong([[1], [1, 2]]),
    "text": wrong("seen"),
    "none": wrong(None),
    "complex": wrong(np.zeros(4, dtype=complex)),
    "object": wrong(Explodes()),
    "far": wrong(np.full(4, 1e300)),
    "krylov": lambda fun, x0: newton_krylov(fun.gradient, x0, maxiter=1, verbose=True),
}


@pytest.mark.parametrize("optimizer", BAD.values(), ids=BAD)
def test_whatever_a_callable_does_is_silent_and_certified(optimizer, capfd, caplog):
    filters, flags, level = list(warnings.filters), np.geterr(), logging.root.manager.disable
    w = certified_minimum(PLAIN, 1e-9, radius=10.0, optimizer=optimizer)
    assert np.linalg.norm(PLAIN.gradient(w)) <= 1e-9
    np.testing.assert_allclose(w, certified_minimum(PLAIN, 1e-9, radius=10.0), atol=2e-9)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert warnings.filters == filters
    assert np.geterr() == flags
    assert logging.root.manager.disable == level
    print("heard")
    print("heard", file=sys.stderr)
    assert capfd.readouterr() == ("heard\n", "heard\n")


def test_the_silence_test_hears_a_callable_that_is_run_in_the_open(capfd, caplog, monkeypatch):
    """Planted: no silence, and exceptions that pass."""

    def planted(optimizer, objective, radius):
        return optimizer(FiniteSum(objective, radius), np.zeros(objective.size))

    monkeypatch.setattr("dp_halfspace.optim.solvers.silent_answer", planted)
    with pytest.raises(ZeroDivisionError):
        certified_minimum(PLAIN, 1e-9, radius=10.0, optimizer=BAD["raises"])
    with warnings.catch_warnings(record=True) as heard, np.errstate():
        warnings.simplefilter("always")
        certified_minimum(PLAIN, 1e-9, radius=10.0, optimizer=noisy)
    assert UserWarning in {warning.category for warning in heard}
    out, err = capfd.readouterr()
    assert out.count("seen") == 1
    assert err.count("seen") >= 1
    assert caplog.records


def test_the_users_own_interrupt_passes_and_gives_the_voice_back(capfd):
    def interrupted(fun, x0):
        raise KeyboardInterrupt

    filters = list(warnings.filters)
    with pytest.raises(KeyboardInterrupt):
        silent_answer(interrupted, PLAIN, 1.0)
    print("heard")
    assert capfd.readouterr().out == "heard\n"
    assert warnings.filters == filters


def test_optimizers_of_several_threads_say_nothing(capfd):
    """The last one to end gives back what the first one had taken away."""
    inside, go, order = threading.Event(), threading.Event(), []

    def slow(fun, x0):
        inside.set()
        go.wait(10)
        print("seen")
        warnings.warn("seen", stacklevel=1)
        order.append("slow")
        return x0

    def quick(fun, x0):
        print("seen")
        order.append("quick")
        return x0

    filters, level = list(warnings.filters), logging.root.manager.disable
    first, second = (
        threading.Thread(target=silent_answer, args=(each, PLAIN, 1.0)) for each in (slow, quick)
    )
    first.start()
    inside.wait(10)
    second.start()
    second.join(10)
    go.set()
    first.join(10)
    assert order == ["quick", "slow"]
    print("heard")
    assert capfd.readouterr() == ("heard\n", "")
    assert warnings.filters == filters
    assert logging.root.manager.disable == level
