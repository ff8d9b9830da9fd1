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
