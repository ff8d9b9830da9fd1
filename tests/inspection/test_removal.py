"""The removal experiment: margins that are known, what is removed first, refusals."""

import numpy as np
import pytest

from dp_halfspace import PrivacyWarning
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.inspection import removal
from dp_halfspace.inspection.removal import RemovalCurve, removal_curve


def curve_of(X, y, **options):
    with pytest.warns(PrivacyWarning, match="not private"):
        return removal_curve(X, y, **options)


def test_wrong_records_go_first_and_the_margin_of_the_rest_appears():
    X, y = make_halfspace(300, 4, margin=0.3, random_state=0)
    y = y.copy()
    y[:6] *= -1
    found = curve_of(X, y, share=0.01, n_removals=4)
    assert isinstance(found, RemovalCurve)
    assert found.shares == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])
    assert (found.margins[:2] == 0).all()
    # No halfspace has a larger margin than the best; the machine comes near it.
    assert (np.diff(found.margins[2:]) > -0.02).all()
    assert found.margins[2] == pytest.approx(0.3, abs=0.03)


def test_norms_of_rows_and_a_row_of_zeros_do_not_matter():
    X = np.array([[1.0, 0.0], [5.0, 5.0], [-2.0, 0.0], [-1.0, -1.0], [0.0, 0.0]])
    margins = removal._normalised_margins(X, np.array([1.0, 1, -1, -1, 1]), 100.0)
    assert margins[4] == 0.0
    assert (np.abs(margins) <= 1).all()


def test_it_ends_where_a_class_is_gone():
    X = np.array([[1.0], [0.9], [-1.0], [1.1]])
    found = curve_of(X, np.array(["a", "a", "b", "b"]), share=0.25, n_removals=10)
    assert 1 <= len(found.shares) < 11


def test_it_draws():
    pytest.importorskip("matplotlib")
    found = RemovalCurve(np.array([0.0, 0.1]), np.array([0.0, 0.2]))
    axes = found.plot(label="pixels")
    assert found.plot(axes) is axes
    assert axes.lines[0].get_xdata().tolist() == [0.0, 10.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"share": 1.0}, "share"), ({"n_removals": -1}, "n_removals"), ({"penalty": 0.0}, "penalty")],
)
def test_refusals_of_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        removal_curve(np.eye(2), [0, 1], **options)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.full((2, 2), np.nan), [0, 1], "finite"),
        (np.eye(2), [0], "one label"),
        (np.eye(3), [0, 1, 2], "two classes"),
    ],
)
@pytest.mark.filterwarnings("ignore:removal_curve")
def test_refusals_of_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        removal_curve(X, y)


def test_a_share_of_less_than_a_record_is_one_record():
    X, y = make_halfspace(40, 3, margin=0.2, random_state=0)
    found = curve_of(X, y, share=0.001, n_removals=2)
    assert found.shares == pytest.approx([0.0, 1 / 40, 2 / 40])
    np.testing.assert_allclose(curve_of(X, -y, share=0.001, n_removals=2).margins, found.margins)
