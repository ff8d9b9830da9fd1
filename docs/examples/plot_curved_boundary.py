"""
A boundary that is not a line
=============================

A linear private classifier on random Fourier features, which approximate a Gaussian kernel
(`kernel="rbf"`).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from dp_halfspace import PrivateKernelClassifier

X, y = make_moons(4000, noise=0.2, random_state=0)
model = PrivateKernelClassifier(kernel="rbf", epsilon=2, classes=[0, 1], data_norm=1.5).fit(X, y)
u, v = np.meshgrid(np.linspace(-2, 3, 80), np.linspace(-1.5, 2, 80))
scores = model.decision_function(np.column_stack([u.ravel(), v.ravel()])).reshape(u.shape)
plt.contourf(u, v, scores > 0, alpha=0.3, levels=[-0.5, 0.5, 1.5])
plt.scatter(*X[:300].T, c=y[:300], s=8)
plt.show()
