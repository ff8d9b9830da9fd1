"""
A ROC curve that may be published
=================================

``private_score`` releases the counts behind a ROC curve within a budget of their own.
"""

import matplotlib.pyplot as plt
import numpy as np

from dp_halfspace import PrivateTableClassifier
from dp_halfspace.metrics import private_score

rng = np.random.default_rng(0)
X = rng.normal(size=(12_000, 3))
y = (X @ [1.0, 0.5, 0.0] + rng.logistic(size=12_000) > 1).astype(int)
schema = {str(column): "number" for column in range(3)}
model = PrivateTableClassifier(classes=[0, 1], schema=schema).fit(X[:6000], y[:6000])
score = private_score(model, X[6000:], y[6000:], metric="roc_auc", epsilon=1, delta=1e-7)
print(score)
fpr, tpr = score.curve
plt.plot(fpr, tpr, marker=".", label=f"private, area {score.value:.2f}")
plt.plot([0, 1], [0, 1], ":", color="grey", label="chance")
plt.xlabel("false positive rate")
plt.ylabel("true positive rate")
plt.legend()
plt.show()
