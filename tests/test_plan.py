"""``plan(X, y)`` of every estimator and of a search: what a fit would spend, for nothing."""

import warnings

import pytest

from dp_halfspace import OutputPerturbationClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace.exceptions import PrivacyWarning
from tests.conftest import separated
from tests.instances import adjacency, instances, label, with_enough_records
from tests.releases import record_releases

SEARCH = PrivateSearchCV(
    OutputPerturbationClassifier(), {"alpha": [0.1, 1.0]}, selection="exponential"
)


def name(estimator):
    return "PrivateSearchCV" if estimator is SEARCH else label(estimator)


def data(estimator):
    X, y = separated(200, 4)
    return with_enough_records(estimator, X, y) if hasattr(estimator, "classes") else (X, y)


def of_a_fit(record):
    """A record without what is drawn anew by every call: public random objects."""
    public = {k: v for k, v in dict(record.public).items() if not k.endswith("_seed")}
    return record.epsilon, record.delta, record.events, record.noise, record.adjacency, public


def unseeded(estimator):
    estimator.set_params(random_state=None)
    own = estimator.estimator if isinstance(estimator, PrivateSearchCV) else estimator
    own.set_params(classes=[0, 1])
    return estimator


@pytest.mark.sampled(10)
@pytest.mark.parametrize("estimator", [*instances(), SEARCH], ids=name)
def test_a_plan_is_the_record_of_the_fit_and_costs_nothing(estimator):
    X, y = data(unseeded(estimator))
    kind = "replace-one" if isinstance(estimator, PrivateSearchCV) else adjacency(estimator)
    ledger = PrivacyLedger(epsilon=1e3, delta=0.4, adjacency=kind)
    before = set(vars(estimator))
    estimator.set_params(ledger=ledger)
    with record_releases() as releases:
        planned = estimator.plan(X, y)
    assert not releases
    assert not ledger.entries()
    assert set(vars(estimator)) == before
    estimator.fit(X, y)
    assert of_a_fit(planned) == of_a_fit(estimator.privacy_)
    assert planned.epsilon_at(planned.delta) <= planned.epsilon * (1 + 1e-9)
    estimator.set_params(ledger=None)


def test_a_seeded_plan_says_so_without_a_warning():
    model = OutputPerturbationClassifier(classes=[0, 1], random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        assert model.plan(*separated(5000, 3)).noise == "seeded"
