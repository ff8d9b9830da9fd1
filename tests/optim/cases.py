"""Data that break solvers, and gradients computed without the code under test."""

import mpmath
import numpy as np
from scipy import sparse

from dp_halfspace.optim.losses import (
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    huber_hinge,
)

LOSSES = [
    LOGISTIC,
    huber_hinge(0.5),
    huber_hinge(0.05),
    huber_hinge(1.0),
    SQUARED_HINGE,
    SQUARED,
    HINGE,
]


def loss_id(loss):
    return f"{loss.name}-{loss.smoothness:.3g}-{loss.self_bound:.3g}"


def data_sets():
    """Name, features, signs: every way in which training data degenerate."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60, 4))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    yield "typical", X, y
    yield "separable", X, np.where(X[:, 0] > 0, 1.0, -1.0)
    yield "duplicated", np.tile(X[:3], (20, 1)), np.tile(y[:3], 20)
    yield "contradictory", np.tile(X[:1], (60, 1)), np.tile([1.0, -1.0], 30)
    yield "one class", X, np.ones(60)
    yield "zero features", np.zeros((60, 4)), y
    yield "one record", X[:1], y[:1]
    yield "n < d", rng.standard_normal((5, 40)), y[:5]
    yield "huge rows", X * 10.0 ** rng.integers(100, 300, 60)[:, None], y
    yield "tiny rows", X * 10.0 ** rng.integers(-300, -100, 60)[:, None], y
    yield "one huge row", np.where(np.arange(60)[:, None] == 5, 1e200 * X, X), y
    yield "subnormal row", np.where(np.arange(60)[:, None] == 5, 5e-324, X), y


def random_problem(seed):
    """Rows, signs, weights and a ridge per mean loss, over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    n, d = int(10 ** rng.uniform(0, 3)), int(rng.integers(1, 30))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-4, 1, d)
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    kind = seed % 7
    if kind == 0:
        X = np.round(X)
    elif kind == 1:
        X = np.resize(X[: max(1, n // 4)], X.shape)
    elif kind == 2:
        X *= 10.0 ** rng.integers(-200, 200, (n, 1))
    elif kind == 3:
        signs[:] = 1.0
    elif kind == 4:
        signs = np.where(X[:, 0] > 0, 1.0, -1.0)
    weights = 10.0 ** rng.uniform(-2, 1, n) if seed % 2 else np.ones(n)
    return X, signs, weights, 10.0 ** rng.uniform(-8, 1)


def mostly_zero(n, d, density, rng):
    """A random matrix with few entries, in CSR form."""
    return sparse.csr_array(rng.random((n, d)) * (rng.random((n, d)) < density))


def clipped_float128(X, bound=1.0, bias=None):
    """Clip rows in extended precision, the constant column appended."""
    wide = np.asarray(X, dtype=np.longdouble)
    largest = np.abs(wide).max(axis=1, initial=0)
    shape = wide / np.where(largest > 0, largest, 1)[:, None]
    norms = largest * np.sqrt((shape**2).sum(axis=1))
    factor = np.where(norms > bound, bound / np.where(norms > 0, norms, 1), 1)
    wide = wide * factor[:, None]
    if bias is not None:
        wide = np.column_stack([wide, np.full(len(wide), bias, dtype=np.longdouble)])
    return wide


def logical_rows(X, scale=None, bias=None):
    """The matrix that `Rows` stands for, in extended precision."""
    wide = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.longdouble)
    if scale is not None:
        wide = wide * np.asarray(scale, dtype=np.longdouble)[:, None]
    if bias is not None:
        column = np.broadcast_to(np.asarray(bias, dtype=np.longdouble), len(wide))
        wide = np.column_stack([wide, column])
    return wide


def exact_slope(loss, t):
    """Derivative of a smooth loss at an mpmath number."""
    functions = {
        "logistic": lambda: -1 / (1 + mpmath.exp(t)),
        "squared_hinge": lambda: -2 * max(1 - t, 0),
        "squared": lambda: -2 * (1 - t),
    }
    if loss.name in functions:
        return functions[loss.name]()
    keywords = loss.value.keywords
    ratio = (mpmath.mpf(keywords["knot"]) - t) / mpmath.mpf(keywords["width"])
    return -min(max(ratio, mpmath.mpf(0)), mpmath.mpf(1))


def exact_value(loss, t):
    """Value of a smooth loss at an mpmath number."""
    if loss.name == "logistic":
        return mpmath.log1p(mpmath.exp(-t))
    if "squared" in loss.name:
        return (1 - t if loss.name == "squared" else max(1 - t, mpmath.mpf(0))) ** 2
    knot, width = (mpmath.mpf(loss.value.keywords[k]) for k in ("knot", "width"))
    inner = min(max(knot - t, mpmath.mpf(0)), width)
    return inner**2 / (2 * width) + max(knot - t - width, mpmath.mpf(0))


def exact_dual_norm(adversary, w):
    """What an adversary takes from a margin, and the gradient of it, at mpmath numbers."""
    if adversary is None:
        return mpmath.mpf(0), [mpmath.mpf(0)] * len(w)
    rho, k, d = mpmath.mpf(adversary.radius), mpmath.mpf(adversary.smoothing), adversary.n_features
    if adversary.norm == 2:
        roots = [mpmath.sqrt(mpmath.fsum(v * v for v in w[:d]) + k * k)]
    else:
        roots = [mpmath.sqrt(v * v + k * k) for v in w[:d]]
    gradient = [rho * v / r for v, r in zip(w[:d], roots * (d // len(roots)), strict=True)]
    return rho * mpmath.fsum(r - k for r in roots), gradient + [mpmath.mpf(0)] * (len(w) - d)


def exact_gradient(J, Z, w):
    """Gradient of a margin objective in 60 digits, its tilt and its adversary included."""
    with mpmath.workdps(60):
        w = [mpmath.mpf(float(v)) for v in w]
        lowered, u = exact_dual_norm(J.adversary, w)
        slopes, values, rows = [], [], []
        for row, sign, weight in zip(Z, J.signs, J.weights, strict=True):
            z = [float(sign) * _to_mpf(v) for v in row]
            t, c = mpmath.fdot(z, w) - lowered, mpmath.mpf(float(weight))
            slopes.append(c * exact_slope(J.loss, t))
            values.append(c * exact_value(J.loss, t))
            rows.append([a - b for a, b in zip(z, u, strict=True)])
        shares = [mpmath.exp(J.tilt * (v - max(values))) if J.tilt else 1 for v in values]
        scale = len(values) / mpmath.fsum(shares)
        linear = np.zeros(len(w)) if J.linear is None else J.linear
        total = [mpmath.mpf(J.ridge) * v + float(b) for v, b in zip(w, linear, strict=True)]
        for slope, share, row in zip(slopes, shares, rows, strict=True):
            total = [a + scale * share * slope * b for a, b in zip(total, row, strict=True)]
        return total


def exact_softmax_gradient(J, Z, w):
    """Gradient of the softmax objective without linear term in 40 digits."""
    with mpmath.workdps(40):
        W = [[mpmath.mpf(float(v)) for v in row] for row in w.reshape(J.n_classes, -1)]
        exact = [[mpmath.mpf(J.ridge) * v for v in row] for row in W]
        for row, target, weight in zip(Z, J.targets, J.weights, strict=True):
            z = [_to_mpf(v) for v in row]
            logits = [mpmath.exp(mpmath.fdot(z, v)) for v in W]
            total = mpmath.fsum(logits)
            for j, logit in enumerate(logits):
                p = float(weight) * (logit / total - int(j == target))
                exact[j] = [a + p * b for a, b in zip(exact[j], z, strict=True)]
        return [v for row in exact for v in row]


def _to_mpf(v):
    """An extended-precision float as the sum of two doubles, exactly."""
    high = float(v)
    return mpmath.mpf(high) + mpmath.mpf(float(v - np.longdouble(high)))


def norm_mp(vector):
    with mpmath.workdps(40):
        return float(mpmath.sqrt(mpmath.fsum(v * v for v in vector)))


def error_of(found, exact):
    """Norm of the error of a computed vector."""
    with mpmath.workdps(60):
        return norm_mp([mpmath.mpf(float(f)) - e for f, e in zip(found, exact, strict=True)])


def adversarial_rows(n=300, d=6, seed=0):
    """Margins that cancel, and records that cancel each other: sums of +-1 near 0."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n // 2, d)) * 10.0 ** rng.integers(-3, 1, (n // 2, d))
    X = np.vstack([half, -half + 1e-9 * rng.standard_normal(half.shape)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[rng.permutation(n)]


def wide_slope(loss, t):
    """Derivative of a smooth loss in extended precision, written anew."""
    if loss.name == "logistic":
        return -1 / (1 + np.exp(np.minimum(t, 11000)))
    if loss.name == "squared":
        return -2 * (1 - t)
    if loss.name == "squared_hinge":
        return -2 * np.maximum(1 - t, 0)
    knot, width = (np.longdouble(loss.value.keywords[k]) for k in ("knot", "width"))
    return -np.clip((knot - t) / width, 0, 1)


def naive_gradient(Z, signs, weights, loss, ridge, w, linear=None):
    """Gradient of a margin objective, whole matrix, extended precision."""
    wide = np.asarray(w, dtype=np.longdouble)
    slopes = weights * signs * wide_slope(loss, signs * (Z @ wide))
    return Z.T @ slopes + ridge * wide + (0 if linear is None else linear)


def naive_softmax_gradient(Z, targets, n_classes, weights, ridge, w):
    """Gradient of the softmax objective, whole matrix, extended precision."""
    W = np.asarray(w, dtype=np.longdouble).reshape(n_classes, -1)
    logits = Z @ W.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(Z)), targets] -= 1
    return ((p * weights[:, None]).T @ Z + ridge * W).ravel()


class Counting:
    """An objective that counts its passes over the data."""

    def __init__(self, objective):
        self.objective = objective
        self.gradients = self.hessians = self.products = 0

    def __getattr__(self, name):
        return getattr(self.objective, name)

    def gradient(self, w):
        self.gradients += 1
        return self.objective.gradient(w)

    def value_and_gradient(self, w):
        self.gradients += 1
        return self.objective.value_and_gradient(w)

    def hessian(self, w):
        self.hessians += 1
        return self.objective.hessian(w)

    def hessian_product(self, w):
        product = self.objective.hessian_product(w)

        def counted(v):
            self.products += 1
            return product(v)

        return counted
