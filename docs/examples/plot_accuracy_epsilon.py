"""
Accuracy against epsilon
========================

What a smaller epsilon costs on a real table, compared with a model without privacy. On private
data use ``inspection.plan_accuracy``, which reads no rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dp_halfspace import AdaptiveMarginClassifier

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
usual = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
epsilons = [0.8, 1, 2, 4, 8]
scores = np.array(
    [
        [
            AdaptiveMarginClassifier(epsilon=epsilon, classes=[0, 1])
            .fit(X, y)
            .score(X_test, y_test)
            for _ in range(8)
        ]
        for epsilon in epsilons
    ]
)
plt.errorbar(epsilons, scores.mean(axis=1), scores.std(axis=1), marker="o", label="private")
plt.axhline(usual.score(X_test, y_test), color="black", ls="--", label="without privacy")
plt.axhline(y_test.mean(), color="grey", ls=":", label="majority class")
plt.xscale("log")
plt.xticks(epsilons, [str(epsilon) for epsilon in epsilons], minor=False)
plt.minorticks_off()
plt.xlabel("epsilon")
plt.ylabel("test accuracy")
plt.legend()
plt.show()
