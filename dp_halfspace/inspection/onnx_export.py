"""A linear model and its scalers as an ONNX graph, for systems that predict without Python."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.engine.moment import RowClip
from dp_halfspace.exceptions import optional
from dp_halfspace.inspection.coefficients import linear_parts


def to_onnx(model: Any) -> Any:
    """Return a fitted linear model and its scalers as an ONNX model.

    Parameters
    ----------
    model : fitted classifier of the package, or a pipeline of scalers that ends in one
        A model whose score is linear in the columns. Scalers are those of
        :mod:`dp_halfspace.preprocessing`.

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
        If the score is not linear in the columns, as for tables, features and few records.

    Notes
    -----
    **Privacy.** A function of what was released and of public parameters: it uses no budget.

    Computed in double precision inside, so that columns far from zero keep their digits.
    """
    onnx = optional("onnx", "onnx", "to_onnx")
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
        given = graph.apply("Where", graph.apply("IsNaN", given), parts.model.fill_value_, given)
    norm, feature_map = float(parts.model.data_norm_), getattr(parts.model, "feature_map_", None)
    if math.isfinite(parts.model._row_norm):
        given = graph.clipped(given, parts.model._row_norm)
    # The features of columns alone are the columns, clipped and divided by a norm.
    if feature_map is not None and math.isfinite(feature_map.clip):
        given = graph.apply("Clip", given, -feature_map.clip, feature_map.clip)
    if (row_clip := getattr(parts.model, "row_clip_", None)) is not None:
        mean, whitening = row_clip.mean * norm, row_clip.whitening / norm
        limit = replace(row_clip, mean=mean, whitening=whitening, norm=row_clip.norm * norm)
        given = graph.shortened(given, limit)
    scores = graph.apply("MatMul", given, parts.coefficients.T)
    scores = graph.apply("Add", scores, parts.intercepts)
    is_binary = len(parts.coefficients) == 1
    if is_binary:
        scores = graph.apply("Squeeze", scores, np.array([1]))
        codes = graph.apply("Cast", graph.apply("Greater", scores, 0.0), to=kinds.INT64)
    else:
        codes = graph.apply("ArgMax", scores, axis=1, keepdims=0)
    labels = _plain_labels(parts.model.classes_)
    graph.apply("Gather", labels, codes, output="label")
    graph.apply("Cast", scores, output="scores", to=kinds.FLOAT)

    describe, kind = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype(labels.dtype)
    rows = ["n_samples"]
    inputs = [describe("X", kinds.FLOAT, [*rows, len(parts.names)])]
    shape = rows if is_binary else [*rows, len(parts.coefficients)]
    outputs = [describe("label", kind, rows), describe("scores", kinds.FLOAT, shape)]
    made = helper.make_graph(graph.nodes, "dp_halfspace", inputs, outputs, graph.constants)
    # In this version the axes of these operators are given as above.
    opset = [helper.make_opsetid("", 17)]
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
        self.constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def length(self, rows: str) -> str:
        """Add the length of every row."""
        return self.apply("ReduceL2", rows, axes=[1], keepdims=1)

    def clipped(self, rows: str, norm: float) -> str:
        """Scale rows down to a norm."""
        longest = self.apply("Max", self.length(rows), norm)
        return self.apply("Mul", rows, self.apply("Div", norm, longest))

    def shortened(self, rows: str, limit: RowClip) -> str:
        """Shorten long rows towards the mean, see `RowClip`."""
        if math.isfinite(limit.norm):
            rows = self.clipped(rows, limit.norm)
        centred = self.apply("Sub", rows, limit.mean)
        images = self.apply("MatMul", centred, limit.whitening)
        lengths = self.apply("Max", self.length(images), limit.longest)
        kept = self.apply("Mul", centred, self.apply("Div", limit.longest, lengths))
        return self.apply("Add", kept, limit.mean)


def _plain_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as whole numbers, truth values, numbers or texts."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind in "bf":
        return classes
    return np.array([str(label) for label in classes.tolist()], dtype=object)
