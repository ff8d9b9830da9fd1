"""
Several rows of one person
==========================

User-level privacy protects a person with all rows. Accuracy depends on the number of people.
"""

import matplotlib.pyplot as plt
import numpy as np

from dp_halfspace import AdaptiveMarginClassifier

rng = np.random.default_rng(0)
person = np.repeat(np.arange(2000), 4)
X = rng.normal(size=(8000, 4)) + np.repeat(rng.normal(size=(2000, 4)), 4, axis=0)
y = (X @ [1, 1, 0, 0] + rng.normal(size=8000) > 0).astype(int)
new = rng.normal(size=(4000, 4)) * 1.4
truth = (new @ [1, 1, 0, 0] > 0).astype(int)
units = {"rows": None, "people": person}
accuracy = [
    np.mean(
        [
            AdaptiveMarginClassifier(epsilon=0.5, classes=[0, 1])
            .fit(X, y, groups=groups)
            .score(new, truth)
            for _ in range(3)
        ]
    )
    for groups in units.values()
]
plt.bar(list(units), accuracy)
plt.ylim(0.5, 1)
plt.ylabel("accuracy at epsilon 0.5")
plt.xlabel("what is protected")
plt.show()
