"""The public replay over every public mode: nothing is found, and planted bugs are.

Both data sets are given the same answers, real ones and an adversary's, so that every query is
compared, not only the first.
"""

import importlib
import math
import sys
import threading
import warnings
from collections import deque
from copy import deepcopy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateSearchCV,
    PureHalfspaceClassifier,
    PureNetworkClassifier,
    _budget,
)
from dp_halfspace.audit import ReplayedRelease, ReplayResult, replay, white_box
from dp_halfspace.audit._visible import fingerprint
from dp_halfspace.audit.mechanism_checks import distance, epsilon_of, noise_level
from dp_halfspace.estimators import _centred
from dp_halfspace.estimators._ranking import plan_threshold
from dp_halfspace.metrics import private_score
from dp_halfspace.papers.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy import (
    Exponential,
    Gaussian,
    PrivacyRecord,
    Pure,
    RandomStopping,
    interception,
    mechanisms,
    noise_source,
    randomness,
)
from dp_halfspace.privacy import epsilon as composed
from dp_halfspace.privacy.exponential import (
    CountedChoice,
    GeneralizedChoice,
    TalliedChoice,
    TalliedChoices,
)
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    L2LaplaceNoise,
    Permit,
    SampledGaussianNoise,
    authorise,
)
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise, RandomizedResponse
from tests.adversarial import neighbouring_pairs
from tests.audit.paths import MODELS, OTHERS, scored
from tests.instances import adjacency, label, with_enough_records
from tests.metrics.problem import Known
from tests.releases import record_releases
from tests.support import plant_noise


def needs(estimator, y):
    """How many further records an estimator takes, and column scales are estimated of."""
    if isinstance(estimator, PrivateScaler) or estimator.get_params().get("data_norm", 1) is None:
        return 60
    if isinstance(estimator, PrivateSearchCV) or estimator.get_params().get("margin") == "select":
        return 60
    return len(with_enough_records(estimator, y)[0]) - len(y)


def pairs(estimator, trials, seed=4, n_classes=2, row_norm=1.0):
    """Neighbours made to hurt, with rows of zeros behind them where more are needed."""
    how = {"n_classes": n_classes, "row_norm": row_norm}
    found = neighbouring_pairs(np.random.default_rng(seed), 10 * trials, **how)
    for X, y, other_X, other_y in found:
        if hasattr(estimator, "fit"):
            if adjacency(estimator) == "replace-one-label":
                if (y == other_y).all():
                    continue
                other_X = X
            extra = needs(estimator, y)
        else:
            extra = 0
        tables = []
        for rows, labels in ((X, y), (other_X, other_y)):
            zeros = np.zeros((extra, X.shape[1])), np.arange(extra) % n_classes
            tables += [np.vstack([rows, zeros[0]]), np.append(labels, zeros[1])]
        yield tables
        trials -= 1
        if not trials:
            return


def seen(estimator, trials=2, n_histories=3, seed=4, n_classes=2, *, until=math.inf, row_norm=1.0):
    """Replay several pairs; return the largest ratio, `until` it is reached, and all findings."""
    largest, findings = 0.0, []
    for number, pair in enumerate(pairs(estimator, trials, seed, n_classes, row_norm)):
        result = replay(estimator, *pair, n_histories=n_histories, random_state=seed + number)
        largest = max([largest, *(release.ratio for release in result.releases)])
        findings += result.findings
        if largest > until:
            break
    return largest, findings


def cases():
    """The second model of each class, whose units are stated, and every third of the others."""
    names = set()
    for model in MODELS:
        name = type(model).__name__
        is_slow = name in names or model.get_params().get("data_norm", 0) is None
        names |= set() if is_slow else {name}
        yield pytest.param(model, 2, id=label(model), marks=pytest.mark.slow if is_slow else [])
        if get_tags(model).classifier_tags.multi_class and not is_selected(model):
            many = clone(model).set_params(classes=[0, 1, 2])
            yield pytest.param(many, 3, id=f"{label(many)}-three", marks=pytest.mark.slow)
    fast = {"scaler", "search, one choice", "log_loss, 1e-06", "accuracy, 0.0"}
    for name, case in OTHERS.items():
        yield pytest.param(case, 2, id=name, marks=[] if name in fast else pytest.mark.slow)


def is_selected(model):
    """A margin is selected for two classes."""
    return model.get_params().get("margin") == "select"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("estimator", "n_classes"), cases())
def test_nothing_is_found(estimator, n_classes, request):
    is_slow = request.node.get_closest_marker("slow")
    largest, findings = seen(
        estimator, 5 if is_slow else 2, 5 if is_slow else 3, n_classes=n_classes
    )
    assert not findings
    assert largest <= 1.0


