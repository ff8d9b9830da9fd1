"""
Why norms are bounded and dimensions reduced
============================================

Two examples of Bassily, Mohri and Suresh (2022). Left (their Figures 1 and 3): records with one
column, of which a few are outliers. Every positive weight makes the same errors, but the mean
hinge loss is smallest at the weight one over the margin. Right (their Lemma G.1): an exponential
mechanism chooses among hyperplanes by their number of errors. The more columns there are, the
more records it needs to choose the right one.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

margin = 0.1
outliers = margin / 2
weights = np.linspace(-2, 15, 400)
hinge = outliers * np.maximum(0, 1 + weights) + (1 - outliers) * np.maximum(0, 1 - margin * weights)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
left.plot(weights, hinge, label="mean hinge loss")
left.plot(weights, np.where(weights > 0, outliers, 1 - outliers), label="errors")
left.axvline(1 / margin, color="grey", ls=":", label="one over the margin")
left.set_xlabel("weight")
left.legend()

# %%
# All coordinates are 1 or -1, and the first one is the label. A wrong hyperplane has a normal
# vector whose first coordinate is -1; there are up to 4,096 of them.
rng = np.random.default_rng(0)
epsilon, sizes = 1.0, np.array([5, 10, 20, 40, 80, 160])
for d in (5, 9, 13):
    wrong = rng.choice([-1.0, 1.0], (2 ** (d - 1), d))
    wrong[:, 0] = -1.0
    directions = np.vstack([np.eye(d)[0], wrong])
    probabilities = []
    for n in sizes:
        X = rng.choice([-1.0, 1.0], (n, d))
        wrong_counts = (X @ directions.T * X[:, :1] <= 0).sum(axis=0)
        probabilities.append(softmax(-epsilon * wrong_counts / 2)[0])
    right.plot(sizes, probabilities, marker="o", label=f"{d} columns")
right.set_xscale("log")
right.set_xlabel("records")
right.set_ylabel("probability of the right hyperplane")
right.legend()
plt.show()
