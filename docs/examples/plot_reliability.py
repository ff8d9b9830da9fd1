"""
Are the probabilities right?
============================

A reliability diagram: among the rows with a predicted probability of about .3, do three of ten have
the label? Probabilities of the linear and of the table class follow from the scores and take no
budget. The shares on fresh rows, here simulated, are exact and would not be private.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve

from dp_halfspace import AdaptiveMarginClassifier, PrivateTableClassifier

rng = np.random.default_rng(0)
X = np.column_stack(
    [rng.normal(60, 12, 40_000), rng.lognormal(0, 0.6, 40_000), rng.poisson(0.7, 40_000)]
)
risk = 0.06 * (X[:, 0] - 60) + np.log(X[:, 1]) + 0.6 * X[:, 2] - 2.2
y = (risk + rng.logistic(size=len(X)) > 0).astype(int)
schema = {"0": [0, 120], "1": "number", "2": "number"}
models = {
    "linear": AdaptiveMarginClassifier(epsilon=1, classes=[0, 1]),
    "table": PrivateTableClassifier(epsilon=1, classes=[0, 1], schema=schema),
}
for name, model in models.items():
    model.fit(X[:10_000], y[:10_000])
    found = calibration_curve(y[10_000:], model.predict_proba(X[10_000:])[:, 1], n_bins=10)
    plt.plot(found[1], found[0], "o-", label=name)
plt.plot([0, 1], [0, 1], color="grey", ls=":")
plt.xlabel("predicted probability")
plt.ylabel("share of positive rows")
plt.legend()
plt.show()
