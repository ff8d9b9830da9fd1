"""diffprivlib in an environment of its own: it does not import with current scikit-learn.

It is called as a subprocess that reads and writes npz files.

diffprivlib gets rows divided by the public norm and ``data_norm=1``, with which its sensitivity
is right; its intercept is outside the proof that it cites, so the epsilon that it states is
taken at face value here.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.environments import interpreter, missing
from benchmarks.predictors import Linear, unit_ball

NAME = "diffprivlib-0.6.6"
REQUIREMENTS = ("scikit-learn==1.7.2", "diffprivlib==0.6.6")
REGULARISERS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
WORKER = Path(__file__).with_name("diffprivlib_worker.py")


def missing_diffprivlib() -> str | None:
    """Make the environment if needed; the reason if that fails, else None."""
    return missing(NAME, REQUIREMENTS, "diffprivlib.models")


def diffprivlib_models(
    X: Any,
    y: NDArray[Any],
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    classes: Sequence[Any],
    draws: int,
) -> dict[str, list[Linear]]:
    """Fit every regulariser `draws` times; delta and the label set are not its parameters."""
    del delta, classes
    X = unit_ball(X, data_norm)
    request = {"y": y, "epsilon": epsilon, "C": REGULARISERS, "draws": draws}
    if sparse.issparse(X):
        request |= {"X": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    else:
        request |= {"X": X}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, **request)
        subprocess.run([str(interpreter(NAME)), str(WORKER), str(source), str(target)], check=True)
        with np.load(target) as answer:
            coef, intercept = answer["coef"] / data_norm, answer["intercept"]
            labels = answer["classes"]
    fitted = [Linear(c, b, labels) for c, b in zip(coef, intercept, strict=True)]
    return {f"C={C:g}": fitted[i * draws : (i + 1) * draws] for i, C in enumerate(REGULARISERS)}
