"""A linear model and its scalers as an ONNX graph, for systems that predict without Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.inspection.coefficients import linear_parts

# Version of the operators; it allows axes of sums as inputs.
_OPSET = 17


def to_onnx(model: Any) -> Any:
    """Return a fitted linear model and its scalers as an ONNX model.

    Parameters
    ----------
    model : fitted linear classifier of the package, or a pipeline of scalers that ends in one
        Scalers are those of :mod:`dp_halfspace.preprocessing`.

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
        If the scores are no linear function of scaled columns.

    Notes
    -----
    **Privacy.** A function of what was released and of public parameters: it uses no budget.

    Computed in double precision inside, so that columns far from zero keep their digits.
    """
    try:
        from onnx import TensorProto, checker, helper, numpy_helper  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise ImportError(
            "to_onnx needs onnx, an optional dependency: pip install onnx."
        ) from error
    parts = linear_parts(model, "to_onnx")
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(value: Any) -> str:
        """Store numbers, or texts, and return their name."""
        name = f"constant_{len(constants)}"
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def apply(operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add an operator, and return the name of its result."""
        output = output or f"value_{len(nodes)}"
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    rows = apply("Cast", "X", to=TensorProto.DOUBLE)
    for scaler in parts.scalers:
        scales, clip = scaler._scales()
        rows = apply("Sub", rows, constant(scales.center))
        rows = apply("Div", rows, constant(scales.scale))
        rows = apply("Clip", rows, constant(-clip), constant(clip))
        rows = apply("Where", apply("IsNaN", rows), constant(0.0), rows)
    if not parts.scalers and parts.model.fill_value_ is not None:
        rows = apply("Where", apply("IsNaN", rows), constant(parts.model.fill_value_), rows)
    norm = float(parts.model.data_norm_)
    if math.isfinite(norm) and not hasattr(parts.model, "feature_map_"):
        squares = apply("ReduceSum", apply("Mul", rows, rows), constant(np.array([1])), keepdims=1)
        longest = apply("Max", apply("Sqrt", squares), constant(norm))
        rows = apply("Mul", rows, apply("Div", constant(norm), longest))
    scores = apply("MatMul", rows, constant(parts.coefficients.T))
    scores = apply("Add", scores, constant(parts.intercepts))
    is_binary = len(parts.coefficients) == 1
    if is_binary:
        scores = apply("Squeeze", scores, constant(np.array([1])))
        second = apply("Greater", scores, constant(0.0))
        codes = apply("Cast", second, to=TensorProto.INT64)
    else:
        codes = apply("ArgMax", scores, axis=1, keepdims=0)
    labels = _plain_labels(parts.model.classes_)
    apply("Gather", constant(labels), codes, output="label")
    apply("Cast", scores, output="scores", to=TensorProto.FLOAT)

    kind = helper.np_dtype_to_tensor_dtype(labels.dtype)
    n_columns, n_classes = len(parts.names), len(parts.coefficients)
    graph = helper.make_graph(
        nodes,
        "dp_halfspace",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n_samples", n_columns])],
        [
            helper.make_tensor_value_info("label", kind, ["n_samples"]),
            helper.make_tensor_value_info(
                "scores",
                TensorProto.FLOAT,
                ["n_samples"] if is_binary else ["n_samples", n_classes],
            ),
        ],
        constants,
    )
    opset = [helper.make_opsetid("", _OPSET)]
    # The oldest format with these operators, which newer readers can read as well.
    made = helper.make_model(graph, opset_imports=opset, ir_version=8)
    checker.check_model(made)
    return made


def _plain_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as whole numbers, truth values, numbers or texts."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind in "bf":
        return classes
    return np.array([str(label) for label in classes.tolist()], dtype=object)
