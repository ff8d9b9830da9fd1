"""Labels of the nullable types of pandas are the labels that they are, and no floats."""

import pandas as pd
import pytest

from dp_halfspace.data.validation import class_indices


@pytest.mark.parametrize(
    ("kind", "labels"), [("Int64", [5, 2**60, 2**60 + 1]), ("boolean", [False, True])]
)
def test_nullable_labels_keep_their_type_and_digits(kind, labels):
    y = pd.Series([*labels, labels[0]], dtype=kind)
    for classes in (None, labels):
        codes, found = class_indices(y, classes)
        assert codes.tolist() == [*range(len(labels)), 0]
        assert found.tolist() == labels
        assert found.dtype.kind == ("b" if kind == "boolean" else "i")
