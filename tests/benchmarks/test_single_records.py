"""The comparison of steps on single records with full-batch steps runs."""

import pytest

from benchmarks import single_records


def test_the_printed_noise_spends_less_than_the_budget():
    assert 0.0 < single_records.printed_epsilon(50, 1 / 50**2) < 0.2


@pytest.mark.slow
def test_the_comparison_runs(capsys):
    single_records.main(["--sizes", "12", "--draws", "2"])
    assert "full batch, last" in capsys.readouterr().out
