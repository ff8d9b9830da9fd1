"""Fit diffprivlib's LogisticRegression; run by the interpreter that has diffprivlib.

Usage: diffprivlib_worker.py IN.npz OUT.npz. Imports nothing of this repository.
"""

import os
import sys
import time
import warnings

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from diffprivlib.models import LogisticRegression
from scipy import sparse


def main(source: str, target: str) -> None:
    """Read a request and write coefficients: settings x draws x models x features."""
    warnings.simplefilter("ignore")
    given = np.load(source, allow_pickle=False)
    X = given["X"]
    if "indices" in given:
        X = sparse.csr_matrix((X, given["indices"], given["indptr"]), given["shape"]).toarray()
    coefs, intercepts = [], []
    started = time.perf_counter()
    for C in given["C"]:
        for _ in range(int(given["draws"])):
            model = LogisticRegression(
                epsilon=float(given["epsilon"]), data_norm=1.0, C=float(C), max_iter=1000
            ).fit(X, given["y"])
            coefs.append(model.coef_)
            intercepts.append(model.intercept_)
    seconds = (time.perf_counter() - started) / len(coefs)
    np.savez(target, coef=coefs, intercept=intercepts, classes=model.classes_, seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
