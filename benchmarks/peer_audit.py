"""Audit diffprivlib's LogisticRegression from outside, and this package on the same rows.

    python benchmarks/peer_audit.py

The fits of diffprivlib are made in its own environment, which is built in the cache folder.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from benchmarks.diffprivlib_peer import NAME, missing_diffprivlib
from benchmarks.environments import interpreter
from dp_halfspace import OutputPerturbationClassifier
from dp_halfspace.audit import audit

WORKER = """
import sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
given = np.load(sys.argv[1])
found = []
for i in range(int(given["draws"])):
    model = LogisticRegression(
        epsilon=1.0, data_norm=float(given["data_norm"]), tol=1e-9, max_iter=2000,
        fit_intercept=bool(given["fit_intercept"]),
    ).fit(given["X"], given["y"])
    found.append([model.coef_[0, 0], float(np.ravel(model.intercept_)[0])])
np.save(sys.argv[2], found)
"""
# Rows and labels of two neighbours, the parameters that both libraries share, what is looked at.
CASES: dict[str, dict[str, Any]] = {
    "a norm in place of its square": {
        "pair": ([[100.0], [0.0]], [1, 0], [[0.0], [0.0]], [1, 0]),
        "params": {"data_norm": 100.0, "fit_intercept": False},
        "features": lambda w, b: -abs(w),
        "n_fits": 6000,
    },
    "an intercept outside the regulariser": {
        "pair": ([[1.0], [0.0], [0.0]], [1, 1, 0], [[0.0], [0.0], [0.0]], [1, 1, 0]),
        "params": {"data_norm": 1.0, "fit_intercept": True},
        "features": lambda w, b: float(b > 5 and abs(w + b) < 1.5),
        "n_fits": 12000,
    },
}


class Peer(BaseEstimator):
    """Hands out fits that the other environment made."""

    pools: ClassVar[dict[Any, list[Any]]] = {}

    def fit(self, X: Any, y: Any) -> Peer:
        """Take the next fit of these rows."""
        self.coef_, self.intercept_ = Peer.pools[repr((X, y))].pop()
        return self


def peer_fits(X: Any, y: Any, n_fits: int, params: dict[str, Any]) -> list[Any]:
    """Fit diffprivlib so many times."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npy")
        np.savez(source, X=X, y=y, draws=n_fits, **params)
        python = str(interpreter(NAME))
        subprocess.run([python, "-c", WORKER, str(source), str(target)], check=True)
        return np.load(target).tolist()


def main() -> None:
    reason = missing_diffprivlib()
    if reason:
        raise SystemExit(reason)
    results = {}
    for name, case in CASES.items():
        X, y, other_X, other_y = case["pair"]
        features, n_fits = case["features"], case["n_fits"]
        for rows, labels in ((X, y), (other_X, other_y)):
            Peer.pools[repr((rows, labels))] = peer_fits(rows, labels, n_fits, case["params"])
        seen = audit(
            Peer(),
            *case["pair"],
            n_fits=n_fits,
            claim=(1.0, 0.0),
            features=lambda m, f=features: f(m.coef_, m.intercept_),
        )
        ours = OutputPerturbationClassifier(
            epsilon=1.0, delta=0.0, alpha=1.0 / len(y), classes=[0, 1], **case["params"]
        )
        same = audit(
            ours,
            *map(np.asarray, case["pair"]),
            n_fits=1000,
            features=lambda m, f=features: f(m.coef_[0, 0], m.intercept_[0]),
        )
        results[name] = {
            "diffprivlib": seen.epsilon_low,
            "dp_halfspace": same.epsilon_low,
            "n_fits": n_fits,
        }
        print(f"{name}: claimed 1; {results[name]}")
    path = Path(__file__).parent / "results" / "peer_audit.json"
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
