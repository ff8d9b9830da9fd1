"""A fitted model and its scalers as an ONNX graph, for systems that predict without Python."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.engine.moment import RowClip
from dp_halfspace.inspection.coefficients import LinearParts, linear_parts
from dp_halfspace.preprocessing.scalers import RowLengths
from dp_halfspace.rows.directions import LARGEST_CELL, PER_UNIT

# Version of the operators; it allows axes of sums as inputs.
_OPSET = 17


def to_onnx(model: Any) -> Any:
    """Return a fitted linear model or network and its scalers as an ONNX model.

    Parameters
    ----------
    model : fitted classifier of the package, or a pipeline of scalers that ends in one
        Any linear classifier, also one that was selected for a small table, or a network. Scalers
        are those of :mod:`dp_halfspace.preprocessing`.

    Returns
    -------
    onnx.ModelProto
        With the input ``X``, of shape (n_samples, n_features) in float32, in which NaN marks a
        missing entry, and the outputs ``label`` and ``scores``, which equal those of ``predict``
        and ``decision_function`` for rows in float32. ``onnx.save`` writes it.

    Raises
    ------
    ImportError
        If onnx is not installed.
    ValueError
        If the model encodes a table or maps columns to random features.

    Notes
    -----
    **Privacy.** A function of what was released and of public parameters: it uses no budget.

    Computed in double precision inside, so that columns far from zero keep their digits. A model
    that was selected for a small table is linear in cells of the columns, or has scores that are
    divided by a length of the row: both are part of the graph.
    """
    try:
        import onnx  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise ImportError(
            "to_onnx needs onnx, an optional dependency: pip install onnx."
        ) from error
    parts = linear_parts(model, "to_onnx")
    graph, helper, kinds = _Graph(onnx), onnx.helper, onnx.TensorProto
    given = graph.apply("Cast", "X", to=kinds.DOUBLE)
    for scaler in parts.scalers:
        scales, clip = scaler._scales()
        given = graph.apply("Sub", given, scales.center)
        given = graph.apply("Div", given, scales.scale)
        given = graph.apply("Clip", given, -clip, clip)
        given = graph.apply("Where", graph.apply("IsNaN", given), 0.0, given)
        if (row_clip := getattr(scaler, "row_clip", None)) is not None:
            given = graph.shortened(given, row_clip)
    if not parts.scalers and parts.model.fill_value_ is not None:
        missing = graph.apply("IsNaN", given)
        given = graph.apply("Where", missing, parts.model.fill_value_, given)
    rows = _rows_of_coefficients(graph, given, parts)
    # The features of columns alone are the columns, clipped and divided by a norm.
    norm, feature_map = float(parts.model.data_norm_), getattr(parts.model, "feature_map_", None)
    if feature_map is not None and math.isfinite(feature_map.clip):
        rows = graph.apply("Clip", rows, -feature_map.clip, feature_map.clip)
    if (row_clip := getattr(parts.model, "row_clip_", None)) is not None:
        mean, whitening = row_clip.mean * norm, row_clip.whitening / norm
        limit = replace(row_clip, mean=mean, whitening=whitening, norm=row_clip.norm * norm)
        rows = graph.shortened(rows, limit)
    scores = graph.apply("MatMul", rows, parts.coefficients.T)
    scores = graph.apply("Add", scores, parts.intercepts)
    lengths = getattr(parts.model, "row_lengths_", None)
    if lengths is not None:
        scores = graph.apply("Div", scores, _lengths(graph, given, lengths))
    is_binary = len(parts.coefficients) == 1
    if is_binary:
        scores = graph.apply("Squeeze", scores, np.array([1]))
        second = graph.apply("Greater", scores, 0.0)
        codes = graph.apply("Cast", second, to=kinds.INT64)
    else:
        codes = graph.apply("ArgMax", scores, axis=1, keepdims=0)
    labels = _plain_labels(parts.model.classes_)
    graph.apply("Gather", labels, codes, output="label")
    graph.apply("Cast", scores, output="scores", to=kinds.FLOAT)

    kind = helper.np_dtype_to_tensor_dtype(labels.dtype)
    n_columns, n_classes = len(parts.names), len(parts.coefficients)
    made = helper.make_graph(
        graph.nodes,
        "dp_halfspace",
        [helper.make_tensor_value_info("X", kinds.FLOAT, ["n_samples", n_columns])],
        [
            helper.make_tensor_value_info("label", kind, ["n_samples"]),
            helper.make_tensor_value_info(
                "scores",
                kinds.FLOAT,
                ["n_samples"] if is_binary else ["n_samples", n_classes],
            ),
        ],
        graph.constants,
    )
    opset = [helper.make_opsetid("", _OPSET)]
    # The oldest format with these operators, which newer readers can read as well.
    whole = helper.make_model(made, opset_imports=opset, ir_version=8)
    onnx.checker.check_model(whole)
    return whole


class _Graph:
    """Operators in the order of their evaluation, and their constants."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def apply(self, operator: str, *inputs: Any, output: str = "", **attributes: Any) -> str:
        """Add an operator of named results and of numbers, and return the name of its result."""
        output = output or f"value_{len(self.nodes)}"
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        self.nodes.append(self._onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def _constant(self, value: Any) -> str:
        """Store numbers, or texts, and return their name."""
        name = f"constant_{len(self.constants)}"
        array = self._onnx.numpy_helper.from_array(np.asarray(value), name)
        self.constants.append(array)
        return name

    def sum_of_squares(self, rows: str) -> str:
        """Add the squared length of every row."""
        return self.apply("ReduceSum", self.apply("Mul", rows, rows), np.array([1]), keepdims=1)

    def clipped(self, rows: str, norm: float) -> str:
        """Scale rows down to a norm."""
        longest = self.apply("Max", self.apply("Sqrt", self.sum_of_squares(rows)), norm)
        return self.apply("Mul", rows, self.apply("Div", norm, longest))

    def shortened(self, rows: str, limit: RowClip) -> str:
        """Shorten long rows towards the mean, see `RowClip`."""
        if math.isfinite(limit.norm):
            rows = self.clipped(rows, limit.norm)
        centred = self.apply("Sub", rows, limit.mean)
        images = self.apply("MatMul", centred, limit.whitening)
        lengths = self.apply("Max", self.apply("Sqrt", self.sum_of_squares(images)), limit.longest)
        kept = self.apply("Mul", centred, self.apply("Div", limit.longest, lengths))
        return self.apply("Add", kept, limit.mean)

    def inverse_sinh(self, rows: str, exponent: int, data_norm: float) -> str:
        """Add ``asinh(rows / data_norm / 2^exponent)``, which not all readers have in float64."""
        numbers = self.apply("Div", rows, data_norm)
        numbers = self.apply("Mul", numbers, math.ldexp(1.0, -exponent))
        sizes = self.apply("Abs", numbers)
        root = self.apply("Sqrt", self.apply("Add", self.apply("Mul", sizes, sizes), 1.0))
        return self.apply(
            "Mul", self.apply("Sign", numbers), self.apply("Log", self.apply("Add", sizes, root))
        )


def _rows_of_coefficients(graph: _Graph, rows: str, parts: LinearParts) -> str:
    """Turn rows in column scales into those that are multiplied by the coefficients."""
    model = parts.model
    norm = float(model.data_norm_)
    if parts.cells is not None:
        scaled = graph.inverse_sinh(rows, parts.cells.exponent, parts.cells.data_norm)
        cells = graph.apply("Round", graph.apply("Mul", scaled, float(PER_UNIT)))
        return graph.apply("Clip", cells, float(-LARGEST_CELL), float(LARGEST_CELL))
    if math.isfinite(norm) and not hasattr(model, "feature_map_"):
        rows = graph.clipped(rows, norm)
    if hasattr(model, "hidden_coef_"):
        rows = graph.apply("Div", rows, norm)
        if model.projection_ is not None:
            matrix = model.projection_.apply(np.eye(len(parts.names)))
            rows = graph.clipped(graph.apply("MatMul", rows, matrix), 1.0)
        for coefficients, intercepts in model._hidden_layers():
            rows = graph.apply("MatMul", rows, coefficients.T)
            rows = graph.apply("Tanh", graph.apply("Add", rows, intercepts))
    return rows


def _lengths(graph: _Graph, rows: str, lengths: RowLengths) -> str:
    """Add the divisors of the scores, ``lengths.of(rows)``."""
    cells = graph.inverse_sinh(rows, lengths.exponent, lengths.data_norm)
    found = graph.apply("Add", graph.sum_of_squares(cells), 1.0)
    if lengths.constant is None:
        return found
    squares = graph.sum_of_squares(graph.apply("Div", rows, lengths.data_norm))
    squares = graph.apply("Add", squares, lengths.constant**2)
    return graph.apply("Mul", found, graph.apply("Sqrt", squares))


def _plain_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as whole numbers, truth values, numbers or texts."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind in "bf":
        return classes
    return np.array([str(label) for label in classes.tolist()], dtype=object)
