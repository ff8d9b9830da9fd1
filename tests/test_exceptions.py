"""Exceptions fit the clauses that callers already have."""

import pickle

from dp_halfspace import BudgetError, CertificateError, PrivacyWarning


def test_hierarchy():
    assert issubclass(BudgetError, ValueError)
    assert issubclass(CertificateError, ValueError)
    assert issubclass(PrivacyWarning, UserWarning)


def test_they_travel_between_processes():
    for kind in (BudgetError, CertificateError, PrivacyWarning):
        assert pickle.loads(pickle.dumps(kind("text"))).args == ("text",)