GD = AdaptiveMarginClassifier(epsilon=50.0, data_norm=1.0, solver="noisy_gd", classes=[0, 1])
FEATURES = PrivateKernelClassifier(
    epsilon=50.0, delta=1e-3, n_components=16, margin=0.3, classes=[0, 1]
)
RANKING = PrivateAUCClassifier(epsilon=50.0, classes=[0, 1], data_norm=1.0, threshold=0.0)
OF_PAIRS = clone(RANKING).set_params(mechanism="objective", alpha=0.5, epsilon=200.0, delta=0.0)
PHASES = clone(FEATURES).set_params(solver="phased_prox")
SINGLE = clone(GD).set_params(solver="noisy_sgd", margin=0.3, delta=1e-3)
OUTPUT = OutputPerturbationClassifier(
    epsilon=4.0, data_norm=1.0, classes=[0, 1], loss="huber_hinge", alpha=3.0
)
MAPPED = clone(OUTPUT).set_params(epsilon=200.0, preconditioner=True)
# With the logistic loss the slopes of so few rows would stay far from their bound.
OBJECTIVE = ObjectivePerturbationClassifier(
    epsilon=20.0, data_norm=1.0, classes=[0, 1], loss="huber_hinge", preconditioner=False
)
PURE_OUTPUT = clone(OUTPUT).set_params(delta=0.0)
# So few rows have no moment, and are brought to norm one.
NORMED = ObjectivePerturbationClassifier(epsilon=20.0, delta=0.0, data_norm=1.0, classes=[0, 1])
LABELS = LabelPrivateClassifier(epsilon=4.0, classes=[0, 1])
RESPONSES = clone(LABELS).set_params(mechanism="randomized_response", n_fourier=100)
HALFSPACE = PureHalfspaceClassifier(
    epsilon=8.0, n_directions=50, n_stages=1, data_norm=1.0, classes=[0, 1]
)
NETWORK = PureNetworkClassifier(epsilon=20.0, n_candidates=50, data_norm=1.0, classes=[0, 1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("estimator", "near"),
    [
        (GD, 0.99),
        (clone(RANKING).set_params(threshold="private", threshold_share=0.5), 0.9),
        (RANKING, 0.99),
        (FEATURES, 0.9),
        (PHASES, 0.5),
        (SINGLE, 0.99),
        (OUTPUT, 0.99),
        (MAPPED, 0.99),
        (OBJECTIVE, 0.8),
        (LABELS, 0.99),
        (HALFSPACE, 0.99),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_queries_come_near_their_bound(estimator, near):
    largest, findings = seen(estimator, 12, 4, seed=3, until=near)
    assert not findings
    assert near < largest <= 1.0


@pytest.mark.parametrize(
    "estimator",
    [
        *(GD, RANKING, OF_PAIRS, FEATURES, PHASES, SINGLE, OUTPUT, MAPPED, OBJECTIVE),
        *(PURE_OUTPUT, NORMED, HALFSPACE),
    ],
    ids=lambda model: type(model).__name__,
)
def test_rows_beyond_the_stated_norm_move_a_query_no_further(estimator):
    """A record may break its public bound, and is protected all the same; no flag leaves a fit."""
    with np.errstate(all="raise"):
        largest, findings = seen(estimator, 3, 1, seed=3, row_norm=40.0)
    assert not findings
    assert 0.2 < largest <= 1.0


def test_planted_bug_rows_that_are_clipped_at_twice_the_norm_are_seen(monkeypatch):
    honest = _centred.clipped_rows
    monkeypatch.setattr(_centred, "clipped_rows", lambda X, norm, c: honest(X, 2.0 * norm, c))
    assert seen(OUTPUT, 4, 1, seed=3, row_norm=40.0)[0] > 1.0


def test_rows_in_learnt_units_come_near_the_bounds_of_counts_and_steps():
    """The path of a fit without any parameter: its copy of the rows is in float32."""
    model = clone(GD).set_params(data_norm=None)
    results = [replay(model, *p, n_histories=1, random_state=0) for p in pairs(model, 6, 3)]
    assert not any(result.findings for result in results)
    ratios = np.array([[release.ratio for release in result.releases] for result in results])
    assert (ratios <= 1.0).all()
    # Octaves of the columns, second moment, and the first step.
    assert (ratios[:, [0, 3, 4]].max(axis=0) > [0.99, 0.95, 0.99]).all()


def test_a_minimiser_with_kinks_is_aligned():
    """Behind little regularisation Newton's method stops: 4 of 90 replays raised a false alarm."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    model = ObjectivePerturbationClassifier(
        epsilon=200.0, delta=0.0, data_norm=1.0, classes=[0, 1], loss="huber_hinge",
        fit_intercept=False,
    )  # fmt: skip
    other = np.vstack([-X[0], X[1]])
    result = replay(model, X, [0, 1], other, [0, 1], n_histories=2, random_state=6)
    assert not result.findings


# -- planted bugs ----------------------------------------------------------------------


def half_the_noise(patch, kind):
    """Planted: as much noise as for half the sensitivity, or choices of twice the epsilon."""
    if kind in (GaussianNoise, L2LaplaceNoise, GaussianLinearTerm):
        plant_noise(patch, kind, 0.5)
        return
    honest = kind.perturb
    if kind is SampledGaussianNoise:
        half = lambda self: kind(self.n_records, self.sensitivity / 2, self.mu)  # noqa: E731
        patch.setattr(kind, "perturb", lambda self, *rest: honest(half(self), *rest))
        return

    def twice(self, value, source):
        fields = {f: getattr(self, f) for f in self.__dataclass_fields__}
        return honest(kind(**{**fields, "epsilon": 2 * self.epsilon}), value, source)

    patch.setattr(kind, "perturb", twice)


def levels(part, n_coordinates, trials=300):
    """Levels of releases with a part of the noise, half of it of either kind."""
    rng = np.random.default_rng(0)
    gaussian, laplace = GaussianNoise(1.0, 1.0), L2LaplaceNoise(1.0, 1.0)
    zeros = np.zeros(n_coordinates)
    for _ in range(trials):
        noise = part * rng.standard_normal(n_coordinates)
        pairs = part * rng.standard_normal((n_coordinates // 8, 4))
        pairs *= (rng.gamma(4.0, size=len(pairs)) / np.linalg.norm(pairs, axis=1))[:, None]
        more = [(laplace, np.zeros(4), part * pair) for pair in pairs]
        yield noise_level([(gaussian, zeros, noise * gaussian.sigma), *more])


@pytest.mark.parametrize("mechanism", [GaussianNoise(1.0, 1.0), ExponentialChoice(1.0, 1.0)])
def test_a_value_that_is_no_number_is_at_no_bounded_distance(mechanism):
    """Otherwise a record that makes all sums undefined would seem to have no effect."""
    assert distance(mechanism, np.array([1.0, 2.0]), np.array([1.0, np.nan])) == (math.inf, 1.0)


def test_levels_hold_and_show_half_the_noise():
    """A level is a probability that correct noise keeps; enough coordinates show less noise."""
    right = np.array([*levels(1.0, 16)])
    assert all((right <= share).mean() <= share for share in (0.3, 0.1, 0.05))
    assert np.mean([level < 1e-6 for level in levels(0.5, 80, 100)]) > 0.99
    assert all(level < 1e-6 for level in levels(0.9, 6000, 3))


def test_levels_of_responses_show_twice_the_epsilon():
    """Also in a replay of right ones, answers of an adversary among them, nothing is found."""
    labels, right = np.zeros(2000), RandomizedResponse(2, 1.0)
    for epsilon, is_right in ((1.0, True), (2.0, False)):
        drawn = RandomizedResponse(2, epsilon).perturb(labels, noise_source(None))
        assert (noise_level([(right, labels, drawn)]) > 1e-6) is is_right
    X, y = np.eye(30, 3)[np.arange(30) % 3] * 0.9, np.arange(30) % 2
    others = X, np.r_[1, y[1:]]
    assert not replay(RESPONSES, X, y, *others, n_histories=3, random_state=0).findings


@pytest.mark.parametrize(
    "given",
    [
        *({"random_state": odd} for odd in ("1", -1)),
        *({"n_histories": odd} for odd in (0, True, 1.5)),
    ],
    ids=str,
)
def test_numbers_of_a_replay_are_named(given):
    (name,) = given
    with pytest.raises(ValueError, match=f"{name} must be"):
        replay(RESPONSES, None, None, None, None, **given)


# In this order each kind of mechanism that is quickly seen is in the sample that runs by default.
TOO_LITTLE = [
    (GaussianNoise, GD, 2),
    (GaussianNoise, OUTPUT, 30),
    (SampledGaussianNoise, SINGLE, 1),
    (GaussianNoise, MAPPED, 10),
    (L2LaplaceNoise, PURE_OUTPUT, 30),
    (GaussianNoise, FEATURES, 2),
    (GaussianNoise, PHASES, 8),
    pytest.param(RandomizedResponse, RESPONSES, 60, marks=pytest.mark.slow),
    (DiscreteLaplaceNoise, PrivateScaler(epsilon=5.0, delta=0.0), 2),
    pytest.param(GaussianLinearTerm, OBJECTIVE, 60, marks=pytest.mark.slow),
    (GaussianNoise, scored("confusion_matrix", 1e-6), 25),
    (GaussianNoise, LABELS, 8),
    (GaussianNoise, PrivateScaler(epsilon=5.0), 2),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "estimator", "n_histories"),
    TOO_LITTLE,
)
def test_half_the_noise_is_seen(monkeypatch, kind, estimator, n_histories):
    half_the_noise(monkeypatch, kind)
    X = np.eye(30, 3)[np.arange(30) % 3] * 0.9
    y = np.arange(30) % 2
    result = replay(estimator, X, y, X, np.r_[1, y[1:]], n_histories=n_histories, random_state=0)
    assert any("noise is too small" in finding for finding in result.findings)


CHOICES = [
    (ExponentialChoice, np.arange(40.0), ExponentialChoice(1.0, 0.5)),
    (TalliedChoice, np.arange(40), TalliedChoice(0.5)),
    (TalliedChoices, np.r_[np.arange(40), np.arange(30)], TalliedChoices((40, 30), 0.5)),
    (CountedChoice, np.arange(40), CountedChoice(0.5, 0.4)),
    (GeneralizedChoice, np.arange(40.0) * 9, GeneralizedChoice((1.0,) * 40, 0.5)),
]


def test_distances_of_two_lists_add_up():
    """The sum of a cost of either list: what moves from one list to the other counts once."""
    choices, costs = TalliedChoices((2, 3), 0.5), np.array([3, 4, 1, 1, 5])
    for change, apart in (
        ([-1, 0, 1, 0, 1], 1.0),
        ([1, 1, 1, 0, 0], 2.0),
        ([0, -1, 0, -1, 0], 2.0),
        ([0, 0, 0, 0, 0], 0.0),
    ):
        assert distance(choices, costs, costs + change) == (apart, 1.0)


@pytest.mark.parametrize(("kind", "value", "choice"), CHOICES, ids=[c[0].__name__ for c in CHOICES])
def test_choices_of_twice_the_epsilon_are_seen(monkeypatch, kind, value, choice):
    """A choice shows little of itself; of two hundred, right ones look right and others wrong."""

    class Chooser:
        privacy_ = PrivacyRecord(epsilon=200.0, delta=0.0, events=(choice.event,) * 200, noise="os")

    def fit(X, y):
        permit = authorise(Chooser.privacy_, noise_source(None))
        for _ in range(200):
            permit.release(value, choice)
        return Chooser()

    pair = (np.zeros((2, 1)), [0, 1], np.zeros((2, 1)), [1, 1])
    assert not replay(fit, *pair, n_histories=1, random_state=0).findings
    half_the_noise(monkeypatch, kind)
    assert replay(fit, *pair, n_histories=1, random_state=0).noise_level < 1e-6


WEIGHED = {"data_norm": 1.0, "classes": [0, 1], "class_weight": {0: 1.0, 1: 5.0}}
HEAVY = {
    "steps": AdaptiveMarginClassifier(solver="noisy_gd", **WEIGHED),
    "margin": AdaptiveMarginClassifier(margin=0.3, solver="noisy_gd", **WEIGHED),
    "grid": AdaptiveMarginClassifier(margin=[0.1, 0.3], selection="exponential", **WEIGHED),
    "features": PrivateKernelClassifier(n_components=20, **WEIGHED),
    "kernel": PrivateKernelClassifier(margin="select", kernel="rbf", n_components=20, **WEIGHED),
    "ranking": PrivateAUCClassifier(**WEIGHED),
    "output": OutputPerturbationClassifier(**WEIGHED),
    "objective": ObjectivePerturbationClassifier(**WEIGHED),
    "directions": PureHalfspaceClassifier(n_directions=300, **WEIGHED),
    "networks": PureNetworkClassifier(n_candidates=100, n_stages=1, epsilon=2.0, **WEIGHED),
}


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
def test_a_record_of_a_heavy_class_moves_no_value_by_more_than_its_sensitivity(name):
    """Equal rows, one of which changes its class and weighs five times as much as before."""
    X, y = np.tile([[0.6, 0.8]], (60, 1)), np.arange(60) % 2
    result = replay(HEAVY[name], X, y, X, np.r_[1, y[1:]], n_histories=1, random_state=0)
    assert not result.findings
    # Centred rows that are all equal are zero, but for their constant.
    assert max(release.ratio for release in result.releases) > 0.15


def halve_threshold(patch):
    """The choice of the threshold, which comes last, is charged half its change."""
    module = importlib.import_module("dp_halfspace.estimators._ranking")

    def halved(n_samples, n_features, epsilon):
        choice = plan_threshold(n_samples, n_features, epsilon)
        return type(choice)(choice.sensitivity / 2, choice.epsilon)

    patch.setattr(module, "plan_threshold", halved)


def halve(kind):
    """Half the sensitivity, wherever noise is of this kind."""

    def plant(patch):
        honest = kind.__init__
        patch.setattr(kind, "__init__", lambda self, size, *rest: honest(self, size / 2, *rest))

    return plant


def halve_term(patch):
    """The change of a gradient when a record is added, used for replacing one."""
    module = importlib.import_module("dp_halfspace.papers.objective")
    honest = module._gaussian_term

    def half(*args):
        term = honest(*args)
        return type(term)(term.change / 2, *(getattr(term, f) for f in
                          ("mu", "log_ratio", "vertices", "pairwise")))  # fmt: skip

    patch.setattr(module, "_gaussian_term", half)


def images_as_they_are(patch):
    """Rows behind a preconditioner are not clipped to the norm that the proof assumes."""
    honest = _centred.FormedRows
    patch.setattr(
        _centred, "FormedRows", lambda rows, image, longest, *how: honest(rows, image, 9.0, *how)
    )


def two_steps(patch):
    """The solver stops after three steps, wherever it is then."""
    module = importlib.import_module("dp_halfspace.optim.risks")

    def unconverged(objective, gamma, *, radius, **rest):
        w = np.zeros(objective.rows.shape[1])
        for _ in range(3):
            w = w - objective.gradient(w)
        return w

    patch.setattr(module, "certified_minimum", unconverged)


def coarse(patch):
    """The solver stops at a place that is right to two digits."""
    module = importlib.import_module("dp_halfspace.optim.risks")
    honest = module.certified_minimum
    patch.setattr(module, "certified_minimum", lambda *a, **k: np.round(honest(*a, **k), 2))


def swayed(patch):
    """The solver stops at a place that depends on one record in a way of its own."""
    module = importlib.import_module("dp_halfspace.optim.risks")
    honest = module.certified_minimum

    def near(objective, *rest, **how):
        return honest(objective, *rest, **how) + 0.3 * objective.rows.dense(np.arange(1))[0]

    patch.setattr(module, "certified_minimum", near)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("estimator", "planted"),
    [
        (clone(RANKING).set_params(threshold="private"), halve_threshold),
        (RANKING, halve(GaussianNoise)),
        (GD, halve(GaussianNoise)),
        (FEATURES, halve(GaussianNoise)),
        (PHASES, halve(GaussianNoise)),
        (OUTPUT, halve(GaussianNoise)),
        (MAPPED, halve(GaussianNoise)),
        (MAPPED, images_as_they_are),
        (PURE_OUTPUT, halve(L2LaplaceNoise)),
        (LABELS, halve(GaussianNoise)),
        (PrivateScaler(epsilon=5.0), halve(GaussianNoise)),
        (PrivateScaler(epsilon=5.0, delta=0.0), halve(DiscreteLaplaceNoise)),
        (NETWORK, halve(ExponentialChoice)),
        (scored("confusion_matrix", 1e-6), halve(GaussianNoise)),
        (OBJECTIVE, halve_term),
        (OUTPUT, two_steps),
        (MAPPED, coarse),
        (OBJECTIVE, swayed),
    ],
)
def test_half_a_sensitivity_and_an_unconverged_solver_are_seen(monkeypatch, estimator, planted):
    planted(monkeypatch)
    largest, findings = seen(estimator, 24, 4, until=1.0)
    assert largest > 1.0
    assert any("times the sensitivity apart" in finding for finding in findings)


def after_fit(patch, kind, also):
    """Plant something that is done with the data after an honest fit."""
    honest = kind.fit

    def fit(self, X, y=None, groups=None):
        model = honest(self, X, y)
        also(model, np.asarray(X), np.asarray(y))
        return model

    patch.setattr(kind, "fit", fit)


def one_more(model, X, y):
    """Another release of the labels and the rows, for which nobody paid."""
    del model
    noise = GaussianNoise(2.0, 3.0)
    record = PrivacyRecord(epsilon=20.0, delta=1e-3, events=(noise.event,), noise="os")
    authorise(record, noise_source(None)).release(np.append(X[:, 0].sum(), y.sum()), noise)


def unpaid(model, X, y):
    """An attribute that no charge covers."""
    model.n_iter_ = int((np.abs(X[:, 0]) * (y + 1.0) > 0.7).sum())


def loud(model, X, y):
    """A warning that shows the rows."""
    del model
    warnings.warn(f"{(X[:, 0] * (y + 1)).sum()}", stacklevel=1)


def failing(model, X, y):
    """An exception that one record decides on."""
    del model
    if abs(X[0, 0]) * (y[0] + 1) > 0.7:
        raise ArithmeticError("did not converge")


class Stuck:
    """A stream that starts anew at every read."""

    kind = "os"

    def read(self, n):
        return (bytes(range(1, 256)) * (n // 255 + 1))[:n]

    def branches(self):
        return lambda _: self


CLASSES = [GD, OUTPUT, OBJECTIVE, RANKING, FEATURES, LABELS, HALFSPACE, NETWORK,
           PrivateScaler(epsilon=5.0)]  # fmt: skip
each_class = pytest.mark.parametrize("estimator", CLASSES, ids=lambda e: type(e).__name__)


def flipped(trials=1):
    """One record, another label, other features."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 2)) / 2, np.arange(12) % 2
    X[0] = [0.6, 0.0]
    other = X.copy()
    other[0] = [-0.6, 0.0]
    return X, y, other, np.r_[1 - y[0], y[1:]]


def found(estimator, n_histories=2):
    X, y, other, other_y = flipped()
    other = X if adjacency(estimator) == "replace-one-label" else other
    result = replay(estimator, X, y, other, other_y, n_histories=n_histories, random_state=1)
    return " ".join(result.findings)


@pytest.mark.sampled(5)
@each_class
@pytest.mark.parametrize(
    ("also", "text"),
    [(unpaid, "n_iter_: differs"), (loud, "warnings: differs"), (failing, "exceptions: differs"),
     (one_more, "releases cost")],
)  # fmt: skip
def test_what_nobody_paid_for_is_seen(monkeypatch, estimator, also, text):
    after_fit(monkeypatch, type(estimator), also)
    assert text in found(estimator)


class Quiet:
    """Says nothing of itself where it is pickled; holds its value in a slot, too."""

    __slots__ = ("__dict__", "__secret")

    def __init__(self, value):
        self.__secret = value

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        pass


class Wide(Quiet):
    """The same without the slot."""

    def __init__(self, value):
        self.secret = value


def in_a_slot(model, X, y):
    model.kept_ = [Quiet(float(X[0, 0]))]


def in_a_dict(model, X, y):
    model.kept_ = {"state": Wide(X[0])}


def in_a_closure(model, X, y):
    model.kept_ = lambda: X


def in_the_class(model, X, y):
    type(model).last_rows = X.copy()


def printed(model, X, y):
    print(X[0])


def printed_bytes(model, X, y):
    sys.stdout.buffer.write(X[0].tobytes())


def complained(model, X, y):
    sys.stderr.write(f"{X[0]}")


def quietly_failing(model, X, y):
    """The same text, and the record behind it."""
    error = ArithmeticError("did not converge")
    error.record = X[0]
    raise error


@pytest.mark.parametrize(
    ("also", "text"),
    [(in_a_slot, "kept_: differs"), (in_a_dict, "kept_: differs"),
     (in_a_closure, "kept_: differs"), (in_the_class, "class attribute PrivateScaler.last_rows"),
     (printed, "output: differs"), (printed_bytes, "output: differs"),
     (complained, "output: differs"),
     (quietly_failing, "exceptions: differs")],
)  # fmt: skip
def test_what_is_hidden_from_a_pickle_or_stands_elsewhere_is_seen(monkeypatch, also, text):
    monkeypatch.setattr(PrivateScaler, "last_rows", None, raising=False)
    after_fit(monkeypatch, PrivateScaler, also)
    streams = sys.stdout, sys.stderr
    assert text in found(PrivateScaler(epsilon=5.0))
    assert (sys.stdout, sys.stderr) == streams


def test_what_is_hidden_in_a_result_of_a_function_is_seen():
    def scored_quietly(X, y):
        score = private_score(Known(), X, y, epsilon=4.0, delta=1e-6)
        object.__setattr__(score, "rows", Quiet(X[0]))
        return score

    result = replay(scored_quietly, *flipped(), n_histories=2)
    assert result.findings == ("the result: differs though all releases agree",) * 2


def hollow():
    """Return a function of what was never set."""

    def found():
        return late  # noqa: F821

    late = None
    del late
    return found


def test_digests_tell_values_apart_and_nothing_else():
    """To the last bit, through circles; the order of a set and addresses are no part of them."""
    circle = [1.0]
    circle.append(circle)
    numbers = np.arange(3.0)
    backwards = numbers[::-1]
    frame = pd.DataFrame({"a": numbers})
    values = [
        0.0, -0.0, math.nan, 0, "0", b"0", None, False, (), [], {}, set(), [0.0], [[0.0]],
        {1: 2, 3: 4}, {3: 4, 1: 2}, circle, numbers, numbers.astype("f4"), backwards,
        np.array([1, "a"], dtype=object), np.float32(1.0), frame, frame + 1.0, ValueError("a"),
        ValueError("b"), GD, clone(GD).set_params(epsilon=1.0), lambda: 0, lambda: 1,
        partial(max, 1), partial(max, 2), Quiet(1.0), Quiet(2.0), np.random.default_rng(0),
        np.random.default_rng(1), deque([1]), 1j, frozenset({1}), property(len), len,
        np.eye(2, 3), np.asfortranarray(np.eye(2, 3)), hollow(),
    ]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    # Numbers behind a mask, and what cannot be pickled or copied.
    unlike = [np.ma.array([each], mask=True) for each in (1.0, 2.0)]
    unlike += [view(each) for view in (dict.keys, dict.values) for each in ({1: 2}, {3: 4})]
    unlike += [memoryview(b"0"), memoryview(b"1")]
    assert len({fingerprint(value) for value in unlike}) == len(unlike)
    for value in values:
        # What hides its state loses it in a copy, and a copy of an array may have other strides.
        if not isinstance(value, Quiet) and value is not backwards and not callable(value):
            assert fingerprint(deepcopy(value)) == fingerprint(value)
    assert fingerprint({f"{i}" for i in range(99)}) == fingerprint(
        {f"{i}" for i in range(98, -1, -1)}
    )
    assert fingerprint(threading.Lock()) == fingerprint(threading.Lock())
    raised = ValueError("b")
    raised.__context__ = KeyError("a label")
    assert fingerprint(raised) != fingerprint(ValueError("b"))


@pytest.mark.sampled(5)
@each_class
def test_a_reused_stream_is_seen(monkeypatch, estimator):
    module = importlib.import_module(type(estimator).fit.__module__)
    for place in (module, _budget, randomness):  # a fit may import it when it is called
        monkeypatch.setattr(place, "noise_source", lambda seed: Stuck(), raising=False)
    assert "bytes are used twice" in found(clone(estimator))


@pytest.mark.sampled(5)
@each_class
def test_noise_that_follows_a_count_is_seen(monkeypatch, estimator):
    """The scale, or the rate of a choice, is made from what is to be hidden."""

    def release(self, value, mechanism):
        self.consume(mechanism.event)
        fields = mechanism.__dataclass_fields__
        name = next(f for f in ("sensitivity", "change", "epsilon") if f in fields)
        follows = 1.0 + float(np.ravel(value).astype(float) ** 2 @ np.arange(value.size)) / 1e3
        other = replace(mechanism, **{name: getattr(mechanism, name) * follows})
        return interception.draw_release(value, other, self._source)

    monkeypatch.setattr(Permit, "release", release)
    assert "depend on the data" in found(estimator)


# -- the replay itself -----------------------------------------------------------------


def test_ledger_seed_and_patches_are_left_alone():
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-3)
    model = clone(OUTPUT).set_params(ledger=ledger, random_state=3)
    search = PrivateSearchCV(model, {"alpha": [1.0, 2.0]}, epsilon=4.0, selection="exponential")
    X, y, other, other_y = flipped()
    filters = warnings.filters[:]
    for estimator in (model, search, PrivateScaler(ledger=ledger)):
        result = replay(estimator, X, y, other, other_y, n_histories=2)
        assert isinstance(result, ReplayResult)
        assert {type(release) for release in result.releases} == {ReplayedRelease}
        assert not result.findings
    assert not ledger.entries()
    assert warnings.filters == filters
    assert model.random_state == 3
    assert interception._ANSWER.get() is None
    with pytest.raises(ValueError, match="must have the same number of rows"):
        replay(OUTPUT, X, y[:5], other, other_y[:5], n_histories=1)
    assert interception._ANSWER.get() is None
    with pytest.raises(ValueError, match="X and X_neighbour must have the same number of rows"):
        replay(OUTPUT, X, y, other[:5], other_y[:5])


def test_other_threads_draw_their_noise_as_ever():
    X, y, other, other_y = flipped()
    inside, models, asked = threading.Event(), [], threading.Event()

    def slow(X, y):
        inside.set()
        asked.wait(30)
        return clone(OUTPUT).fit(X, y)

    thread = threading.Thread(target=lambda: models.append(replay(slow, X, y, other, other_y)))
    thread.start()
    assert inside.wait(30)
    with record_releases() as releases:
        fits = [clone(OUTPUT).fit(X, y).coef_ for _ in range(2)]
    asked.set()
    thread.join()
    assert len(releases) == 2
    assert not np.array_equal(*fits)
    assert isinstance(models[0], ReplayResult)


def test_replays_draw_from_the_operating_system_unless_told(monkeypatch):
    drawn = []

    def kept(releases):
        drawn.append([released.tolist() for *_, released in releases])
        return 1.0

    monkeypatch.setattr("dp_halfspace.audit.mechanism_checks.noise_level", kept)
    for seed in (None, None, 2, 2):
        replay(OUTPUT, *flipped(), random_state=seed)
    assert drawn[0] != drawn[1]
    assert drawn[2] == drawn[3]


def released_by(decide):
    """A function that releases sums as long as `decide` says so of labels and earlier answers."""
    noise = GaussianNoise(2.0, 1.0)

    class Sums:
        privacy_ = PrivacyRecord(epsilon=20.0, delta=1e-3, events=(noise.event,) * 3, noise="os")

    def fit(X, y):
        permit, answers = authorise(Sums.privacy_, noise_source(None)), []
        for value in decide(np.asarray(y), answers):
            answers.append(float(permit.release(np.array([value]), noise)[0]))
        return Sums()

    return fit


@pytest.mark.parametrize("n_histories", [1, 2])
def test_a_number_of_releases_that_follows_a_label_is_seen(n_histories):
    """Whichever of the data sets has more of them, and answers first."""
    fit = released_by(lambda y, answers: [0.0] * (1 + y[0]))
    for labels, others in (([0, 1], [1, 1]), ([1, 1], [0, 1])):
        result = replay(fit, X := np.zeros((2, 1)), labels, X, others, n_histories=n_histories)
        assert result.findings.count("the number of releases depends on the data") == n_histories


def test_data_sets_answer_first_in_turn():
    firsts = []

    def fit(X, y):
        firsts.append(y[0])
        return released_by(lambda y, answers: [0.0])(X, y)

    replay(fit, X := np.zeros((2, 1)), [0, 1], X, [1, 1], n_histories=3)
    assert firsts == [0, 1, 1, 0, 0, 1]


def test_the_costliest_history_counts():
    """The fifth one has answers of zero, after which the values of this function agree."""

    def decide(y, answers):
        yield y[0]
        yield y[0] if answers[0] else 0

    pair = (np.zeros((2, 1)), [0, 1], np.zeros((2, 1)), [1, 1])
    costs = [replay(released_by(decide), *pair, n_histories=n).recomposed for n in (1, 5)]
    assert costs[0] == costs[1] > replay(released_by(lambda y, _: [y[0]]), *pair).recomposed


def test_composition_agrees_with_the_accounting():
    """Two ways to the same number, for what both have a formula for; else a lower bound."""
    gaussian = [GaussianNoise(1.0, mu) for mu in (0.2, 0.5)]
    laplace = [L2LaplaceNoise(2.0, 0.3), DiscreteLaplaceNoise(3, 0.4)]
    mixed = [*gaussian, *laplace]
    for noises in (gaussian, mixed, [GaussianNoise(3.0, 0.1)] * 30):
        exact = composed([noise.event for noise in noises], 1e-6)
        assert epsilon_of(noises, 1e-6) == pytest.approx(exact, rel=1e-4)
    assert epsilon_of(laplace, 0.0) == pytest.approx(0.7, rel=1e-6)
    choices = [ExponentialChoice(1.0, 0.5)] * 4
    exact = composed([Exponential(0.5)] * 4 + [Gaussian(0.3)], 1e-6)
    assert 0.8 * exact < epsilon_of([*choices, GaussianNoise(1.0, 0.3)], 1e-6) <= exact
    assert epsilon_of([RandomizedResponse(3, 0.7)], 0.0) == pytest.approx(0.7)
    terms = [
        GaussianLinearTerm(1.0, 0.2, 0.1, ((1, 0.0), (2, 0.5), (1, 1.0))),
        GaussianNoise(1, 0.1),
    ]
    exact = composed([term.event for term in terms], 1e-6)
    assert 0.8 * exact < epsilon_of(terms, 1e-6) <= exact
    # Many objectives that hardly lose more than the ratio of their Jacobians: it has either sign.
    many = [
        GaussianNoise(1.0, 0.1),
        *[GaussianLinearTerm(2.0, 0.02, 0.03, ((1, 0.0), (2, 0.5), (1, 1.0)))] * 7,
    ]
    sampled = [SampledGaussianNoise(50, 1.0, 0.5)] * 100
    exact = composed([sampled[0].event] * 100, 1e-6)
    apart = math.erf(0.25 / math.sqrt(2.0))
    response = composed([Gaussian(math.sqrt(2.0 * math.pi * 100) * apart / 50)], 1e-6)
    assert epsilon_of(sampled, 1e-6) == pytest.approx(response, rel=1e-4)
    assert response <= exact
    exact = composed([term.event for term in many], 2.5e-5)
    assert 0.4 * exact < epsilon_of(many, 2.5e-5) <= exact
    for epsilon in (20.0, 50.0, 1000.0):
        assert epsilon_of([RandomizedResponse(3, epsilon)], 0.0) == pytest.approx(epsilon, rel=1e-7)
    assert epsilon_of([mechanisms.NoNoise()], 1e-6) == math.inf
    assert composed([Pure(math.inf)], 1e-6) == math.inf


@pytest.mark.parametrize(
    ("mechanism", "first", "second", "expected"),
    [
        (GaussianNoise(2.0, 1.0), [3.0, 0.0], [0.0, 4.0], (5.0, 2.0)),
        (DiscreteLaplaceNoise(3, 1.0), [3, 0], [0, 4], (7.0, 3.0)),
        (RandomizedResponse(3, 1.0), [0, 1, 2, 2], [0, 2, 0, 2], (2.0, 1.0)),
        (ExponentialChoice(2.0, 1.0), [1.0, 5.0, 0.0], [0.0, 1.0, 3.0], (4.0, 2.0)),
        (LaplaceLinearTerm(2.0, 1.0, 0.0), [[3.0, 4.0], [0, 1]], [[0, 0], [0, 0]], (6.0, 2.0)),
    ],
)
def test_distances_are_in_the_norm_of_the_mechanism(mechanism, first, second, expected):
    assert distance(mechanism, np.array(first), np.array(second)) == pytest.approx(expected)


def test_the_cost_of_a_perturbed_objective_holds_the_ratio_of_its_jacobians():
    assert epsilon_of([LaplaceLinearTerm(2.0, 1.0, 0.25)], 0.0) == pytest.approx(1.0)
    laplace = L2LaplaceNoise(1.0, 0.5)
    assert epsilon_of([laplace, laplace], 0.0) == pytest.approx(1.0)
    assert epsilon_of([laplace, GaussianNoise(1.0, 1.0)], 0.0) == math.inf


def test_what_is_printed_before_a_common_failure_is_compared():
    def says_and_fails(X, y):
        print(X[0, 0])
        raise ValueError("whatever the rows are")

    X, y = np.zeros((4, 1)), np.zeros(4)
    assert replay(says_and_fails, X, y, X + 1.0, y, n_histories=1).findings == (
        "output: differs though all releases agree",
    )
    with pytest.raises(ValueError, match="whatever the rows are"):
        replay(says_and_fails, X, y, X, y, n_histories=1)


@pytest.mark.slow
def test_a_thousand_replays_of_right_code_find_nothing():
    pair = flipped()
    assert sum(bool(replay(OUTPUT, *pair, n_histories=3).findings) for _ in range(1000)) == 0


@pytest.mark.slow
def test_a_hundred_replays_of_half_the_noise_all_see_it(monkeypatch):
    pair = flipped()
    half_the_noise(monkeypatch, GaussianNoise)
    assert all(replay(OUTPUT, *pair, n_histories=50).findings for _ in range(100))


def test_of_a_random_number_of_runs_the_costliest_counts():
    first, run, score = (GaussianNoise(1.0, mu) for mu in (0.3, 0.2, 0.1))
    compared = [ReplayedRelease(first, 1.0, 1.0), ReplayedRelease(score, 1.0, 1.0)]
    compared += [ReplayedRelease(noise, 1.0, 1.0) for noise in (run, score)]
    compared += [ReplayedRelease(noise, float(noise is score), 1.0) for noise in (run, score)]

    def cost(*events, **public):
        given = {"events": events, "public": tuple(public.items()), "delta": 1e-6}
        return white_box._recompose(compared, SimpleNamespace(**given))

    charged = RandomStopping(2.0, 0.0, math.hypot(0.2, 0.1))
    expected = composed([first.event, run.event, score.event], 1e-6)
    assert cost(first.event, charged) == pytest.approx(expected, rel=1e-4)
    assert cost(first.event, RandomStopping(2.0, 0.0, 0.2)) == math.inf
    # Pure runs have no such event: they are charged three times the cost of one.
    expected = 3 * composed([run.event, score.event], 1e-6)
    assert cost(first.event, selection="random_stopping") == pytest.approx(expected, rel=1e-4)


def test_a_fit_that_leaves_no_record_is_refused():
    pair = (np.zeros((2, 1)), [0, 1], np.zeros((2, 1)), [1, 1])
    with pytest.raises(ValueError, match="no attribute privacy_"):
        replay(lambda X, y: SimpleNamespace(), *pair, n_histories=1)


def test_a_choice_with_its_count_costs_what_it_is_charged():
    """Its range and both sides of the noise, as large as they are together."""
    for epsilon, of_choice in ((1.0, 0.4), (1.0, 0.9), (2.0, 0.1)):
        assert epsilon_of([CountedChoice(epsilon, of_choice)], 0.0) == pytest.approx(epsilon)
