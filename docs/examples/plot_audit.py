"""
A black-box audit
=================

Many fits to a table and to its neighbour, which differs in one label. The better their outcomes can
be told apart, the larger is the lower bound on what the fits reveal.
"""

import matplotlib.pyplot as plt
import numpy as np

from dp_halfspace import OutputPerturbationClassifier
from dp_halfspace.audit import audit

X, y = np.zeros((40, 2)), np.arange(40) % 2
X[0, 0] = 1.0
flipped = y.copy()
flipped[0] = 1 - y[0]
model = OutputPerturbationClassifier(
    epsilon=4, data_norm=1, classes=[0, 1], loss="huber_hinge", alpha=3
)
found = audit(model, X, y, X, flipped, n_fits=200)
print(f"mu at least {found.mu_low:.2f}, claimed {found.mu:.2f}")
for labels, name in ((y, "table"), (flipped, "neighbour")):
    weights = [model.fit(X, labels).coef_[0, 0] for _ in range(200)]
    plt.hist(weights, bins=30, alpha=0.5, label=name)
plt.xlabel("first coefficient")
plt.ylabel("fits")
plt.legend()
plt.show()
