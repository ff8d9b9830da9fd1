"""Fixtures of searches, thresholds and conformal sets."""

from __future__ import annotations

import pytest

from dp_halfspace.data.people import People
from dp_halfspace.model_selection import _search_plan as plan_module
from dp_halfspace.model_selection import search as search_module

_PLANS: dict[str, plan_module.SearchPlan] = {}


@pytest.fixture
def plans_are_made_once(monkeypatch):
    """A plan is a function of public numbers; fits of all tests share one."""
    honest = plan_module.plan_search

    def planned(search, *params):
        each = {id(candidate): candidate(1.0).to_json() for candidate in set(search.candidates)}
        budget = search.n_samples, search.epsilon, search.delta
        key = repr(([each[id(candidate)] for candidate in search.candidates], budget, params))
        if key not in _PLANS:
            _PLANS[key] = honest(search, *params)
        return _PLANS[key]

    monkeypatch.setattr(search_module, "plan_search", planned)


@pytest.fixture
def factors_of_people(monkeypatch):
    """Factors for which weights of people leave room, in the order in which they are asked for."""
    factors, honest = [], People.weights_for

    def recorded(people, largest):
        factors.append(largest)
        return honest(people, largest)

    monkeypatch.setattr(People, "weights_for", recorded)
    return factors
