"""An int repeats the scores on every machine: ``docs/privacy_model.md``, Seeds."""

import pytest

from tests import machines


@pytest.mark.slow
def test_another_kernel_and_older_vectors_give_the_same_scores():
    """All at once: what differs between machines differs between these two processes."""
    older = {"OPENBLAS_CORETYPE": "Prescott", "OMP_NUM_THREADS": "2"}
    other = machines.scores_in({**older, **machines.without_wide_vectors()})
    found = machines.apart(machines.scores(), other)
    assert max(found.values()) <= machines.APART, found


def test_scores_that_differ_are_seen():
    first, second = {"a": [1.0, -2.0], "b": [0.0]}, {"a": [1.0, -2.0 - 1e-4], "b": [0.0]}
    assert machines.apart(first, second) == {"a": pytest.approx(5e-5), "b": 0.0}
