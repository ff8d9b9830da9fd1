"""
Rare outcomes
=============

If one record in twenty is positive, a model that never predicts it has an accuracy of .95. The
area under the ROC curve shows how well a model ranks the records.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from dp_halfspace import PrivateAUCClassifier

rng = np.random.default_rng(0)
y = (rng.random(12_000) < 0.05).astype(int)
X = rng.normal(size=(12_000, 5)) + 0.7 * y[:, None]
epsilons = [0.5, 1, 3]
areas = []
for epsilon in epsilons:
    model = PrivateAUCClassifier(epsilon=epsilon, classes=[0, 1]).fit(X[:8000], y[:8000])
    areas.append(roc_auc_score(y[8000:], model.decision_function(X[8000:])))
plt.bar([str(epsilon) for epsilon in epsilons], areas)
plt.axhline(0.5, color="grey", ls=":")
plt.xlabel("epsilon")
plt.ylabel("area under the ROC curve")
plt.show()
